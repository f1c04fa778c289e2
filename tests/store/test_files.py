"""Files are whole or absent, unpickled only when they are the recorded ones, and removed only when nobody's."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest

from service.errors import DamagedModel, NotRetained, StorageFull
from service.settings import Settings
from service.store import ModelStore
from service.store.files import FORMAT, FORMAT_KEY, ModelFiles
from service.store.mapping import DESCRIPTORS, raise_descriptor_limit
from tests.store.making import draft, files_below, model_file

DATA = Path(__file__).parent / "data"
ID, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    """An empty folder of model files."""
    return ModelFiles(tmp_path / "files")


class Telltale:
    """Pickles to a call that makes a file: whether that file is there tells whether anything was unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Unpickle by calling ``os.mkdir``."""
        return os.mkdir, (str(self.path),)


def test_a_replaced_file_is_not_unpickled(store: ModelStore, settings: Settings, tmp_path: Path) -> None:
    """A file whose hash is not the recorded one is refused before anything in it is executed."""
    record = store.add(draft())
    telltale = tmp_path / "unpickled"
    model_file(settings, record.id).write_bytes(pickle.dumps(Telltale(telltale)))
    with pytest.raises(DamagedModel, match="not the one that was stored"):
        store.load_tree(record)
    assert not telltale.exists()
    pickle.loads(pickle.dumps(Telltale(telltale)))  # noqa: S301 - shows that the telltale tells
    assert telltale.exists()


def test_one_changed_bit_is_noticed(store: ModelStore, settings: Settings) -> None:
    """A retained data file that differs in its last byte is refused, while the tree still loads."""
    record = store.add(replace(draft(), data={"codes": np.arange(100)}, retention="data"))
    path = model_file(settings, record.id, "data")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedModel):
        store.load_data(record)
    store.load_tree(record)


def test_a_lost_file(store: ModelStore, settings: Settings) -> None:
    """A model whose record is there and whose file is not is damaged, not absent."""
    record = store.add(draft())
    model_file(settings, record.id).unlink()
    with pytest.raises(DamagedModel, match="missing"):
        store.load_tree(record)


def test_another_format_is_refused(files: ModelFiles) -> None:
    """A file of a format that this release does not know says so."""
    files.write(ID, {"model": {"x": 1}})
    path = files.folder / ID / "model.joblib"
    joblib.dump({FORMAT_KEY: FORMAT + 1, "x": 1}, path)
    with pytest.raises(DamagedModel, match=f"has format {FORMAT + 1}, and this release reads {FORMAT}"):
        files.load(ID, "model", hashlib.sha256(path.read_bytes()).hexdigest())


def test_what_cannot_be_unpickled_says_why(files: ModelFiles) -> None:
    """A recorded file that this release cannot read is refused with the reason."""
    files.write(ID, {"model": {"x": 1}})
    path = files.folder / ID / "model.joblib"
    path.write_bytes(b"cno_such_module\nthing\n.")
    with pytest.raises(DamagedModel, match="no_such_module"):
        files.load(ID, "model", hashlib.sha256(path.read_bytes()).hexdigest())


def test_files_of_format_1_load(files: ModelFiles) -> None:
    """A file that the first release wrote is read by this one."""
    (files.folder / ID).mkdir()
    stored = DATA / "format_1.joblib"
    shutil.copy(stored, files.folder / ID / "model.joblib")
    content = files.load(ID, "model", hashlib.sha256(stored.read_bytes()).hexdigest())
    assert content["classes"] == ["a", 1, True]
    np.testing.assert_array_equal(content["threshold"], [0.5, np.inf])
    np.testing.assert_array_equal(content["counts"], np.arange(6).reshape(3, 2))


@pytest.mark.parametrize("rows", [3, 100_000])
def test_arrays_are_read_only(store: ModelStore, rows: int) -> None:
    """Nobody can change a loaded array by mistake, be it read or mapped."""
    threshold = store.load_tree(store.add(draft(tree={"threshold": np.arange(rows, dtype=float)})))["threshold"]
    np.testing.assert_array_equal(threshold, np.arange(rows))
    with pytest.raises(ValueError, match="read-only"):
        threshold[0] = 1


def count_open() -> int:
    """How many files this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


