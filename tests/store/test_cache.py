"""The most recently used values stay, and no more than were asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.store.cache import RecentlyUsed


@given(st.integers(1, 4), st.lists(st.integers(0, 6)))
def test_the_least_recently_used_goes(size: int, keys: list[int]) -> None:
    """After any sequence of uses exactly the last ``size`` distinct keys need no loading."""
    cache: RecentlyUsed[int, str] = RecentlyUsed(size)
    for key in keys:
        cache.get(key, lambda: "first")
    recent = list(dict.fromkeys(reversed(keys)))[:size]
    assert all(cache.get(key, lambda: "again") == "first" for key in recent)
    unused = set(range(7)) - set(recent)
    assert all(cache.get(key, lambda: "again") == "again" for key in unused)


def test_a_failed_load_is_not_kept() -> None:
    """An error while loading reaches the caller, and the next one loads again."""
    cache: RecentlyUsed[str, int] = RecentlyUsed(1)
    try:
        cache.get("a", lambda: 1 // 0)
    except ZeroDivisionError:
        assert cache.get("a", lambda: 7) == 7
    else:
        raise AssertionError


def test_drop() -> None:
    """A dropped value is loaded anew, and dropping what is not there does nothing."""
    cache: RecentlyUsed[str, int] = RecentlyUsed(1)
    cache.drop("a")
    cache.get("a", lambda: 1)
    cache.drop("a")
    assert cache.get("a", lambda: 2) == 2
