"""The audit log tells of all that was done, once and whole, and shows where it was tampered with."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from service.errors import Conflict, InvalidRequest, JobStopped, NotFound, PreconditionFailed
from service.settings import Settings
from service.store import ModelStore
from service.store.records import Claim, LogDraft, LogEntry
from tests.store.making import draft, finish, start

WRITERS = 16
FORGERY = "UPDATE audit_log SET actor = 'forger', sha256 = :own WHERE number = :number"


@pytest.fixture
def store(store: ModelStore) -> ModelStore:
    """A store that has seen two trainings, a change, two moves of an alias, a pruning and a deletion."""
    for _ in range(2):
        store.add(draft("credit"))
    store.update("credit@1", tags={"stage": "test"})
    store.aliases.move("credit", "champion", 1)
    store.aliases.move("credit", "champion", 2)
    store.add(replace(draft("credit"), action="prune", body={"pruning": {"parent": {"id": "of"}}}))
    store.delete("credit@1")
    return store


def read(store: ModelStore) -> list[LogEntry]:
    """All entries, oldest first."""
    entries, cursor = store.log.list(limit=10_000)
    assert cursor is None
    return entries[::-1]


def tamper(store: ModelStore, statement: str, **values: object) -> None:
    """Change the database past the store."""
    with store._database.writing() as session:
        assert session.execute(text(statement), values).rowcount == 1  # type: ignore[attr-defined]


def test_what_is_told(store: ModelStore) -> None:
    """Every change has its entry, in order, with what it was about."""
    told = [(entry.number, entry.action, entry.name, entry.version, entry.alias) for entry in read(store)]
    assert told == [
        (1, "train", "credit", 1, None),
        (2, "train", "credit", 2, None),
        (3, "change", "credit", 1, None),
        (4, "move_alias", "credit", 1, "champion"),
        (5, "move_alias", "credit", 2, "champion"),
        (6, "prune", "credit", 3, None),
        (7, "delete", "credit", 1, None),
    ]
    store.aliases.move("credit", "champion", 3)
    store.aliases.roll_back("credit", "champion")
    store.aliases.delete("credit", "champion")
    assert [(e.action, e.version) for e in read(store)[7:]] == [
        ("move_alias", 3),
        ("roll_back_alias", 2),
        ("delete_alias", 2),
    ]
    assert read(store)[5].details["parent"] == "of"
    assert store.log.check().broken is None


def test_hashes_by_hand(store: ModelStore) -> None:
    """From what is listed alone, each hash is that of the rest as canonical JSON, and leads to the one before."""
    previous = "0" * 64
    for entry in read(store):
        content = asdict(entry)
        own = content.pop("sha256")
        assert content["previous"] == previous
        written = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(written.encode("ascii")).hexdigest() == own
        previous = own
    found = store.log.check()
    assert (found.entries, found.last_number, found.last_sha256, found.broken) == (7, 7, previous, None)


def test_the_hash_of_the_record(store: ModelStore) -> None:
    """The entry of a training vouches for the record and the files, as they come out of the database."""
    record = store.add(replace(draft("odd"), body={"algorithm": "é\u2028\0", "share": 0.1, "by": {"10": 1, "9": None}}))
    made = store.log.find_made(record.id)
    assert made is not None
    written = json.dumps(record.body, sort_keys=True, separators=(",", ":"))
    assert made.details["record_sha256"] == hashlib.sha256(written.encode()).hexdigest()
    assert made.details["tree_sha256"] == record.tree_sha256
    again = json.dumps(store.find(record.id).body, sort_keys=True, separators=(",", ":"))
    assert again == written
    assert store.log.find_made("0" * 32) is None


def test_what_fails_is_not_told(store: ModelStore) -> None:
    """A change that was refused, at whatever point, leaves no entry."""
    before = read(store)

    def refuse(_: object) -> None:
        raise PreconditionFailed("no")

    with pytest.raises(Conflict):
        store.delete("credit@2")
    with pytest.raises(PreconditionFailed):
        store.delete("credit@3", condition=refuse)
    with pytest.raises(PreconditionFailed):
        store.update("credit@3", tags={}, condition=refuse)
    with pytest.raises(PreconditionFailed):
        store.aliases.move("credit", "champion", 3, condition=refuse)
    with pytest.raises(JobStopped):
        store.add(draft("credit"), Claim("0" * 32, 1))
    with pytest.raises(NotFound):
        store.aliases.delete("credit", "challenger")
    store.aliases.move("credit", "champion", 2)
    assert read(store) == before
    assert store.add(draft("credit")).version == 4
    assert store.log.check().entries == len(before) + 1


def test_data_that_were_deleted(store: ModelStore) -> None:
    """That kept data are gone is told once, with the hash that they had."""
    record = store.add(replace(draft("kept"), data={"rows": [1, 2]}, retention="data"))
    for _ in range(2):
        store.drop_data("kept")
    (entry,) = store.log.list(limit=9, action="delete_data")[0]
    assert (entry.model, entry.details) == (record.id, {"retained_sha256": record.data_sha256, "retention": "data"})
    assert store.log.find_made(record.id).details["retained_sha256"] == record.data_sha256  # type: ignore[union-attr]
    assert store.log.check().broken is None


def test_what_is_not_told_does_not_happen(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the entry cannot be written, nothing is done."""
    store.aliases.move("credit", "champion", 3)

    def fail(*_: object) -> None:
        raise OSError("no room")

    for module in ("adding", "models", "aliases"):
        monkeypatch.setattr(f"service.store.{module}.append", fail)
    for change in (
        lambda: store.add(draft("credit")),
        lambda: store.delete("credit@2"),
        lambda: store.update("credit@3", description="new"),
        lambda: store.aliases.move("credit", "champion", 2),
        lambda: store.aliases.roll_back("credit", "champion"),
        lambda: store.aliases.delete("credit", "champion"),
    ):
        with pytest.raises(OSError, match="no room"):
            change()
    monkeypatch.undo()
    assert store.find("credit").version == 3
    assert store.find("credit@2").version == 2
    found = store.find("credit@champion")
    assert (found.version, found.description) == (3, "")