def test_one_map_for_all_arrays(files: ModelFiles) -> None:
    """Large files are mapped, by one descriptor whatever they hold; small ones are read, and need none."""
    tables = [np.arange(60_000).reshape(3, -1), np.arange(60_000.0).reshape(-1, 3).T, np.zeros((0, 2), np.int8)]
    hashes = files.write(ID, {"model": {"x": [{"codes": np.array([i])} for i in range(50)], "y": ("a", 1)}})
    hashes |= files.write(OTHER, {"data": {"tables": tables, "x": [{"codes": np.array([i])} for i in range(50)]}})
    before = count_open()
    small = files.load(ID, "model", hashes["model"])
    assert small["y"] == ("a", 1)
    assert count_open() == before
    large = files.load(OTHER, "data", hashes["data"])
    assert count_open() == before + 1
    assert str(files.folder / OTHER / "data.joblib") in Path("/proc/self/maps").read_text(encoding="utf-8")
    for loaded, table in zip(large["tables"], tables, strict=True):
        np.testing.assert_array_equal(loaded, table)
        assert loaded.dtype == table.dtype
        assert loaded.flags.c_contiguous == table.flags.c_contiguous
    for content in (small, large):
        assert [int(each["codes"][0]) for each in content["x"]] == [*range(50)]
    del small, large, loaded, content
    assert count_open() == before


