"""The joblib files: a folder for each model, written whole or not at all, loaded only if the hash is the recorded one.

<folder>/.lock                  held, shared, by whoever is writing
<folder>/.new-<id>/...          being written
<folder>/<id>/model.joblib      what predicts
<folder>/<id>/data.joblib       what is retained for the audit
<other folder>/<id>/request.joblib   likewise, what an open job is asked to do
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import joblib

from service.core.tree import TREE_LAYOUT
from service.errors import DamagedModel
from service.store import locks
from service.store.mapping import load_mapped, read_pages

Part = Literal["model", "data", "request"]
Signature: TypeAlias = tuple[int, int, int]
"""Inode, size and time of the last change: while they are the same, so is the file."""

FORMAT = 1
"""The layout of a file's dict, stored in it under ``FORMAT_KEY``; raise it when old code could misread new files."""
FORMAT_KEY = "format"

# The only entries that a sweep may remove: whatever else lies there is not ours.
MODEL_FOLDER = re.compile(r"(?:\.new-)?([0-9a-f]{32})")

log = logging.getLogger(__name__)


class ModelFiles:
    """The files of one database's models, in a folder that no other database uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = folder / ".lock"

    def writing(self) -> AbstractContextManager[None]:
        """Keep sweeps away; to be held from before the first file until its record is committed."""
        return locks.shared(self._lock)

    def write(self, model_id: str, parts: Mapping[Part, Mapping[str, Any]]) -> dict[Part, str]:
        """Store a model's parts, all or none, so that they survive a power cut; returns the SHA-256 of each."""
        temporary = self.folder / f".new-{model_id}"
        try:
            temporary.mkdir()
            with ExitStack() as stack:
                files = {part: stack.enter_context((temporary / f"{part}.joblib").open("w+b")) for part in parts}
                hashes = {part: _write_part(files[part], content) for part, content in parts.items()}
                _flush([file.fileno() for file in files.values()] + [stack.enter_context(_directory(temporary))])
            temporary.rename(self.folder / model_id)
            with _directory(self.folder) as folder:
                os.fsync(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return hashes

    def load(self, model_id: str, part: Part, sha256: str) -> dict[str, Any]:
        """Open a part read-only; the arrays of a large one are pages of the file, which workers share.

        Raises FileNotFoundError when it is gone, `DamagedModel` when it is not what was stored.
        """
        path = self.folder / model_id / f"{part}.joblib"
        what = f"the {part} file of model {model_id}"
        pages = read_pages(path)
        # Before unpickling, which is executing.
        if hashlib.sha256(pages).hexdigest() != sha256:
            raise DamagedModel(f"{what} is not the one that was stored")
        content = _unpickle(path, pages, what)
        written_as = content.pop(FORMAT_KEY, None)
        if written_as != FORMAT:
            raise DamagedModel(f"{what} has format {written_as}, and this release reads {FORMAT}")
        if content.get("layout", 1) > TREE_LAYOUT and part == "model":
            raise DamagedModel(f"{what} has layout {content['layout']}, and this release reads up to {TREE_LAYOUT}")
        return content

    def sign(self, model_id: str, part: Part) -> Signature | None:
        """What tells whether the file is still the same one, without reading it; None where there is none."""
        try:
            found = (self.folder / model_id / f"{part}.joblib").stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def remove(self, model_id: str, part: Part | None = None) -> None:
        """Delete a model's files, or one of them; maps of them stay readable, and what resists is left to a sweep."""
        if part is None:
            shutil.rmtree(self.folder / model_id, ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            (self.folder / model_id / f"{part}.joblib").unlink(missing_ok=True)

    def sweep(
        self, recorded: Callable[[], Collection[str]], parts: Mapping[Part, Callable[[], Collection[str]]] | None = None
    ) -> list[str]:
        """Remove what crashes left behind: folders of models without a record; returns their names.

        So too the files of ``parts`` in the folders of models that are not, or no longer, recorded to have them.
        Does nothing while anyone writes. With no writer left, a folder is either recorded or nobody's; ``recorded``
        is asked for the ids only then.
        """
        with locks.alone_if_free(self._lock) as free:
            if not free:
                return []
            vouched = set(recorded())
            left = sorted(
                entry.name
                for entry in self.folder.iterdir()
                if (match := MODEL_FOLDER.fullmatch(entry.name)) and match[1] not in vouched
            )
            for name in left:
                log.warning("removing what an interrupted write or deletion left", extra={"folder": name})
                shutil.rmtree(self.folder / name, ignore_errors=True)
            for part, keepers in (parts or {}).items():
                for model_id in sorted(vouched - set(keepers())):
                    self.remove(model_id, part)
        return left

    def open_scratch(self) -> BinaryIO:
        """A file without a name, of which nothing is left when it is closed or the process dies."""
        return tempfile.TemporaryFile(dir=self.folder)

    def is_writable(self) -> bool:
        """Whether a file can be made in the folder now."""
        try:
            self.open_scratch().close()
        except OSError:
            log.warning("the models directory cannot be written to", exc_info=True)
            return False
        return True


def _write_part(file: BinaryIO, content: Mapping[str, Any]) -> str:
    """Write and hash one file."""
    joblib.dump({**content, FORMAT_KEY: FORMAT}, file)
    file.flush()
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # it can be read, too


def _unpickle(path: Path, pages: bytes | mmap, what: str) -> dict[str, Any]:
    try:
        return load_mapped(path, pages)
    except FileNotFoundError:  # deleted since it was hashed
        raise
    except Exception as error:
        raise DamagedModel(f"{what} cannot be read by this release: {error}") from error


def _flush(descriptors: Sequence[int]) -> None:
    """Flush all at once: the disk is asked to empty its cache for all of them together, which takes the time of one."""
    with ThreadPoolExecutor(len(descriptors)) as pool:
        for _ in pool.map(os.fsync, descriptors):
            pass


@contextmanager
def _directory(path: Path) -> Iterator[int]:
    """A directory to be flushed: a file that is on the disk without its name would be lost."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