@pytest.mark.parametrize(
    ("statement", "broken", "reason"),
    [
        ("UPDATE audit_log SET action = 'change' WHERE number = 2", 2, "not what was written"),
        ("UPDATE audit_log SET time = '2020-01-01T00:00:00.000000+00:00' WHERE number = 1", 1, "not what was written"),
        ("UPDATE audit_log SET actor = 'me' WHERE number = 7", 7, "not what was written"),
        ("UPDATE audit_log SET version = NULL WHERE number = 3", 3, "not what was written"),
        ("UPDATE audit_log SET details = '{}' WHERE number = 5", 5, "not what was written"),
        ("UPDATE audit_log SET details = details || ' ' WHERE number = 5", 5, "not what was written"),
        ("UPDATE audit_log SET details = '{' WHERE number = 5", 5, "not what was written"),
        ("UPDATE audit_log SET sha256 = previous WHERE number = 4", 4, "not what was written"),
        ("UPDATE audit_log SET previous = sha256 WHERE number = 4", 4, "does not continue"),
        ("DELETE FROM audit_log WHERE number = 1", 1, "missing"),
        ("DELETE FROM audit_log WHERE number = 4", 4, "missing"),
        ("DELETE FROM audit_log WHERE number = 7", 7, "missing"),
        ("UPDATE audit_log SET number = 9 WHERE number = 7", 7, "missing"),
        ("UPDATE audit_heads SET number = 6", 7, "not written by the service"),
        ("UPDATE audit_heads SET number = 8", 8, "missing"),
        ("UPDATE audit_heads SET sha256 = namespace", 7, "written last"),
        ("DELETE FROM audit_heads", 1, "not written by the service"),
    ],
)
def test_tampering(store: ModelStore, statement: str, broken: int, reason: str) -> None:
    """Whatever is changed in the database by hand, the check names the first entry that is not as it was."""
    tamper(store, statement)
    found = store.log.check()
    assert found.broken == broken
    assert found.reason is not None
    assert reason in found.reason


def test_an_entry_with_a_hash_of_its_own(store: ModelStore) -> None:
    """Who changes an entry and works out its hash breaks the chain at the next one, and at the end if it is last."""
    for number, broken in ((3, 4), (7, 4)):
        content = asdict(read(store)[number - 1])
        del content["sha256"]
        content["actor"] = "forger"
        written = json.dumps(content, sort_keys=True, separators=(",", ":"))
        own = hashlib.sha256(written.encode()).hexdigest()
        tamper(store, FORGERY, own=own, number=number)
        assert store.log.check().broken == broken


def test_a_chain_that_was_written_anew(store: ModelStore) -> None:
    """Who rewrites the last entry and the end of the chain is found out by a hash that was kept elsewhere."""
    kept = store.log.check()
    assert store.log.check(kept.last_number, kept.last_sha256).broken is None
    content = asdict(read(store)[-1]) | {"actor": "forger"}
    del content["sha256"]
    own = hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    tamper(store, FORGERY, own=own, number=7)
    tamper(store, "UPDATE audit_heads SET sha256 = :own", own=own)
    assert store.log.check().broken is None
    assert store.log.check(kept.last_number, kept.last_sha256).broken == 7
    tamper(store, "DELETE FROM audit_log WHERE number = 7")
    tamper(store, "UPDATE audit_heads SET number = 6, sha256 = :own", own=content["previous"])
    assert store.log.check().broken is None
    assert store.log.check(kept.last_number, kept.last_sha256).broken == 7


