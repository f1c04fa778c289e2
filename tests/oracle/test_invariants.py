"""What must not change a tree, and searches that the node-by-node twin does not cover."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.oracle import naive_tree as naive
from tests.oracle import strategies
from tests.oracle.contract import Service, feature_of
from tests.oracle.naive_tree import Branch, Problem
from tests.oracle.test_naive_twin import ask, route

SLOWLY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PROBLEMS = st.one_of(
    strategies.classification(),
    strategies.with_a_positive_class(),
    *(strategies.regression(criterion) for criterion in ("variance", "absolute_error", "dissimilarity")),
    strategies.counts(),
)
NO_LIMITS = {"min_samples_split": 2, "min_samples_leaf": 1, "min_weight_leaf": 0}


def shape(service: Service, model: str) -> list[dict[str, Any]]:
    """The tree without the sizes of its nodes."""
    kept = ("node", "parent", "depth", "split", "children", "prediction", "leaf")
    return [{name: node[name] for name in kept} for node in service.tree(model)]


def rows_of(problem: Problem, rows: Sequence[int]) -> Problem:
    """The problem with these of its rows, in this order."""
    columns = {name: [cells[row] for row in rows] for name, cells in problem.columns.items()}
    targets, weights = [problem.targets[row] for row in rows], [problem.weights[row] for row in rows]
    return replace(problem, columns=columns, targets=targets, weights=weights)


def kinds_stay(problem: Problem, rows: Sequence[int]) -> bool:
    """No text column loses its last value with the other rows, which would make it a numeric one."""
    return all(
        any(cells[row] is not None for row in rows) or all(cell is None for cell in cells)
        for cells in problem.columns.values()
    )


@given(PROBLEMS, st.data())
@SLOWLY
def test_the_order_of_rows_changes_nothing(service: Service, problem: Problem, data: st.DataObject) -> None:
    """The same rows in another order give the same tree, sizes and all."""
    order = data.draw(st.permutations(range(len(problem.targets))))
    assert service.tree(ask(service, problem)) == service.tree(ask(service, rows_of(problem, order)))


@given(strategies.messy_regression(), st.randoms(use_true_random=False))
@SLOWLY
def test_the_order_of_rows_changes_nothing_for_messy_numbers(service: Service, problem: Problem, draw: Random) -> None:
    """Targets and weights whose sums round differently in another order still give the same tree to the last bit."""
    order = list(range(len(problem.targets)))
    draw.shuffle(order)
    assert service.tree(ask(service, problem)) == service.tree(ask(service, rows_of(problem, order)))


@given(PROBLEMS)
@SLOWLY
def test_weight_nought_equals_the_row_removed(service: Service, problem: Problem) -> None:
    """Rows of weight 0 leave no trace in the tree or in what is listed."""
    kept = rows_of(problem, problem.rows())
    if kinds_stay(problem, problem.rows()):
        whole, part = ask(service, problem), ask(service, kept)
        assert service.tree(whole) == service.tree(part)
        assert service.splits(whole) == service.splits(part)


@given(PROBLEMS.map(lambda problem: replace(problem, **NO_LIMITS)))
@SLOWLY
def test_every_row_twice_changes_nothing(service: Service, problem: Problem) -> None:
    """Without row limits, each row posted twice or weighted twice gives the same tree."""
    twice = rows_of(problem, [*range(len(problem.targets))] * 2)
    heavy = replace(problem, weights=[2 * weight for weight in problem.weights])
    once = shape(service, ask(service, problem))
    assert_alike(once, shape(service, ask(service, twice)))
    assert_alike(once, shape(service, ask(service, heavy)))


def assert_alike(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> None:
    """The same splits and classes; means to rounding."""
    assert [{**node, "prediction": 0} for node in left] == [{**node, "prediction": 0} for node in right]
    for one, other in zip(left, right, strict=True):
        if isinstance(one["prediction"], float):
            assert one["prediction"] == pytest.approx(other["prediction"], rel=1e-12, abs=1e-12)
        else:
            assert one["prediction"] == other["prediction"]


@st.composite
def many_categories(draw: st.DrawFn, classes: Sequence[str] = "ab", most: int = 9) -> Problem:
    """A nominal feature with more categories than are searched exhaustively, for classes or (none given) numbers."""
    count = draw(st.integers(7, most))
    cells = [*range(count), *draw(st.lists(st.integers(0, count - 1), min_size=6, max_size=20))]
    targets = st.sampled_from(classes) if classes else st.integers(-4, 8).map(lambda half: half / 2)
    drawn = draw(st.lists(targets, min_size=len(cells), max_size=len(cells)))
    criterion = draw(st.sampled_from(strategies.CLASS_CRITERIA)) if classes else "variance"
    labels = sorted(set(drawn)) if classes else ()
    names: list[naive.Value] = [f"c{cell}" for cell in cells]
    if draw(st.booleans()):
        names[-3:] = [None] * 3
    return Problem({"x": names}, drawn, [1] * len(cells), labels, criterion=criterion, max_depth=1)


def best_score(service: Service, problem: Problem) -> float | None:
    """The chosen split's score at the root; None for a leaf."""
    chosen = service.splits(ask(service, problem), {"node": 0, "chosen": "true"})
    return chosen[0]["score"] if chosen else None


