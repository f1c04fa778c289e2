"""Every way in which a model's file can be unusable is noticed, named, and gone again when the file is put right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest

from service.errors import DamagedModel
from service.settings import Settings
from service.store import ModelStore, inspection
from service.store.files import ModelFiles
from service.store.inspection import Inspector
from tests.store.making import draft, model_file

Damage = Callable[[Path], object]
DAMAGES: dict[str, Damage] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "changed in one bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
    "something else": lambda path: path.write_text("notes"),
    "of another model": lambda path: joblib.dump({"format": 1}, path),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "its folder is gone": lambda path: shutil.rmtree(path.parent),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("seen_before", [False, True], ids=["at start", "later"])
def test_a_damaged_file(
    open_store: Callable[[], ModelStore], settings: Settings, damage: Damage, seen_before: bool
) -> None:
    """The model is named, at the first look or at a later one, others are not; put back, nothing is amiss (S2)."""
    store = open_store()
    whole, broken = store.add(draft("whole")), store.add(draft("broken"))
    path = model_file(settings, broken.id)
    copy = settings.models_directory().parent / "copy"
    shutil.copytree(path.parent, copy)
    if seen_before:
        assert store.check() == []
    damage(path)
    for looking in (store, open_store()):
        (said,) = looking.check()
        assert f"broken@1 ({broken.id})" in said
        assert "whole" not in said
        assert looking.load_tree(whole)["threshold"][2] == 2
    with pytest.raises(DamagedModel, match=broken.id):
        open_store().load_tree(broken)
    shutil.rmtree(path.parent, ignore_errors=True)
    shutil.copytree(copy, path.parent)
    assert store.check() == []
    damage(path)
    store.delete("broken")
    assert store.check() == []


@pytest.mark.parametrize(("format_", "layout"), [(2, 1), (1, 99)])
def test_a_file_of_a_later_release(
    store: ModelStore, settings: Settings, monkeypatch: pytest.MonkeyPatch, format_: int, layout: int
) -> None:
    """What was written whole, but as this release cannot read it, is no error of ours, and named like damage."""
    with monkeypatch.context() as later:
        later.setattr("service.store.files.FORMAT", format_)
        record = store.add(draft(tree={"threshold": np.arange(3.0), "layout": layout}))
    (said,) = store.check()
    assert record.id in said


def test_data_that_are_gone(store: ModelStore, settings: Settings) -> None:
    """What was retained for the audit and is not there is told, though the model predicts."""
    record = store.add(draft("a").__class__(**{**vars(draft("a")), "data": {"x": np.arange(3)}, "retention": "data"}))
    assert store.check() == []
    model_file(settings, record.id, "data").unlink()
    (said,) = store.check()
    assert f"the data file of a@1 ({record.id})" in said


def test_many(store: ModelStore, settings: Settings) -> None:
    """Where very many are damaged, some are named and the others counted."""
    for _ in range(inspection.NAMED + 3):
        model_file(settings, store.add(draft()).id).unlink()
    said = store.check()
    assert len(said) == inspection.NAMED + 1
    assert said[-1].startswith("3 more")


def test_each_file_is_read_once(store: ModelStore, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has not changed since it was read is not read again; one look reads for a limited time."""
    ids = [store.add(draft()).id for _ in range(5)]
    read: list[str] = []
    load = ModelFiles.load
    monkeypatch.setattr(ModelFiles, "load", lambda self, *which: (read.append(which[0]), load(self, *which))[1])
    ticks = iter(range(10_000))
    slow = Inspector(store._database, store._files, lambda: next(ticks) * inspection.SECONDS * 0.4)
    slow.describe_broken()
    assert 0 < len(read) < 5
    for _ in range(9):
        assert slow.describe_broken() == []
    assert sorted(read) == sorted(ids)