def test_an_unreadable_entry_is_listed(store: ModelStore) -> None:
    """Details that someone broke do not keep the others from being read."""
    tamper(store, "UPDATE audit_log SET details = '{' WHERE number = 5")
    assert read(store)[4].details == {"unreadable": "{"}


def test_filters(open_store: Callable[[], ModelStore]) -> None:
    """By id, name, version, alias, action and time, also of models that are gone."""
    empty = open_store()
    first = empty.add(draft("a"))
    empty.add(draft("b"))
    empty.add(draft("a"))
    empty.aliases.move("a", "champion", 2)
    empty.delete(first.id)

    def numbers(**asked: object) -> list[int]:
        return [entry.number for entry in empty.log.list(limit=100, **asked)[0]]  # type: ignore[arg-type]

    assert numbers() == [5, 4, 3, 2, 1]
    assert numbers(model="a") == [5, 4, 3, 1]
    assert numbers(model=first.id) == numbers(model="a@1") == [5, 1]
    assert numbers(model="a@champion") == [4]
    assert numbers(model="../a") == numbers(model="c") == []
    assert numbers(action="train") == [3, 2, 1]
    assert numbers(action="delete", model="a") == [5]
    times = [datetime.fromisoformat(entry.time) for entry in read(empty)]
    assert times == sorted(times)
    assert numbers(since=times[3]) == [5, 4]
    assert numbers(until=times[3].astimezone(tz=None)) == [3, 2, 1]
    assert numbers(since=datetime.now(UTC) + timedelta(days=1)) == []


def test_pages(store: ModelStore) -> None:
    """Pages are whole and in order, whatever is added meanwhile."""
    seen, cursor = [], None
    while True:
        entries, cursor = store.log.list(limit=2, cursor=cursor)
        seen += [entry.number for entry in entries]
        store.add(draft())
        if cursor is None:
            break
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    for cursor in ("x", "-1", "1.5", "²", "9" * 19):
        with pytest.raises(InvalidRequest):
            store.log.list(limit=2, cursor=cursor)


def test_many_writers(open_store: Callable[[], ModelStore]) -> None:
    """While 16 add, move and delete, and some fail, what was done is told once, and the chain is whole."""
    empty = open_store()
    empty.add(draft("credit"))

    def write(seed: int) -> int:
        chance, done, made = random.Random(seed), 0, list[str]()  # noqa: S311 - to be repeated
        for _ in range(4):
            record = empty.add(draft("credit"))
            empty.aliases.move("credit", f"alias-{seed}", record.version or 0)
            empty.update(record.id, description="new")
            done, made = done + 3, [*made, record.id]
            with suppress(Conflict, NotFound):  # the alias means the newest of them
                empty.delete(chance.choice(made))
                done += 1
            assert empty.log.check().broken is None
        return done

    with ThreadPoolExecutor(WRITERS) as pool:
        done = sum(pool.map(write, range(WRITERS)))
    found = empty.log.check()
    assert (found.entries, found.broken) == (1 + done, None)
    assert [entry.number for entry in read(empty)] == list(range(1, 2 + done))


def test_many_processes(open_store: Callable[[], ModelStore], settings: Settings) -> None:
    """Four processes that write at once make one chain."""
    empty = open_store()
    program = "for _ in range(8):\n    store.update(store.add(draft('credit')).id, description='new')\nstore.close()\n"
    for process in [start(settings, program) for _ in range(4)]:
        finish(process)
    found = empty.log.check()
    assert (found.entries, found.broken) == (64, None)


def test_a_job_that_ends(store: ModelStore) -> None:
    """What a job found is told by the commit of its success, and not where it was cancelled or taken over meanwhile."""
    entry = LogDraft("verify", details={"verified": True})
    for job_id, cancelled in (("1" * 32, False), ("2" * 32, True)):
        store.jobs.add(job_id, "verify", {}, "0" * 64)
        claim = store.jobs.begin(job_id, "w", 2)
        assert claim is not None
        if cancelled:
            store.jobs.cancel(job_id)
        store.jobs.end(claim, "succeeded", result={}, entry=entry)
        assert not store.jobs.end(claim, "succeeded", result={}, entry=entry)
    assert [e.action for e in read(store)].count("verify") == 1
    assert store.log.check().broken is None


def test_an_empty_log(open_store: Callable[[], ModelStore]) -> None:
    """An empty chain is whole."""
    found = open_store().log.check()
    assert (found.entries, found.last_number, found.last_sha256, found.broken) == (0, 0, "0" * 64, None)
