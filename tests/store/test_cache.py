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


@given(st.integers(1, 9), st.lists(st.integers(1, 10)))
def test_values_count_by_their_weight(size: int, keys: list[int]) -> None:
    """Of values that weigh differently, the latest that fit together are kept, and one that never fits is not."""
    cache: RecentlyUsed[int, int] = RecentlyUsed(size, lambda value: value)
    loaded: list[int] = []
    for key in keys:
        cache.get(key, lambda key=key: loaded.append(key) or key)  # type: ignore[misc] # a default binds it
    fitting = [key for key in dict.fromkeys(reversed(keys)) if key <= size]
    newest = next((place for place in range(len(fitting) + 1) if sum(fitting[: place + 1]) > size), len(fitting))
    loaded.clear()
    for key in fitting[:newest]:
        assert cache.get(key, lambda key=key: loaded.append(key) or key) == key  # type: ignore[misc]
    assert loaded == []
    cache.get(size + 1, lambda: size + 1)
    assert cache.get(size + 1, lambda: 0) == 0


def test_what_is_offered_drives_nothing_out() -> None:
    """An offer takes the place of its key's value or free room; where both are too small all stays as it was."""
    cache: RecentlyUsed[str, int] = RecentlyUsed(10, lambda value: value)
    cache.get("a", lambda: 4)
    cache.get("b", lambda: 3)
    cache.offer("b", 7)
    assert (cache.peek("a"), cache.peek("b")) == (4, 3)
    cache.offer("b", 6)
    cache.offer("c", 1)
    assert (cache.peek("a"), cache.peek("b"), cache.peek("c")) == (4, 6, None)
