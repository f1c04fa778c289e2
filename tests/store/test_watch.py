"""A moment ends when anyone writes: what a process keeps of the database is never older than that."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.errors import NotFound
from service.settings import Settings
from service.store import ModelStore
from service.store.cache import UntilChanged
from service.store.watch import PRAGMA_SECONDS, SqliteWatch, Watch
from tests.store.making import draft, finish, hear, say, start


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def open_watch(tmp_path: Path, clock: Clock) -> Iterator[Callable[[], SqliteWatch]]:
    """Opens watches on one database."""
    opened: list[SqliteWatch] = []

    def open_one() -> SqliteWatch:
        connection = sqlite3.connect(tmp_path / "a.db")
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
        opened.append(SqliteWatch(connection, tmp_path / "a.db-mark", clock))
        return opened[-1]

    yield open_one
    for watch in opened:
        watch.close()


def test_a_mark_ends_the_moment_for_all(open_watch: Callable[[], SqliteWatch]) -> None:
    """Moments are equal until a mark is left, and then different at once, for who left it and for others."""
    first, second = open_watch(), open_watch()
    before = first.moment(), second.moment()
    assert (first.moment(), second.moment()) == before
    first.leave_mark()
    assert first.moment() != before[0]
    assert second.moment() != before[1]


def test_a_commit_without_a_mark_is_seen_soon(
    open_watch: Callable[[], SqliteWatch], tmp_path: Path, clock: Clock
) -> None:
    """Who writes to the file with another program ends the moment too, when the pragma is asked next."""
    watch = open_watch()
    before = watch.moment()
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    assert watch.moment() == before
    clock.now += PRAGMA_SECONDS
    after = watch.moment()
    assert after != before
    clock.now += PRAGMA_SECONDS
    assert watch.moment() == after


def test_a_database_that_does_not_answer_keeps_nothing(open_watch: Callable[[], SqliteWatch], clock: Clock) -> None:
    """If the pragma fails, no record is taken for fresh."""
    watch = open_watch()
    before = watch.moment()
    watch._connection.close()
    clock.now += PRAGMA_SECONDS
    assert watch.moment() != before


def test_without_a_pragma_a_moment_ends_by_itself(tmp_path: Path, clock: Clock) -> None:
    """Where other machines may write, a moment lasts until a mark is left on this one, and a second at most."""
    first, second = (Watch(tmp_path / "mark", clock) for _ in range(2))
    before = first.moment(), second.moment()
    clock.now += 0.99
    assert (first.moment(), second.moment()) == before
    second.leave_mark()
    assert first.moment() != before[0]
    marked = first.moment()
    clock.now += 0.01
    assert first.moment() != marked
    first.close()
    second.close()


def test_values_are_loaded_anew_in_another_moment() -> None:
    """Within a moment a value is loaded once; a value loaded while the moment changes is not kept for the new one."""
    now = 0
    kept: UntilChanged[str, int] = UntilChanged(2, lambda: now)
    assert [kept.get("a", lambda value=value: value) for value in range(3)] == [0, 0, 0]  # type: ignore[misc]
    now = 1
    assert kept.get("a", lambda: 3) == 3

    def change() -> int:
        nonlocal now
        now = 2
        return 4

    assert kept.get("b", change) == 4
    assert kept.get("b", lambda: 5) == 5


def test_find_asks_once_until_something_changes(store: ModelStore, open_store: Callable[[], ModelStore]) -> None:
    """A second find gives the same record; a new version, other tags or a deletion are seen by the very next one."""
    other = open_store()
    first = store.add(draft("a"))
    assert other.find("a") is other.find("a")
    second = store.add(draft("a"))
    assert (other.find("a").id, other.find("a@1").id) == (second.id, first.id)
    store.update("a", tags={"stage": "live"})
    assert dict(other.find("a").tags) == {"stage": "live"}
    store.delete("a@2")
    assert other.find("a").id == first.id
    store.delete("a")
    for reference in ("a", "a@1", first.id):
        with pytest.raises(NotFound):
            other.find(reference)


def test_another_process_is_heard_at_once(store: ModelStore, settings: Settings) -> None:
    """A hundred changes by another process, each seen by the next find here."""
    program = """
print("ready", flush=True)
for number in range(100):
    input()
    store.update("a", tags={"number": str(number)})
    print("done", flush=True)
"""
    store.add(draft("a"))
    other = start(settings, program)
    assert hear(other) == "ready"
    for number in range(100):
        store.find("a")
        say(other, "")
        assert hear(other) == "done"
        assert store.find("a").tags["number"] == str(number)
    finish(other)


def test_what_is_made_of_a_tree_is_made_once(store: ModelStore) -> None:
    """A model's file is turned into something once, and again only after it was forgotten."""
    record = store.add(draft("a"))
    made = store.load_as(record, lambda tree: [tree["threshold"].sum()])
    assert store.load_as(record, lambda tree: [tree["threshold"].sum()]) is made
    store.delete("a")
    with pytest.raises(NotFound):
        store.load_as(record, dict)
