"""What is said of columns beforehand: by a request's schema, and by a model's record."""

from __future__ import annotations

import pytest

from service.core.errors import InvalidData
from service.readers.cells import Declared
from service.readers.declarations import declare_features, read_declarations


def test_both_forms() -> None:
    """A kind alone and an object with a kind say the same; categories keep their order."""
    schema = {
        "a": "nominal",
        "b": {"kind": "nominal"},
        "c": {"kind": "ordinal", "categories": ["S", "M", 3]},
        "d": {"kind": "nominal", "categories": ["z", "a"]},
    }
    declared = read_declarations(schema)
    assert declared == {
        "a": Declared("nominal"),
        "b": Declared("nominal"),
        "c": Declared("ordinal", ("S", "M", 3)),
        "d": Declared("nominal", ("z", "a")),
    }


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("numeral", "one of numeric, boolean"),
        ({"kind": "text"}, "one of numeric, boolean"),
        ({}, "one of numeric, boolean"),
        ({"kind": ["nominal"]}, "one of numeric, boolean"),
        (None, "an object with `kind`"),
        (["nominal"], "an object with `kind`"),
        ({"kind": "nominal", "order": 1}, "an object with `kind`"),
        ("ordinal", "from lowest to highest"),
        ({"kind": "ordinal"}, "from lowest to highest"),
        ({"kind": "ordinal", "categories": []}, "from lowest to highest"),
        ({"kind": "ordinal", "categories": "SML"}, "from lowest to highest"),
        ({"kind": "nominal", "categories": []}, "are missing"),
        ({"kind": "nominal", "categories": ["a", "a"]}, "stands twice"),
        ({"kind": "ordinal", "categories": ["S", None]}, "string, a number"),
        ({"kind": "ordinal", "categories": ["S", ["M"]]}, "string, a number"),
        ({"kind": "ordinal", "categories": ["S", "M", "S"]}, "stands twice"),
        ({"kind": "ordinal", "categories": [1, 1.0]}, "stands twice"),
        ({"kind": "boolean", "categories": [True]}, "takes no categories"),
        ({"kind": "numeric", "categories": [1]}, "takes no categories"),
    ],
)
def test_faults(said: object, says: str) -> None:
    """A declaration that cannot be used is a fault at its column, with the remedy."""
    with pytest.raises(InvalidData) as caught:
        read_declarations({"fine": "nominal", "a/b": said})
    (fault,) = caught.value.faults
    assert fault.place == "/schema/a~1b"
    assert says in fault.message


def test_true_and_1_are_two_categories() -> None:
    """Categories are told apart as JSON does."""
    assert read_declarations({"a": {"kind": "ordinal", "categories": [1, True]}})["a"].categories == (1, True)


def test_features_declare_columns() -> None:
    """A model's features say the kinds; only an ordinal one hands on its categories, open for new levels."""
    features = [
        {"name": "age", "kind": "numeric"},
        {"name": "job", "kind": "nominal", "categories": ["a", "b"]},
        {"name": "size", "kind": "ordinal", "categories": ["S", "L"]},
    ]
    declared = declare_features(features)
    assert list(declared) == ["age", "job", "size"]
    assert [one.kind for one in declared.values()] == ["numeric", "nominal", "ordinal"]
    assert [one.categories for one in declared.values()] == [(), (), ("S", "L")]
    assert declared["size"].extend
