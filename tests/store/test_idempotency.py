"""Under one key the work is done once; its answer is kept, and what a crash left is known."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from service.errors import Conflict, InvalidRequest
from service.store import ModelStore
from service.store.idempotency import KEPT, LEASE, KeyStore
from service.store.records import KeptAnswer, KeyClaim
from tests.jobs.making import add_job
from tests.store.making import draft

ANSWER = KeptAnswer(201, {"Location": "/models/1"}, b'{"id": "1"}')


class Clock:
    """A clock that the test moves."""

    now = datetime(2025, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The time of the keys."""
    return Clock()


@pytest.fixture
def keys(store: ModelStore, clock: Clock) -> KeyStore:
    """The keys of a store."""
    return KeyStore(store._database, clock)


def claim(keys: KeyStore, key: str = "k", fingerprint: str = "f") -> KeyClaim:
    """Claim a key that is free."""
    claim = keys.claim(key, fingerprint)
    assert isinstance(claim, KeyClaim)
    return claim


def test_the_answer_is_kept(store: ModelStore, keys: KeyStore) -> None:
    """Who comes later gets the answer to the byte, with the model that was made."""
    mine = claim(keys)
    record = store.add(draft("a"), key=mine)
    keys.keep(mine, ANSWER)
    kept = keys.claim("k", "f")
    assert kept == KeptAnswer(201, {"Location": "/models/1"}, b'{"id": "1"}', record.id)


def test_one_at_a_time(keys: KeyStore) -> None:
    """While one is at work, others hear so; of sixteen who come at once, one works."""
    claim(keys)
    with pytest.raises(Conflict):
        keys.claim("k", "f")

    def come(_: int) -> bool:
        try:
            return isinstance(keys.claim("other", "f"), KeyClaim)
        except Conflict:
            return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(come, range(16))) == 1


def test_another_request(store: ModelStore, keys: KeyStore) -> None:
    """A key that comes with another body is refused, while the first is at work and after it."""
    mine = claim(keys)
    with pytest.raises(InvalidRequest):
        keys.claim("k", "other")
    store.add(draft("a"), key=mine)
    with pytest.raises(InvalidRequest):
        keys.claim("k", "other")


def test_given_back(keys: KeyStore) -> None:
    """Work that made nothing gives its key back, for whatever request comes next."""
    keys.release(claim(keys))
    claim(keys, fingerprint="other")


def test_a_crash_before_the_model(store: ModelStore, keys: KeyStore, clock: Clock) -> None:
    """A holder that died is replaced after its lease; should it come back, it can store nothing."""
    dead = claim(keys)
    clock.now += LEASE / 2
    keys.show_life(dead)
    clock.now += LEASE
    with pytest.raises(Conflict):
        keys.claim("k", "f")
    clock.now += timedelta(seconds=1)
    mine = claim(keys)
    with pytest.raises(Conflict):
        store.add(draft("a"), key=dead)
    assert store.list(limit=1) == ([], None)
    store.add(draft("a"), key=mine)


def test_a_crash_after_the_model(store: ModelStore, keys: KeyStore) -> None:
    """A model that was stored just before the crash is the answer: it is not made twice."""
    record = store.add(draft("a"), key=claim(keys))
    assert keys.claim("k", "f") == KeptAnswer(model_id=record.id)


def test_a_crash_after_the_job(store: ModelStore, keys: KeyStore) -> None:
    """So is a job."""
    job = add_job(store)
    again = store.jobs.add("0" * 32, "test", {}, job.request_sha256, claim(keys))
    assert keys.claim("k", "f") == KeptAnswer(job_id=again.id)


def test_forgotten_after_a_day(store: ModelStore, keys: KeyStore, clock: Clock) -> None:
    """A key can be used anew when its answer is no longer kept."""
    store.add(draft("a"), key=claim(keys))
    clock.now += KEPT + timedelta(seconds=1)
    claim(keys, fingerprint="other")
