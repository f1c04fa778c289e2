"""Which stored models cannot be loaded: each file is read once, and again when it is no longer the same file."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from sqlalchemy import select

from service.errors import DamagedModel
from service.store.cache import UntilChanged
from service.store.database import Database
from service.store.files import ModelFiles, Part, Signature
from service.store.tables import ModelRow

SECONDS = 0.5
"""One look reads files for so long; the next one goes on with those that are left."""
NAMED = 20
"""So many models are named."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """A model as far as its files go; ``data_sha256`` is None where nothing was retained."""

    id: str
    name: str | None
    version: int | None
    tree_sha256: str
    data_sha256: str | None

    def __str__(self) -> str:
        return self.id if self.name is None else f"{self.name}@{self.version} ({self.id})"


class Inspector:
    """Looks at the files of all models of a database, for the threads of a process.

    What predicts is read, checked and opened; of what is retained for the audit only its being there is looked at, for
    it may be large.
    """

    def __init__(self, database: Database, files: ModelFiles, clock: Callable[[], float] = monotonic) -> None:
        self._database, self._files, self._clock = database, files, clock
        self._listed: UntilChanged[str, list[Stored]] = UntilChanged(1, database.moment)
        self._seen: dict[str, tuple[Signature, bool]] = {}
        self._lock = threading.Lock()

    def describe_broken(self) -> list[str]:
        """A sentence for each model that cannot be loaded, the newest first; beyond `NAMED` how many more there are."""
        with self._lock:
            broken = self._find_broken()
        if broken:
            # deleted while its files were looked at: that is not damage
            there = {model.id for model in self._list()}
            broken = [(model, part) for model, part in broken if model.id in there]
        said = [
            f"the {part} file of {model} cannot be loaded: put it back from a copy, or delete the model"
            for model, part in broken[:NAMED]
        ]
        return said + ([f"{len(broken) - NAMED} more files cannot be loaded"] if len(broken) > NAMED else [])

    def _find_broken(self) -> list[tuple[Stored, Part]]:
        end = self._clock() + SECONDS
        models = self._listed.get("", self._list)
        broken: list[tuple[Stored, Part]] = []
        for model in models:
            if not self._is_whole(model, end):
                broken.append((model, "model"))
            if model.data_sha256 is not None and self._files.sign(model.id, "data") is None:
                broken.append((model, "data"))
        if len(self._seen) > len(models):
            ids = {model.id for model in models}
            self._seen = {model_id: seen for model_id, seen in self._seen.items() if model_id in ids}
        return broken

    def _is_whole(self, model: Stored, end: float) -> bool:
        """Whether the model can be loaded; True for one that there is no time left to look at."""
        signature = self._files.sign(model.id, "model")
        if signature is None:
            return False
        seen, whole = self._seen.get(model.id, (None, True))
        if seen != signature and self._clock() < end:
            try:
                whole = self._try(model)
            except OSError:  # perhaps of this moment only, such as too many open files: the next look tries again
                log.warning("a model's file cannot be opened", extra={"model": model.id}, exc_info=True)
                return False
            self._seen[model.id] = (signature, whole)
        return whole

    def _try(self, model: Stored) -> bool:
        try:
            self._files.load(model.id, "model", model.tree_sha256)
        except DamagedModel:
            log.warning("a model cannot be loaded", extra={"model": model.id}, exc_info=True)
            return False
        return True

    def _list(self) -> list[Stored]:
        """All models of all namespaces, the newest first."""
        columns = (ModelRow.id, ModelRow.name, ModelRow.version, ModelRow.tree_sha256, ModelRow.data_sha256)
        with self._database.reading() as session:
            found = session.execute(select(*columns).order_by(ModelRow.created.desc(), ModelRow.id.desc()))
            return [Stored(*row) for row in found]
