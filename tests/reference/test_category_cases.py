"""Public bug reports against learners of this kind: categories, unseen ones, gaps and which way they go."""

from __future__ import annotations

import json

import pytest

from tests.oracle.contract import Service, children_of, feature_of

TOWNS = [f"town{number:02d}" for number in range(92)]


@pytest.fixture(scope="module")
def towns(service: Service) -> str:
    """92 categories, three rows each, in two classes, with a second feature to split by as well."""
    rows = [
        (town, size, "dear" if (number * number + 5 * size) % 7 < 3 else "cheap")
        for number, town in enumerate(TOWNS)
        for size in (1, 2, 3)
    ]
    columns = {"town": [row[0] for row in rows], "size": [row[1] for row in rows], "price": [row[2] for row in rows]}
    return service.train(columns, "price")


def test_ninety_two_categories(service: Service, towns: str) -> None:
    """L16 (rpart 22): each root candidate of 92 categories names all of them once."""
    subsets = service.splits(towns, {"node": 0, "type": "subset"})
    assert len(subsets) >= 92
    for split in subsets:
        assert sorted(town for group in split["split"]["categories"] for town in group) == TOWNS


def test_categories_respect_the_ancestors(service: Service, towns: str) -> None:
    """L16 (rpart 71): below a split of towns, a split names only the towns that came this way."""
    nodes = service.tree(towns)
    came: dict[int, set[str]] = {0: set(TOWNS)}
    again = 0
    for node in nodes:
        if node["leaf"]:
            continue
        groups = [came[node["node"]]] * 2
        if feature_of(node) == "town":
            groups = [set(group) for group in node["split"]["categories"]]
            assert groups[0] | groups[1] <= came[node["node"]]
            again += node["node"] > 0
        came |= dict(zip(node["children"], groups, strict=True))
    assert again > 0


def test_ordered_levels_respect_the_ancestors(service: Service) -> None:
    """L16 (rpart 71): below a cut of ordered levels, splits name only the levels that can come there, in order."""
    sizes = ["XS", "S", "M", "L", "XL"]
    columns = {"size": sizes * 2, "price": [1.0, 2.0, 7.0, 8.0, 9.0] * 2}
    schema = {"size": {"kind": "ordinal", "categories": sizes}}
    model = service.train(columns, "price", {"schema": schema, "task": "regression"})
    nodes = service.tree(model)
    came = {0: sizes}
    for node in nodes:
        for split in [node["split"], *(each["split"] for each in service.splits(model, {"node": node["node"]}))]:
            if split and split["type"] != "constant":
                assert [level for group in split["categories"] for level in group] == came[node["node"]]
        if not node["leaf"]:
            came |= dict(zip(node["children"], node["split"]["categories"], strict=True))
    assert len(nodes) == 9


def test_an_unseen_town_stops_where_it_is_met(service: Service, towns: str) -> None:
    """L16: a category that training never saw gets the distribution of the node that asks for it, and a warning."""
    nodes = service.tree(towns)
    answer = service.predict(towns, {"town": ["Atlantis"], "size": [1]})
    stop = nodes[answer["leaves"][0]]
    assert feature_of(stop) == "town"
    assert answer["probabilities"][0] == pytest.approx([count / sum(stop["counts"]) for count in stop["counts"]])
    assert "town" in json.dumps(answer["warnings"])
    assert not service.predict(towns, {"town": ["town00"], "size": [1]})["warnings"]


def test_missing_unseen_and_late_categories_have_three_routes(service: Service) -> None:
    """L17 (lightgbm 4468, 837, 6908; xgboost 11659, 8573): the 40th category, a gap and a stranger go three ways."""
    cells = [f"k{number:02d}" for number in range(40) for _ in range(2)] + [None] * 9
    labels = ["a" if cell is not None and cell < "k20" else "b" if cell else "c" for cell in cells]
    model = service.train({"x": cells, "y": labels}, "y")
    answer = service.predict(model, {"x": ["k39", None, "stranger", "k00"]})
    assert answer["predictions"][:2] + answer["predictions"][3:] == ["b", "c", "a"]
    assert len(set(answer["leaves"])) == 4
    stop = service.tree(model)[answer["leaves"][2]]
    assert not stop["leaf"]
    assert answer["probabilities"][2] == pytest.approx([count / 89 for count in stop["counts"]])
    assert answer["warnings"]


@pytest.mark.parametrize(
    ("values", "labels", "heavier"),
    [([1, 2, 3], ["a", "b", "b"], "b"), ([1, 2, 3], ["a", "a", "b"], "a"), ([1, 2], ["b", "a"], "b")],
)
def test_a_gap_where_training_had_none(service: Service, values: list[int], labels: list[str], heavier: str) -> None:
    """L17: a value missing at a split that saw no gap goes with the heavier branch, the first of equals."""
    model = service.train({"x": values, "y": labels}, "y", {"task": "classification", "parameters": {"max_depth": 1}})
    assert service.predict(model, {"x": [None]})["predictions"] == [heavier]


def test_an_unseen_category_at_a_multiway_split(service: Service) -> None:
    """L18 (chefboost 4, 42): the node's majority with a warning; never null, never outside the classes."""
    columns = {"sky": ["sun", "sun", "rain", "rain", "fog"], "go": ["yes", "yes", "no", "no", "yes"]}
    model = service.train(columns, "go", {"parameters": {"nominal": "multiway"}})
    nodes = service.tree(model)
    assert children_of(nodes, nodes[0]).keys() == {"sun", "rain", "fog"}
    answer = service.predict(model, {"sky": ["hail", "fog"]})
    assert answer["predictions"] == ["yes", "yes"]
    assert answer["probabilities"] == [[pytest.approx(0.4), pytest.approx(0.6)], [0, 1]]
    assert answer["leaves"][0] == 0
    assert "hail" in json.dumps(answer["warnings"])