def test_as_many_files_as_the_system_allows() -> None:
    """A low limit of open files is raised, by no more than the system leaves to the process, and never lowered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
        raise_descriptor_limit()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised[1] == hard
        assert raised[0] in (hard, DESCRIPTORS)
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_loaded_model_outlives_its_deletion(open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """What another worker has loaded stays readable after the files are deleted, larger than any buffer."""
    one, other = open_store(), open_store()
    record = one.add(draft(tree={"threshold": np.arange(1_000_000)}))
    loaded = other.load_tree(record)
    one.delete(record.id)
    assert files_below(settings) == []
    assert int(loaded["threshold"].sum()) == 499_999_500_000
    assert other.load_tree(record) is loaded


def test_a_file_is_hashed_once(store: ModelStore, settings: Settings) -> None:
    """A loaded model is not read again: its file may even be gone."""
    record = store.add(draft())
    loaded = store.load_tree(record)
    model_file(settings, record.id).unlink()
    assert store.load_tree(record) is loaded


def test_only_some_files_stay_loaded(settings: Settings) -> None:
    """No more files are kept than the setting says, and the one that was used last stays."""
    store = ModelStore.open(replace(settings, cached_models=2))
    records = [store.add(draft()) for _ in range(3)]
    first, second = (store.load_tree(record) for record in records[:2])
    assert store.load_tree(records[0]) is first
    store.load_tree(records[2])
    assert store.load_tree(records[0]) is first
    assert store.load_tree(records[1]) is not second
    store.close()


def test_written_files_are_flushed_before_they_are_named(files: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts, their folder and then the folder above reach the disk, the name being given in between."""
    steps: list[str] = []
    flush, rename = os.fsync, Path.rename

    def note_flush(descriptor: int) -> None:
        steps.append(f"flush {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        flush(descriptor)

    def note_rename(path: Path, target: Path) -> Path:
        steps.append(f"rename {path.name} to {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(Path, "rename", note_rename)
    files.write(ID, {"model": {"x": 1}, "data": {"y": 2}})
    assert sorted(steps[:3]) == [f"flush .new-{ID}", "flush data.joblib", "flush model.joblib"]
    assert steps[3:] == [f"rename .new-{ID} to {ID}", "flush files"]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Let this process write only so many bytes into a file: a real refusal by the kernel."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_no_room_for_a_file(store: ModelStore, settings: Settings) -> None:
    """When a file cannot be written to its end the caller is told so, and nothing of the model is left."""
    store.add(draft("a"))
    with files_no_larger_than(2**20), pytest.raises(StorageFull, match="no room"):
        store.add(draft("a", tree={"threshold": np.zeros(2**18)}))
    assert len(files_below(settings)) == 1
    assert [path.name for path in settings.models_directory().rglob(".new-*")] == []
    assert store.add(draft("a")).version == 2


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StorageFull), (errno.EDQUOT, StorageFull), (errno.EIO, OSError)]
)
def test_what_counts_as_full(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """A full disk and a used-up quota are told as such; a broken disk is not taken for one."""

    def refuse(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(error):
        store.add(draft())


def make_model_folder(files: ModelFiles, name: str) -> None:
    """Leave a folder as an interrupted write leaves it."""
    (files.folder / name).mkdir()
    (files.folder / name / "model.joblib").write_bytes(b"half")


def test_sweep(files: ModelFiles) -> None:
    """A sweep removes unfinished and unrecorded models, keeps recorded ones, and touches nothing else."""
    recorded, unrecorded, unfinished = "a" * 32, "b" * 32, ".new-" + "c" * 32
    for name in (recorded, unrecorded, unfinished, "notes", "A" * 32):
        make_model_folder(files, name)
    (files.folder / "readme.txt").write_text("mine")
    assert files.sweep(lambda: {recorded}) == [unfinished, unrecorded]
    assert sorted(path.name for path in files.folder.iterdir()) == [".lock", "A" * 32, recorded, "notes", "readme.txt"]
    assert (files.folder / recorded / "model.joblib").exists()


def test_a_sweep_spares_writers(files: ModelFiles) -> None:
    """While anyone writes, a sweep removes nothing, and does not even ask for the records."""

    def asked() -> set[str]:
        raise AssertionError

    make_model_folder(files, ".new-" + "c" * 32)
    with files.writing(), files.writing():
        assert ModelFiles(files.folder).sweep(asked) == []
    assert files.sweep(set) == [".new-" + "c" * 32]


def test_a_start_sweeps(open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """Opening a store removes leftovers and keeps every model, whichever namespace it is in."""
    store = open_store()
    record = store.add(draft())
    folder = model_file(settings, record.id).parents[1]
    make_model_folder(ModelFiles(folder), "b" * 32)
    assert open_store().find(record.id) == record
    assert sorted(path.parent.name for path in files_below(settings)) == [record.id]


def test_a_sweep_knows_no_other_database(settings: Settings, tmp_path: Path) -> None:
    """A store with an empty database beside a full directory deletes nothing of what the first one vouches for."""
    store = ModelStore.open(settings)
    record = store.add(draft())
    other = ModelStore.open(replace(settings, database_url=f"sqlite:///{tmp_path}/other.db"))
    assert other.list(limit=1) == ([], None)
    assert store.load_tree(record)["threshold"][1] == 1
    store.close()
    other.close()


def test_a_start_removes_data_that_no_record_vouches_for(
    open_store: Callable[[], ModelStore], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the change of the row and the removal of the file leaves a file, which the next start removes."""
    first = open_store()
    whole = replace(draft(), retention="data", data={"leaf": np.arange(3)})
    kept, dropped = first.add(whole), first.add(whole)
    with monkeypatch.context() as patched:
        patched.setattr(ModelFiles, "remove", lambda *_: None)  # the process dies here
        first.drop_data(dropped.id)
    assert len(list(settings.models_directory().glob("*/*/data.joblib"))) == 2
    again = open_store()
    assert [path.parent.name for path in settings.models_directory().glob("*/*/data.joblib")] == [kept.id]
    assert again.load_data(again.find(kept.id))
    assert again.load_tree(again.find(dropped.id))
    with pytest.raises(NotRetained):
        again.load_data(dropped)
