"""What a caller may ask for, with which defaults, and what is wrong with anything else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.core.criteria import CRITERIA
from service.core.errors import InvalidParameters, UnsuitableTask
from service.core.parameter_values import RULES
from service.core.parameters import PRESETS, Parameters, resolve

PAGE = (Path(__file__).parents[2] / "docs" / "parameters.md").read_text(encoding="utf-8")


def read_table() -> dict[str, list[str]]:
    """The cells of docs/parameters.md by parameter: its defaults under each preset."""
    rows = [
        line.strip("| ").split(" | ")
        for line in PAGE.split("| parameter |")[1].split("\n\n")[0].splitlines()
        if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[2:] for row in rows}


def read_default(cell: str) -> Any:  # noqa: ANN401 - JSON
    """A default as the page has it: JSON, or a bare word."""
    text = cell.partition(";")[0].strip("` ")
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_the_page_has_every_default() -> None:
    """docs/parameters.md lists every parameter, in order, with what each preset makes of it."""
    documented = read_table()
    assert [*documented] == [*Parameters.__dataclass_fields__]
    for column, algorithm in enumerate(("cart", "id3", "c45", "j48", "rpart")):
        resolved = resolve(algorithm, {}, "classification").as_dict()
        assert {name: read_default(cells[column]) for name, cells in documented.items()} == resolved, algorithm


def test_the_page_has_every_criterion() -> None:
    """docs/parameters.md lists every criterion."""
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]+)\|", PAGE.split("## Criteria")[1], re.MULTILINE)))
    assert {*listed} == {*CRITERIA}


def test_every_parameter_has_a_rule() -> None:
    """Nothing can be posted that is not checked, and no preset breaks a rule."""
    assert [*RULES] == [*Parameters.__dataclass_fields__]
    for preset in PRESETS.values():
        assert all(RULES[name](value) is None for name, value in preset.items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("criterion", "gini_index"), ("criterion", None), ("selection", "best"), ("nominal", "binary"),
        ("max_subset_categories", 1), ("max_subset_categories", 13),
        ("numeric", "bins"), ("threshold_value", "mean"), ("missing", "surrogates"), ("max_surrogates", -1),
        ("use_surrogates", 3), ("use_surrogates", True), ("surrogate_style", 2),
        ("surrogate_count", "events"), ("nominal_surrogates", "best"), ("reuse_features", "no"),
        ("max_depth", -1), ("max_depth", 1.5), ("max_depth", True), ("max_leaf_nodes", 0), ("min_samples_split", 1),
        ("min_samples_leaf", 0), ("min_samples_leaf", None), ("min_weight_leaf", -0.5),
        ("min_weight_leaf", float("nan")), ("min_gain", "0"),
        ("min_gain", float("inf")), ("empty_branches", 1), ("cut_limit", 25), ("cut_penalty", True),
        ("pruning", "pessimistic"),
        ("pruning_folds", 1), ("pruning_folds", 2.5), ("cp", -0.1), ("cp", "0.01"), ("alpha", -1),
        ("risk", "gini"), ("sequence", "cart"), ("pruning_choice", "best"),
        ("pruning_holdout", 1), ("pruning_holdout", 0), ("collapse", None), ("confidence", 0), ("confidence", 0.6),
        ("confidence_limit", "exact"), ("subtree_raising", 1), ("class_weight", "auto"),
        ("class_weight", {"a": 0}), ("class_weight", {}), ("priors", {"a": -1, "b": 2}), ("priors", [0.5, 0.5]),
        ("loss", [[0, 1]]), ("loss", [[1, 1], [1, 0]]), ("loss", [[0, 0], [1, 0]]), ("loss", [[0, -1], [1, 0]]),
        ("loss", [[0, "1"], [1, 0]]), ("monotonic", {"x": 1}), ("monotonic", ["x"]), ("seed", -1), ("depth", 3),
    ],
)  # fmt: skip
def test_what_is_refused(name: str, value: object) -> None:
    """An unknown name or a value out of its range is one fault at that parameter, whose message says what would do."""
    with pytest.raises(InvalidParameters) as caught:
        resolve("cart", {name: value}, "classification")
    (fault,) = caught.value.faults
    assert fault.place == f"/parameters/{name}"
    assert "must be" in fault.message or "the parameters are" in fault.message


def test_all_faults_are_told_at_once() -> None:
    """Two wrong parameters are two faults of one error."""
    with pytest.raises(InvalidParameters) as caught:
        resolve("cart", {"max_depth": "deep", "nominal": "none"}, "classification")
    assert [fault.place for fault in caught.value.faults] == ["/parameters/max_depth", "/parameters/nominal"]


@pytest.mark.parametrize(
    ("algorithm", "posted", "task", "place"),
    [
        ("cart", {"selection": "c45"}, "classification", "/parameters/selection"),
        ("cart", {"criterion": "goodness", "nominal": "multiway"}, "classification", "/parameters/nominal"),
        ("id3", {"criterion": "true_positive_rate"}, "classification", "/parameters/nominal"),
        ("cart", {"priors": {"a": 1}}, "regression", "/parameters/priors"),
        ("cart", {"cut_limit": "c45"}, "regression", "/parameters/cut_limit"),
        ("c45", {"monotonic": {"x": "up"}, "missing": "direction"}, "classification", "/parameters/subtree_raising"),
        ("cart", {"monotonic": {"x": "up"}, "missing": "surrogate"}, "regression", "/parameters/monotonic"),
        ("cart", {"nominal": "multiway", "missing": "surrogate"}, "regression", "/parameters/missing"),
        ("cart", {"cut_penalty": "tried"}, "classification", "/parameters/cut_penalty"),
        ("chaid", {}, "classification", "/algorithm"),
    ],
)
def test_what_does_not_go_together(algorithm: str, posted: dict[str, Any], task: Any, place: str) -> None:  # noqa: ANN401
    """Parameters that exclude each other, or the task, are refused at the one to change."""
    with pytest.raises(InvalidParameters) as caught:
        resolve(algorithm, posted, task)
    assert [fault.place for fault in caught.value.faults] == [place]


@pytest.mark.parametrize(
    ("algorithm", "posted", "task"),
    [("id3", {}, "regression"), ("cart", {"criterion": "variance"}, "classification")],
)
def test_criterion_and_task(algorithm: str, posted: dict[str, Any], task: Any) -> None:  # noqa: ANN401
    """A criterion for the other task is refused, also where the preset chose it."""
    with pytest.raises(UnsuitableTask, match="/parameters/criterion"):
        resolve(algorithm, posted, task)


def test_how_far_to_prune_is_always_said() -> None:
    """Cost-complexity pruning cross-validates by ten folds unless alpha or cp say how far; cp is as rpart's."""
    untold = resolve("cart", {"pruning": "cost_complexity"}, "regression")
    assert (untold.pruning_folds, untold.sequence) == (10, "breiman")
    by_cp = resolve("cart", {"pruning": "cost_complexity", "cp": 0.01}, "regression")
    assert (by_cp.pruning_folds, by_cp.sequence) == (None, "rpart")
    assert resolve("cart", {"cp": 0.01, "sequence": "breiman"}, "regression").sequence == "breiman"
    with pytest.raises(InvalidParameters) as caught:
        resolve("cart", {"alpha": 0.1}, "regression")
    assert [fault.place for fault in caught.value.faults] == ["/parameters/alpha"]
    held = resolve("cart", {"pruning": "reduced_error"}, "regression")
    assert (held.pruning_folds, held.pruning_holdout) == (3, None)
    lossy = resolve("c45", {"loss": [[0, 1], [2, 0]]}, "classification")
    assert (lossy.pruning, lossy.collapse) == (None, False)
    share = resolve("cart", {"pruning": "reduced_error", "pruning_holdout": 0.2}, "regression")
    assert (share.pruning_folds, share.pruning_holdout) == (None, 0.2)


@pytest.mark.parametrize(
    ("asked", "task", "places"),
    [
        ({"pruning": "error_based"}, "regression", ["pruning"]),
        ({"collapse": True}, "regression", ["collapse"]),
        ({"pruning": "error_based", "loss": [[0, 1], [2, 0]]}, "classification", ["pruning"]),
        ({"pruning_holdout": 0.1}, "classification", ["pruning_holdout"]),
        ({"pruning": "reduced_error", "pruning_holdout": 0.1, "pruning_folds": 3}, "regression", ["pruning_holdout"]),
        ({"pruning": "reduced_error", "collapse": True, "cp": 0.1}, "classification", ["collapse", "cp"]),
    ],
)
def test_ways_of_pruning_that_exclude_one_another(asked: dict[str, Any], task: Any, places: list[str]) -> None:  # noqa: ANN401 - a Task
    """Such ways, and those that exclude the task, are refused where they were asked for."""
    with pytest.raises(InvalidParameters) as caught:
        resolve("cart", asked, task)
    assert [fault.place for fault in caught.value.faults] == [f"/parameters/{name}" for name in places]