def naive_best(problem: Problem) -> float | None:
    """The best score of all subsets at the root; None when none improves."""
    if naive.pure(problem, problem.rows()):
        return None
    tied = naive.best_of(problem, problem.rows(), naive.node_candidates(problem, problem.rows()))
    return float(tied[0].scores[naive.CRITERIA[problem.criterion].measure] or 0) if tied else None


@given(st.one_of(many_categories("ab", most=8), many_categories("", most=8)))
@settings(SLOWLY, max_examples=10)
def test_many_categories_keep_the_optimum(service: Service, problem: Problem) -> None:
    """Breiman's ordering finds the best of all subsets for two classes and for numbers, beyond six categories too."""
    found, best = best_score(service, problem), naive_best(problem)
    assert (found is None) == (best is None)
    assert found is None or math.isclose(found, best or 0, rel_tol=1e-9)


@given(many_categories("abc"))
@settings(SLOWLY, max_examples=25)
def test_many_categories_of_many_classes(service: Service, problem: Problem) -> None:
    """With three classes the best found lies between the best category against the rest and the best of all subsets."""
    found, best = best_score(service, problem) or 0, naive_best(problem) or 0
    assert (naive_best(replace(problem, nominal="one_vs_rest")) or 0) * (1 - 1e-9) <= found <= best * (1 + 1e-9)


def c45_choice(problem: Problem, rows: Branch, used: set[str], pays: str | None = None) -> str | None:
    """C4.5's feature: each one's best cut by gain, then the best ratio among those with at least the mean gain.

    With ``pays``, ``tried`` or ``distinct``, numeric cuts pay for their number and have J48's limit.
    """
    offers = {name: offer(problem, rows, name, pays) for name in problem.columns if name not in used}
    gains = {name: found for name, found in offers.items() if found is not None}
    many = {name for name in problem.columns if many_valued(problem, name)}
    counted = [gain for name, (gain, _) in gains.items() if name not in many or len(many) == len(problem.columns)]
    if not counted:
        return None
    useful = {name: ratio for name, (gain, ratio) in gains.items() if gain >= sum(counted) / len(counted) - 1e-3}
    best = max(useful.values(), default=0)
    return next(name for name, ratio in useful.items() if ratio >= best - 1e-12) if best > 1e-12 else None


def many_valued(problem: Problem, name: str) -> bool:
    """A nominal column with 0.3 of the rows as categories, or more."""
    values = set(problem.columns[name]) - {None}
    return bool(values) and isinstance(next(iter(values)), str | bool) and len(values) >= 0.3 * len(problem.targets)


