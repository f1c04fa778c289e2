"""Aliases move in one step, back again, and never mean a version that is not there."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from service.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed
from service.store import ModelStore
from service.store.records import AliasRecord
from tests.store.making import draft

WRITERS = 16


@pytest.fixture
def store(store: ModelStore) -> ModelStore:
    """A store with three versions of a name, the first of them its champion."""
    for _ in range(3):
        store.add(draft("credit"))
    store.aliases.move("credit", "champion", 1)
    return store


def test_a_reference(store: ModelStore) -> None:
    """`name@alias` finds the version that the alias means, at once after each move."""
    for version in (1, 3, 2):
        store.aliases.move("credit", "champion", version)
        assert store.find("credit@champion").version == version


def test_the_way_back(store: ModelStore) -> None:
    """A rollback leads to the version before; a second one undoes the first; a move to where it is changes nothing."""
    moved = store.aliases.move("credit", "champion", 3)
    assert (moved.version, moved.previous) == (3, 1)
    assert store.aliases.move("credit", "champion", 3) == moved
    back = store.aliases.roll_back("credit", "champion")
    assert (back.version, back.previous) == (1, 3)
    assert store.aliases.roll_back("credit", "champion").version == 3


def test_no_way_back(store: ModelStore) -> None:
    """An alias that never moved has no way back, nor one whose previous version was deleted."""
    with pytest.raises(Conflict):
        store.aliases.roll_back("credit", "champion")
    store.aliases.move("credit", "champion", 2)
    store.delete("credit@1")
    assert store.aliases.find("credit", "champion").previous is None
    with pytest.raises(Conflict):
        store.aliases.roll_back("credit", "champion")


def test_what_an_alias_means_cannot_be_deleted(store: ModelStore) -> None:
    """By whatever reference: the version, the alias, the id; after the alias has moved it can."""
    for reference in ("credit@1", "credit@champion", store.find("credit@1").id):
        with pytest.raises(Conflict, match="champion"):
            store.delete(reference)
    store.aliases.move("credit", "champion", 2)
    store.delete("credit@1")
    assert store.find("credit@champion").version == 2


def test_what_is_not_there(store: ModelStore) -> None:
    """No version, no name, no alias."""
    for name, version in (("credit", 4), ("debit", 1), ("../etc", 1)):
        with pytest.raises(NotFound):
            store.aliases.move(name, "champion", version)
    with pytest.raises(NotFound):
        store.find("credit@challenger")
    with pytest.raises(NotFound):
        store.aliases.find("credit", "challenger")
    with pytest.raises(NotFound):
        store.aliases.list("debit")
    with pytest.raises(NotFound):
        store.aliases.delete("credit", "challenger")
    with pytest.raises(NotFound):
        store.aliases.roll_back("credit", "1")


@pytest.mark.parametrize("alias", ["", "1", "3", "A", "a b", "-a", "a" * 65, "a@b", "a/b", "%61", "é", "a\0"])
def test_what_cannot_be_an_alias(store: ModelStore, alias: str) -> None:
    """An alias is no number, and nothing that could be taken for a path or another reference."""
    with pytest.raises(InvalidRequest) as caught:
        store.aliases.move("credit", alias, 1)
    assert [fault.place for fault in caught.value.faults] == ["/alias"]
    with pytest.raises(NotFound):
        store.aliases.find("credit", alias)


def test_listed_by_the_alphabet(store: ModelStore) -> None:
    """All aliases of a name, none of another's."""
    store.add(draft("other"))
    store.aliases.move("other", "champion", 1)
    store.aliases.move("credit", "beta", 3)
    assert [(alias.alias, alias.version) for alias in store.aliases.list("credit")] == [("beta", 3), ("champion", 1)]
    store.aliases.delete("credit", "beta")
    assert [alias.alias for alias in store.aliases.list("credit")] == ["champion"]


def test_conditions(store: ModelStore) -> None:
    """A condition sees what is there, before anything changes, and can stop the change."""

    def refuse(_: AliasRecord | None) -> None:
        raise PreconditionFailed("no")

    seen: list[AliasRecord | None] = []
    store.aliases.move("credit", "champion", 2, condition=seen.append)
    store.aliases.move("credit", "beta", 2, condition=seen.append)
    assert seen[0] is not None
    assert (seen[0].version, seen[1]) == (1, None)
    for change in (
        lambda: store.aliases.move("credit", "champion", 3, condition=refuse),
        lambda: store.aliases.roll_back("credit", "champion", condition=refuse),
        lambda: store.aliases.delete("credit", "champion", condition=refuse),
    ):
        with pytest.raises(PreconditionFailed):
            change()
    assert store.find("credit@champion").version == 2


def test_many_writers(store: ModelStore) -> None:
    """While 16 add versions, move the champion and delete, no reader is without one, and no number is lost."""
    stop = threading.Event()

    def write(seed: int) -> list[int]:
        chance = random.Random(seed)  # noqa: S311 - to be repeated
        made = []
        for _ in range(3):
            version = store.add(draft("credit")).version
            assert version is not None
            made.append(version)
            with suppress(NotFound):
                store.aliases.move("credit", "champion", version)
            with suppress(Conflict):
                store.aliases.roll_back("credit", "champion")
            with suppress(Conflict, NotFound):
                store.delete(f"credit@{chance.choice(made)}")
        return made

    def read() -> int:
        found = 0
        while not stop.is_set():
            assert store.find("credit@champion").name == "credit"
            found += 1
        return found

    with ThreadPoolExecutor(WRITERS + 2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            made = [version for versions in pool.map(write, range(WRITERS)) for version in versions]
        finally:
            stop.set()
        assert all(reader.result() > 0 for reader in readers)
    assert sorted(made) == list(range(4, 4 + 3 * WRITERS))
    assert store.find("credit@champion")
