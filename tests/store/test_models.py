"""What goes into the store comes out of it, under the names and in the order that were promised."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy.exc import StatementError

from service.errors import Conflict, InvalidRequest, NotFound, NotRetained, SettingsError
from service.settings import Settings
from service.store import ModelDraft, ModelStore
from tests.store.making import draft, files_below


def test_a_model_comes_back(store: ModelStore) -> None:
    """Record, tree and retained data are what was stored, to the order of keys and the types of labels."""
    body = {"z": [1, 1.0, True, "1", None, 2**53 + 1], "a": {"é": "\0"}}
    tree = {
        "threshold": np.array([0.1, np.inf, np.nan]),
        "empty": np.zeros((0, 3), np.int32),
        "classes": ["a", 1, True],
    }
    data = {"codes": np.arange(6, dtype=np.uint8).reshape(2, 3)}
    tags = {"team": "x", "a": "ü"}
    before = datetime.now(UTC)
    added = store.add(ModelDraft("iris", body, tree, data, "data", "from 1936", tags))

    record = store.find(added.id)
    assert record == added
    assert (record.name, record.version, record.retention, record.description) == ("iris", 1, "data", "from 1936")
    assert before <= record.created <= datetime.now(UTC)
    assert repr(record.body) == repr(body)
    assert list(record.tags.items()) == list(tags.items())
    loaded = store.load_tree(record)
    assert list(loaded) == list(tree)
    np.testing.assert_array_equal(loaded["threshold"], tree["threshold"])
    assert loaded["empty"].shape == (0, 3)
    assert repr(loaded["classes"]) == repr(tree["classes"])
    codes = store.load_data(record)["codes"]
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, data["codes"])


def test_without_data(store: ModelStore) -> None:
    """A model that retains nothing has no second file, and says what to do about it."""
    record = store.add(draft())
    assert record.data_sha256 is None
    with pytest.raises(NotRetained, match="retain='data'"):
        store.load_data(record)


def test_without_a_name(store: ModelStore) -> None:
    """Models without a name have no version either, and there can be several."""
    records = [store.add(draft()) for _ in range(2)]
    assert [(record.name, record.version) for record in records] == [(None, None)] * 2
    assert [store.find(record.id) for record in records] == records


def test_versions(store: ModelStore) -> None:
    """Each name counts from 1, and a bare name means its newest version."""
    records = [store.add(draft(name)) for name in ("a", "b", "a", "a")]
    assert [record.version for record in records] == [1, 1, 2, 3]
    assert store.find("a") == records[3]
    assert store.find("a@2") == records[2]
    assert store.find("b") == records[1]


def test_a_version_is_given_out_once(store: ModelStore) -> None:
    """The number of a deleted model goes to no other, so ``name@3`` cannot come to mean another model."""
    store.add(draft("a"))
    store.add(draft("a"))
    store.delete("a@2")
    assert store.find("a").version == 1
    assert store.add(draft("a")).version == 3
    with pytest.raises(NotFound):
        store.find("a@2")


def test_versions_from_threads(store: ModelStore) -> None:
    """Threads that train the same name at once get every number once."""
    with ThreadPoolExecutor(8) as pool:
        records = list(pool.map(lambda _: store.add(draft("a")), range(32)))
    assert sorted(record.version or 0 for record in records) == list(range(1, 33))


def test_a_failed_add_leaves_no_gap(store: ModelStore, settings: Settings) -> None:
    """When the record cannot be written, its version is given to the next and its files are gone."""
    store.add(draft("a"))
    with pytest.raises((StatementError, ValueError), match="not JSON compliant"):
        store.add(replace(draft("a"), body={"gain": float("nan")}))
    assert len(files_below(settings)) == 1
    assert store.add(draft("a")).version == 2


def test_delete(store: ModelStore, settings: Settings) -> None:
    """A deleted model is found by neither id nor name, and its files are gone."""
    record = store.add(replace(draft("a"), data={"codes": np.arange(3)}, retention="data"))
    store.load_tree(record)
    store.load_data(record)
    store.delete("a")
    for reference in (record.id, "a", "a@1"):
        with pytest.raises(NotFound):
            store.find(reference)
    with pytest.raises(NotFound):
        store.load_tree(record)
    with pytest.raises(NotFound):
        store.load_data(record)
    assert files_below(settings) == []


def test_delete_needs_to_know_which(store: ModelStore) -> None:
    """A bare name with several versions is not deleted; a version is, and then the name is clear again."""
    first, second = store.add(draft("a")), store.add(draft("a"))
    with pytest.raises(Conflict, match="a@2"):
        store.delete("a")
    assert store.find("a") == second
    store.delete("a@2")
    assert store.find("a") == first
    store.delete("a")
    assert store.list(limit=10) == ([], None)


def test_update(store: ModelStore) -> None:
    """Tags and description are replaced, each alone or both; nothing else changes but the count of changes."""
    record = store.add(replace(draft("a", tags={"x": "1", "y": "2"}), description="old"))
    assert store.update("a", description="new") == replace(record, description="new", revision=2)
    updated = replace(record, description="new", tags={"y": "3", "z": "4"}, revision=3)
    assert store.update("a@1", tags={"y": "3", "z": "4"}) == updated
    assert store.find(record.id) == updated
    assert store.update(record.id, tags={}, description="").tags == {}


def test_updates_at_once(store: ModelStore) -> None:
    """Threads that change one model at the same time wait for each other, and every change is made."""
    store.add(draft("a"))

    def change(number: int) -> str:
        return store.update("a", description=str(number)).description

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(change, range(100))) == [str(number) for number in range(100)]


def test_an_update_that_is_refused(store: ModelStore) -> None:
    """An update with an unusable tag, or of no model, changes nothing."""
    record = store.add(draft("a", tags={"x": "1"}))
    with pytest.raises(InvalidRequest):
        store.update("a", tags={"x": "\0"}, description="new")
    with pytest.raises(NotFound):
        store.update("b", description="new")
    assert store.find("a") == record


def test_listing_is_newest_first(store: ModelStore) -> None:
    """Pages follow each other from the newest to the oldest and end with no cursor."""
    ids = [store.add(draft()).id for _ in range(5)]
    first, cursor = store.list(limit=2)
    second, after = store.list(limit=2, cursor=cursor)
    third, end = store.list(limit=2, cursor=after)
    assert [record.id for record in first + second + third] == ids[::-1]
    assert end is None


def test_listing_has_no_empty_last_page(store: ModelStore) -> None:
    """A page that ends with the oldest model has no cursor, even when it is full."""
    store.add(draft())
    assert store.list(limit=1)[1] is None


def test_listing_of_models_of_one_instant(settings: Settings) -> None:
    """Models with the same time of creation appear once each, however the pages fall."""
    store = ModelStore.open(settings, clock=lambda: datetime(2024, 2, 29, tzinfo=UTC))
    ids = {store.add(draft()).id for _ in range(5)}
    seen, cursor = [], None
    for _ in range(5):
        page, cursor = store.list(limit=1, cursor=cursor)
        seen += [record.id for record in page]
    assert set(seen) == ids
    assert cursor is None
    store.close()


def test_time_zones_do_not_reorder(settings: Settings) -> None:
    """Times of creation compare as instants, whatever zone the clock speaks."""
    times = [
        datetime.fromisoformat("2024-01-01T12:00:00+05:00"),  # 07:00 UTC
        datetime.fromisoformat("2024-01-01T08:00:00+00:00"),
    ]
    clock = iter(times)
    store = ModelStore.open(settings, clock=lambda: next(clock))
    old, new = store.add(draft()), store.add(draft())
    assert store.list(limit=2)[0] == [new, old]
    assert store.find(old.id).created == times[0]
    assert store.find(old.id).created.utcoffset() == timedelta(0)
    store.close()


def test_a_cursor_outlives_changes(store: ModelStore) -> None:
    """Models added or deleted between two pages move nothing: the second page continues where the first ended."""
    ids = [store.add(draft()).id for _ in range(4)]
    _, cursor = store.list(limit=2)
    store.add(draft())
    store.delete(ids[2])  # the last one of the first page
    assert [record.id for record in store.list(limit=2, cursor=cursor)[0]] == [ids[1], ids[0]]


@pytest.mark.parametrize("cursor", ["", "x", "é", "!!!!", "MjAyNC0wMS0wMSB4", "AAAA" * 50])
def test_a_cursor_that_is_none(store: ModelStore, cursor: str) -> None:
    """What is not a cursor is refused with its place."""
    with pytest.raises(InvalidRequest) as caught:
        store.list(limit=1, cursor=cursor)
    assert caught.value.faults[0].place == "/cursor"


def test_listing_by_name_and_tag(store: ModelStore) -> None:
    """A listing can be of one name, of a tag with any value or with one value, and of both."""
    a1 = store.add(draft("a", tags={"env": "test", "test": "x"}))
    a2 = store.add(draft("a", tags={"env": "live"}))
    b1 = store.add(draft("b", tags={"env": "test"}))
    store.add(draft("c"))

    def listed(name: str | None = None, tag: tuple[str, str | None] | None = None) -> list[str]:
        return [record.id for record in store.list(name=name, tag=tag, limit=10)[0]]

    assert listed(name="a") == [a2.id, a1.id]
    assert listed(tag=("env", None)) == [b1.id, a2.id, a1.id]
    assert listed(tag=("env", "test")) == [b1.id, a1.id]
    assert listed(name="a", tag=("env", "test")) == [a1.id]
    assert listed(tag=("env", "x")) == []
    assert listed(name="../a") == []


def test_another_worker_sees_it(open_store: Callable[[], ModelStore]) -> None:
    """What one store adds, changes and deletes, a second one on the same files sees at its next question."""
    one, other = open_store(), open_store()
    record = one.add(draft("a"))
    assert other.find("a") == record
    other.load_tree(record)
    one.update("a", description="new")
    assert other.find("a").description == "new"
    one.delete("a")
    with pytest.raises(NotFound):
        other.find("a")


def test_models_survive_a_restart(settings: Settings) -> None:
    """Closing the store and opening it again loses nothing."""
    store = ModelStore.open(settings)
    record = store.add(draft("a"))
    store.close()
    again = ModelStore.open(settings)
    assert again.find("a") == record
    assert again.load_tree(record)["threshold"][4] == 4
    again.close()


def test_ready(store: ModelStore, settings: Settings) -> None:
    """A store that works has no problem to tell; one whose directory is gone says so, without its path."""
    assert store.check() == []
    folder = store._files.folder
    folder.rename(folder.with_name("elsewhere"))
    assert store.check() == ["the models directory cannot be written to"]


def test_a_directory_that_is_a_file(settings: Settings) -> None:
    """A models directory that cannot be one stops the start and names the variable."""
    settings.models_directory().write_text("")
    with pytest.raises(SettingsError, match="TREEWRIGHT_MODELS_URL"):
        ModelStore.open(settings)