def offer(problem: Problem, rows: Branch, name: str, pays: str | None) -> tuple[float, float] | None:
    """Gain and ratio of a feature's first best candidate; a split by categories may gain nothing, a cut may not.

    Rows without a value are not weighed: the gain counts by the share of the others, and they are a branch in its
    information content (Quinlan 1993, section 3.1).
    """
    known = tuple(row for row in rows if problem.columns[name][row] is not None)
    candidates = naive.node_candidates(problem, known) if known else []
    found = [each for each in candidates if each.feature == name and len(each.branches) > 1]
    numeric = bool(found) and found[0].form == "threshold"
    least = float(problem.min_weight_leaf)
    if numeric and pays:
        least = max(least, min(25, 0.1 * len(known) / len(problem.classes)))
    met = [each for each in found if sum(problem.weight(branch) >= least for branch in each.branches) >= 2]
    tried = len(found if pays == "distinct" else met)
    price = math.log2(tried) / len(rows) if numeric and pays and tried else 0.0
    gains = [float(each.scores["information_gain"] or 0) * len(known) / len(rows) - price for each in met]
    best = max(gains, default=-1.0)
    if best < (1e-12 if numeric else -1e-9):
        return None
    first = next(each for each, gain in zip(met, gains, strict=True) if gain >= best - 1e-12)
    gone = [len(rows) - len(known)] if len(rows) > len(known) else []
    content = naive.entropy([*map(len, first.branches), *gone])
    return best, (float(first.scores["information_gain"] or 0) * len(known) / len(rows) - price) / content


@st.composite
def complete(draw: st.DrawFn, kinds: Sequence[str], gaps: bool = False) -> Problem:
    """Classes to learn from columns, with gaps or without, by gain ratio with a branch for each category."""
    rows = draw(st.integers(4, 14))
    targets = draw(st.lists(st.sampled_from("abc"), min_size=rows, max_size=rows))
    made = draw(strategies.columns(rows, kinds=kinds, gaps=gaps))
    return Problem(made, targets, [1] * rows, sorted(set(targets)), nominal="multiway", criterion="gain_ratio")


UNPRUNED = {"pruning": None, "collapse": False}


