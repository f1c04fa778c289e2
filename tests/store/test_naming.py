"""What names a model, and that nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequest, NotFound
from service.settings import Settings
from service.store import ModelStore
from service.store.naming import Reference, check_description, check_tags, is_name, new_id, parse_reference
from tests.store.making import draft, files_below

HEX = "0123456789abcdef" * 2
# Names with a slash, an escape, dots, a trailing space or NUL: mlflow issue 3738, ExoPlayer issue 2267.
NO_NAMES = [
    "",
    "/",
    "%6f",
    "..",
    ".",
    "a ",
    "a\n",
    "a\0",
    "a" * 300,
    "a" * 129,
    "A",
    "é",
    "-a",
    "a/../b",
    "a@1",
    "a%2fb",
    HEX,
]


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_name_is_refused_at_creation(store: ModelStore, settings: Settings, name: str) -> None:
    """A name that cannot be one is refused with its place, and nothing is written."""
    with pytest.raises(InvalidRequest) as caught:
        store.add(draft(name))
    assert [fault.place for fault in caught.value.faults] == ["/name"]
    assert files_below(settings) == []
    assert store.list(limit=10) == ([], None)


@pytest.mark.parametrize(
    "reference",
    [
        *(name for name in NO_NAMES if name != "a@1"),
        "a@",
        "a@0",
        "a@01",
        "a@-1",
        "a@1.0",
        "a@1 ",
        "a@9999999999",
        "a@Champion",
        "a@b@c",
    ],
)
def test_no_name_refers_to_nothing(store: ModelStore, reference: str) -> None:
    """What is neither an id, a name nor a version is not found, whatever it looks like."""
    store.add(draft("a"))
    with pytest.raises(NotFound):
        store.find(reference)
    with pytest.raises(NotFound):
        store.delete(reference)


@pytest.mark.parametrize("name", ["a", "0", "a" * 128, "iris", "a.b_c-d", "a..", HEX[:31], HEX + "0"])
def test_names(store: ModelStore, name: str) -> None:
    """Every name of the promised form is accepted and found again."""
    assert store.find(store.add(draft(name)).name or "").name == name


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("iris", Reference(name="iris")),
        ("iris@3", Reference(name="iris", version=3)),
        (HEX, Reference(id=HEX)),
        (HEX + "@1", None),
        (HEX.upper(), None),
    ],
)
def test_references(text: str, reference: Reference | None) -> None:
    """An id, a name and a name with a version are told apart by their form alone."""
    assert parse_reference(text) == reference


@given(st.text(max_size=200))
def test_any_text_is_a_reference_or_not(text: str) -> None:
    """Reading a reference never fails, and what passes for a name has only harmless characters."""
    parsed = parse_reference(text)
    if parsed is not None and parsed.name is not None:
        assert set(parsed.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert is_name(parsed.name)


def test_ids_are_no_names() -> None:
    """A new id reads as an id, and never as a name."""
    chosen = new_id()
    assert parse_reference(chosen) == Reference(id=chosen)
    assert not is_name(chosen)


@pytest.mark.parametrize(
    ("tags", "place"),
    [
        ({"": "x"}, "/tags/"),
        ({"a/b": "\0"}, "/tags/a~1b"),
        ({"a": "\ud800"}, "/tags/a"),
        ({"a" * 129: "x"}, "/tags/" + "a" * 128),
        ({"a": "x" * 10_001}, "/tags/a"),
        ({str(i): "x" for i in range(65)}, "/tags"),
    ],
)
def test_tags_that_cannot_be_kept(tags: dict[str, str], place: str) -> None:
    """A tag that is too long or that a database cannot hold is refused with its place."""
    with pytest.raises(InvalidRequest) as caught:
        check_tags(tags)
    assert [fault.place for fault in caught.value.faults] == [place]


def test_descriptions_that_cannot_be_kept() -> None:
    """A description may be long and in any language, but not endless, and without NUL."""
    check_description("é" * 10_000)
    for text in ("x" * 10_001, "a\0"):
        with pytest.raises(InvalidRequest):
            check_description(text)