def ask_preset(
    service: Service, problem: Problem, algorithm: str, parameters: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The tree of a preset."""
    asked = {"algorithm": algorithm, "parameters": parameters or {}}
    return service.tree(service.train({**problem.columns, "y": problem.targets}, "y", asked))


@given(complete(["whole", "nominal", "boolean", "real"]))
@SLOWLY
def test_c45_selects_as_c45_does(service: Service, problem: Problem) -> None:
    """By `c45` each node asks the feature that C4.5's two-step selection picks, under its row limits."""
    problem = replace(problem, min_samples_split=4, min_weight_leaf=2, enough_branches=2)
    nodes = ask_preset(service, problem, "c45", UNPRUNED)
    members, used = route(problem, nodes), {0: set[str]()}
    for node in nodes:
        rows, past = members[node["node"]], used[node["node"]]
        stop = naive.pure(problem, rows) or len(rows) < problem.min_samples_split
        assert feature_of(node) == (None if stop else c45_choice(problem, rows, past)), node
        spent = {str(feature_of(node))} if not node["leaf"] and node["split"]["type"] == "multiway" else set()
        used |= dict.fromkeys(node["children"] or [], past | spent)


@given(complete(["whole", "whole", "nominal", "boolean", "real"]), st.sampled_from(["tried", "distinct"]))
@SLOWLY
def test_cuts_pay_and_have_their_limit(service: Service, problem: Problem, pays: str) -> None:
    """By `j48`, unpruned, each node asks the feature that C4.5 picks once numeric cuts pay for their number."""
    problem = replace(problem, min_weight_leaf=2, enough_branches=2)
    parameters = UNPRUNED | {"cut_penalty": pays, "empty_branches": False}
    data = {**problem.columns, "y": problem.targets}
    model = service.train(data, "y", {"algorithm": "j48", "parameters": parameters})
    nodes = service.tree(model)
    members = route(problem, nodes)
    for node in nodes:
        rows = members[node["node"]]
        stop = naive.pure(problem, rows)
        assert feature_of(node) == (None if stop else c45_choice(problem, rows, set(), pays)), node
    for split in service.splits(model, {"chosen": "true"}):
        assert split["score"] == pytest.approx(nodes[split["node"]]["score"], rel=1e-12)
        assert split["score"] <= split["scores"]["gain_ratio"]


@given(complete(["whole", "whole", "nominal", "boolean", "real"], gaps=True), st.sampled_from(["tried", "distinct"]))
@SLOWLY
def test_gaps_are_weighed_as_c45_does(service: Service, problem: Problem, pays: str) -> None:
    """By `j48` the root asks the feature that C4.5 picks where rows without a value are parted among all branches."""
    problem = replace(problem, min_weight_leaf=2, enough_branches=2)
    parameters = UNPRUNED | {"cut_penalty": pays, "max_depth": 1}
    data = {**problem.columns, "y": problem.targets}
    model = service.train(data, "y", {"algorithm": "j48", "parameters": parameters})
    chosen = None if naive.pure(problem, problem.rows()) else c45_choice(problem, problem.rows(), set(), pays)
    assert feature_of(service.tree(model)[0]) == chosen
    if chosen:
        found = offer(problem, problem.rows(), chosen, pays)
        assert found is not None
        assert service.splits(model, {"node": 0, "chosen": "true"})[0]["score"] == pytest.approx(found[1], rel=1e-9)


@given(complete(["nominal", "boolean"]))
@SLOWLY
def test_id3_selects_by_information_gain(service: Service, problem: Problem) -> None:
    """By `id3` each node asks the first feature of the highest information gain, and each feature once per path."""
    problem = replace(problem, criterion="entropy")
    nodes = ask_preset(service, problem, "id3")
    members, used = route(problem, nodes), {0: set[str]()}
    for node in nodes:
        rows, past = members[node["node"]], used[node["node"]]
        candidates = [each for each in naive.node_candidates(problem, rows) if each.feature not in past]
        tied = naive.best_of(problem, rows, candidates)
        stop = not tied or naive.pure(problem, rows)
        assert feature_of(node) == (None if stop else tied[0].feature), node
        used |= {child: past | {str(feature_of(node))} for child in node["children"] or []}


@given(st.one_of(strategies.classification(("gini", "entropy")), strategies.regression()))
@SLOWLY
def test_features_used_once_per_path(service: Service, problem: Problem) -> None:
    """With `reuse_features: never` each node asks the first best of the features that its path has not asked."""
    problem = replace(problem, missing="direction", max_depth=None, min_samples_split=2, min_gain=0)
    names = ("criterion", "nominal", "missing", "min_samples_leaf", "min_weight_leaf")
    more = {
        "schema": {name: {"kind": "ordinal", "categories": order} for name, order in problem.ordinals.items()},
        "parameters": {name: getattr(problem, name) for name in names} | {"reuse_features": "never"},
        "task": "classification" if problem.classes else "regression",
        "weight": "weight",
    }
    data = {**problem.columns, "target": problem.targets, "weight": problem.weights}
    model = service.train(data, "target", more)
    nodes = service.tree(model)
    members, used = route(problem, nodes), {0: set[str]()}
    for node in nodes:
        rows, past = members[node["node"]], used[node["node"]]
        candidates = [each for each in naive.node_candidates(problem, rows) if each.feature not in past]
        tied = naive.best_of(problem, rows, candidates)
        stop = not tied or naive.pure(problem, rows)
        assert feature_of(node) == (None if stop else tied[0].feature), node
        used |= {child: past | {str(feature_of(node))} for child in node["children"] or []}
    spent = {split["feature"] for split in service.splits(model) if split["reason"] == "used_on_path"}
    assert spent <= {feature_of(node) for node in nodes}


@given(
    st.one_of(strategies.classification(("gini", "entropy")), strategies.regression()),
    st.integers(2, 5),
    st.sampled_from(["direction", "surrogate", "fractional", "branch"]),
)
@SLOWLY
def test_a_limit_on_leaves_grows_best_first(service: Service, problem: Problem, leaves: int, missing: str) -> None:
    """With `max_leaf_nodes` the splits kept are those that gain most by weight, parents first, whatever is missing."""
    problem = replace(problem, max_depth=None, nominal="subset", missing=missing)
    model = ask(service, problem)
    full, part = service.tree(model), service.tree(ask_limited(service, problem, leaves))
    gains = {split["node"]: split["score"] for split in service.splits(model, {"chosen": "true"})}
    kept = grow_best_first(full, {node: gain * full[node]["weight"] for node, gain in gains.items()}, leaves - 1)
    assert sum(not node["leaf"] for node in part) == len(kept)
    pairs = [(full[0], part[0])]
    while pairs:
        whole, cut = pairs.pop()
        assert cut["leaf"] == (whole["node"] not in kept)
        if not cut["leaf"]:
            assert whole["split"] == cut["split"]
            pairs += [(full[a], part[b]) for a, b in zip(whole["children"], cut["children"], strict=True)]


def grow_best_first(full: Sequence[Mapping[str, Any]], gains: Mapping[int, float], splits: int) -> set[int]:
    """The inner nodes of the full tree that a growth of so many splits keeps; examples with tied gains are skipped."""
    kept: set[int] = set()
    frontier = [0] if 0 in gains else []
    while frontier and len(kept) < splits:
        first, *others = sorted(frontier, key=lambda node: -gains[node])
        assume(not others or gains[first] - gains[others[0]] > 1e-9)
        kept.add(first)
        frontier = [*others, *(child for child in full[first]["children"] if child in gains)]
    return kept


def ask_limited(service: Service, problem: Problem, leaves: int) -> str:
    """Train on the problem with at most so many leaves."""
    names = ("criterion", "nominal", "missing", "min_samples_split", "min_samples_leaf", "min_weight_leaf", "min_gain")
    parameters = {name: getattr(problem, name) for name in names} | {"max_leaf_nodes": leaves}
    schema = {name: {"kind": "ordinal", "categories": order} for name, order in problem.ordinals.items()}
    more = {
        "schema": schema,
        "parameters": parameters,
        "task": "classification" if problem.classes else "regression",
        "weight": "weight",
    }
    return service.train({**problem.columns, "target": problem.targets, "weight": problem.weights}, "target", more)


@given(PROBLEMS)
@SLOWLY
def test_listing_by_rank_and_by_position_hold_the_same(service: Service, problem: Problem) -> None:
    """Both orders list the same splits; by rank the admissible come first, in order, within each node."""
    model = ask(service, problem)
    by_rank, by_place = service.splits(model), service.splits(model, {"sort": "position"})
    assert sorted(map(repr, by_rank)) == sorted(map(repr, by_place))
    for before, after in pairwise(by_rank):
        if before["node"] == after["node"]:
            assert (before["rank"] or math.inf) <= (after["rank"] or math.inf)


@given(PROBLEMS)
@SLOWLY
def test_filters_select_from_the_full_listing(service: Service, problem: Problem) -> None:
    """Each filter of the listing gives exactly the entries of the full one that fit it."""
    model = ask(service, problem)
    full = service.splits(model)
    feature = next(iter(problem.columns))
    for query, fits in (
        ({"node": 0}, lambda split: split["node"] == 0),
        ({"feature": feature}, lambda split: split["feature"] == feature),
        ({"type": "threshold"}, lambda split: split["split"]["type"] == "threshold"),
        ({"chosen": "true"}, lambda split: split["chosen"]),
        ({"admissible": "false"}, lambda split: not split["admissible"]),
    ):
        assert service.splits(model, query) == [split for split in full if fits(split)], query
