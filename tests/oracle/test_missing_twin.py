"""Surrogates and parted rows against obvious loops: every node, candidate, surrogate and answer of small trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle import naive_missing as missing
from tests.oracle import naive_tree as naive
from tests.oracle import strategies
from tests.oracle.contract import OTHERWISE, Service, way
from tests.oracle.naive_tree import Branch, Problem, Value
from tests.oracle.test_naive_twin import ask

SLOWLY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NEAR = {"rel": 1e-9, "abs": 1e-11}
NEW = "yew"
"""A category that no training row has."""
PROBLEMS = st.one_of(strategies.classification(), strategies.with_a_positive_class(), strategies.regression())


@dataclass
class Walk:
    """What the loops know of a tree: by node, what came of each row, and how a row goes on.

    ``stand_ins`` are the surrogates, ``rest`` the branch after them (None: it stays), ``shares`` the known weight's.
    """

    problem: Problem
    nodes: Sequence[Mapping[str, Any]]
    entries: dict[int, dict[int, Fraction]] = field(default_factory=dict)
    stand_ins: dict[int, list[missing.Surrogate]] = field(default_factory=dict)
    rest: dict[int, int | None] = field(default_factory=dict)
    shares: dict[int, list[Fraction]] = field(default_factory=dict)

    def at(self, node: int) -> tuple[Problem, Branch]:
        """The problem with the weights that came to the node, and its rows."""
        weights = [self.entries[node].get(row, Fraction(0)) for row in range(len(self.problem.targets))]
        return replace(self.problem, weights=weights), tuple(sorted(self.entries[node]))

    def leaves(self, cells: Mapping[str, Value], weight: Fraction = Fraction(1)) -> dict[int, Fraction]:
        """The nodes that a row ends in, with how much of it does."""
        ended: dict[int, Fraction] = {}
        waiting = [(0, weight)]
        while waiting:
            node, part = waiting.pop()
            told = self.nodes[node]
            if told["leaf"]:
                ended[node] = part
                continue
            branch = way_of(told["split"], cells[told["feature"]])
            if branch is not None:
                waiting.append((told["children"][branch], part))
            elif self.problem.missing == "fractional":
                waiting += [(c, part * s) for c, s in zip(told["children"], self.shares[node], strict=True) if s]
            elif (branch := self.stand_in(node, cells)) is None:
                ended[node] = part
            else:
                waiting.append((told["children"][branch], part))
        return ended

    def stand_in(self, node: int, cells: Mapping[str, Value]) -> int | None:
        """The branch of the first surrogate that can tell, or the rest's."""
        for surrogate in self.stand_ins[node]:
            value = cells[surrogate.feature]
            side = side_of(self.nodes[node], surrogate, value)
            if side is not None:
                return side
        return self.rest[node]


def way_of(split: Mapping[str, Any], value: Value) -> int | None:
    """The branch of a value; None where the split cannot tell."""
    branch = OTHERWISE if value is None else way(split, value)
    return None if branch == OTHERWISE else branch


def side_of(told: Mapping[str, Any], surrogate: missing.Surrogate, value: Value) -> int | None:
    """The side that the surrogate, as the service describes it, sends any value to."""
    described = next(each for each in told["surrogates"] if each["feature"] == surrogate.feature)["split"]
    if value is None:
        return None
    if described["type"] == "threshold":
        below = 0 if described["below_to"] == "left" else 1
        return below if value <= described["threshold"] else 1 - below  # type: ignore[operator]
    return way_of(described, value)


def check(service: Service, problem: Problem) -> None:
    """All that the service says of the tree and its answers, against the loops."""
    model = ask(service, problem)
    nodes = service.tree(model)
    listing = service.listing(model, {"sort": "position"})
    walk = Walk(problem, nodes, {0: {row: Fraction(problem.weights[row]) for row in problem.rows()}})
    by_weight = problem.missing == "fractional" and any(
        problem.columns[name][row] is None for name in problem.columns for row in problem.rows()
    )
    for node in nodes:
        here, rows = walk.at(node["node"])
        check_statistics(here, node, rows)
        found = missing.known_candidates(here, rows, by_weight)
        check_candidates(here, rows, [s for s in listing["splits"] if s["node"] == node["node"]], found)
        check_choice(here, node, rows, found, by_weight)
        if not node["leaf"]:
            pass_on(walk, node, here, rows)
    check_answers(service, model, walk)


def check_statistics(here: Problem, node: Mapping[str, Any], rows: Branch) -> None:
    """A node has the rows, weight and counts that come to it, parts of rows by their weight."""
    assert node["n"] == len(rows)
    assert node["weight"] == pytest.approx(float(here.weight(rows)), **NEAR)
    if here.classes:
        assert node["counts"] == pytest.approx([float(count) for count in here.counts(rows)], **NEAR)
    else:
        assert node["prediction"] == pytest.approx(float(naive.prediction(here, rows)), **NEAR)  # type: ignore[arg-type]


def check_candidates(
    here: Problem, rows: Branch, listed: Sequence[Mapping[str, Any]], found: Sequence[naive.Candidate]
) -> None:
    """Each way to part the known rows is listed once, with its scores and admission; the others are constant."""
    expected = {each.key: each for each in found}
    seen = set()
    for entry in listed:
        if entry["split"]["type"] == "constant":
            assert not entry["admissible"]
            continue
        cells = here.columns[entry["feature"]]
        ways = {row: way(entry["split"], cells[row]) for row in rows if cells[row] is not None}
        branches = tuple(tuple(r for r in ways if ways[r] == b) for b in range(max(ways.values()) + 1))
        key = naive.Candidate(entry["feature"], "", branches).key
        assert key in expected
        assert key not in seen
        seen.add(key)
        check_scores(here, entry, expected[key])
        check_branches(here, entry, branches, tuple(row for row in rows if row not in ways))
    assert seen == expected.keys()


def check_scores(here: Problem, entry: Mapping[str, Any], expected: naive.Candidate) -> None:
    """Every measure is the loops'; the deviance of targets below 0, in this node or another, is undefined."""
    signed = not here.classes and min(here.targets) < 0  # type: ignore[type-var]
    for measure, value in expected.scores.items():
        if signed and measure == "poisson_deviance_reduction":
            continue
        given = entry["scores"].get(measure)
        assert (given is None) == (value is None), (measure, entry)
        if value is not None:
            assert math.isclose(given, float(value), rel_tol=1e-9, abs_tol=1e-10), (measure, value, entry)
    assert entry["admissible"] == expected.admissible, (entry, expected)


def check_branches(here: Problem, entry: Mapping[str, Any], branches: Sequence[Branch], absent: Branch) -> None:
    """Known rows by branch; those without a value are routed by shares, or by surrogates where there are any."""
    total = sum((here.weight(branch) for branch in branches), Fraction(0))
    for told, rows in zip(entry["branches"], branches, strict=True):
        assert told["known"]["n"] == len(rows)
        assert told["known"]["weight"] == pytest.approx(float(here.weight(rows)), **NEAR)
        if not absent:
            assert told["routed"]["n"] == len(rows)
        elif here.missing == "fractional":
            routed = here.weight(rows) + here.weight(rows) / total * here.weight(absent)
            assert told["routed"]["weight"] == pytest.approx(float(routed), **NEAR)
            assert told["routed"]["n"] == len(rows) + len(absent)
        else:
            assert (told["routed"] is not None) == entry["chosen"]


def check_choice(
    here: Problem, node: Mapping[str, Any], rows: Branch, found: Sequence[naive.Candidate], by_weight: bool
) -> None:
    """The split is one of the tied best; a node without any, pure or at a limit is a leaf."""
    tied = {each.key for each in naive.best_of(here, rows, found)}
    size = here.weight(rows) if by_weight else len(rows)
    limited = node["depth"] == here.max_depth or size < here.min_samples_split
    assert node["leaf"] == (not tied or limited or naive.pure(here, rows)), (node, tied)
    if not node["leaf"]:
        cells = here.columns[node["feature"]]
        ways = {row: way(node["split"], cells[row]) for row in rows if cells[row] is not None}
        branches = tuple(tuple(r for r in ways if ways[r] == b) for b in range(max(ways.values()) + 1))
        assert naive.Candidate(node["feature"], "", branches).key in tied


def pass_on(walk: Walk, node: Mapping[str, Any], here: Problem, rows: Branch) -> None:
    """Give the children their rows, by the split's description and the loops' own surrogates or shares."""
    number, cells = node["node"], here.columns[node["feature"]]
    sides = {row: way(node["split"], cells[row]) for row in rows if cells[row] is not None}
    known = [here.weight([row for row in sides if sides[row] == b]) for b in range(len(node["children"]))]
    children: list[dict[int, Fraction]] = [{} for _ in node["children"]]
    for row, side in sides.items():
        children[side][row] = walk.entries[number][row]
    lost = [row for row in rows if row not in sides]
    walk.shares[number] = [weight / sum(known, Fraction(0)) for weight in known]
    if here.missing == "fractional":
        assert node["split"]["shares"] == pytest.approx([float(share) for share in walk.shares[number]], **NEAR)
        for row in lost:
            for child, share in zip(children, walk.shares[number], strict=True):
                child[row] = walk.entries[number][row] * share
    else:
        walk.rest[number] = None if known[0] == known[1] else known.index(max(known))
        assert node["split"]["missing"] == {None: "stays", 0: "left", 1: "right"}[walk.rest[number]]
        walk.stand_ins[number] = missing.find_surrogates(here, node["feature"], sides, rows)
        check_surrogates(walk, node, rows, lost)
        for row in lost:
            branch = walk.stand_in(number, {name: column[row] for name, column in here.columns.items()})
            if branch is not None:
                children[branch][row] = walk.entries[number][row]
    walk.entries |= dict(zip(node["children"], children, strict=True))


def check_surrogates(walk: Walk, node: Mapping[str, Any], rows: Branch, lost: Sequence[int]) -> None:
    """The surrogates are the loops', in order, and send every row of the node to the same side."""
    expected, columns = walk.stand_ins[node["node"]], walk.problem.columns
    assert [each["feature"] for each in node["surrogates"]] == [each.feature for each in expected]
    waiting = list(lost)
    for told, each in zip(node["surrogates"], expected, strict=True):
        assert told["agree"] == pytest.approx(each.agree, rel=1e-12)
        assert told["adj"] == pytest.approx(each.adjusted, rel=1e-9)
        for row in rows:
            value = columns[each.feature][row]
            assert side_of(node, each, value) == (None if value is None else each.sides.get(value))
        sent = [row for row in waiting if side_of(node, each, columns[each.feature][row]) is not None]
        assert told["n"] == len(sent)
        waiting = [row for row in waiting if row not in sent]


def check_answers(service: Service, model: str, walk: Walk) -> None:
    """Training rows, and rows with any cell taken out or unheard of, end and are answered as the loops say."""
    problem = walk.problem
    rows = [{name: column[row] for name, column in problem.columns.items()} for row in problem.rows()]
    asked = [*rows]
    for cells in rows[:4]:
        for name, value in cells.items():
            asked.append(cells | {name: None})
            if isinstance(value, str):
                asked.append(cells | {name: NEW})
    asked.append(dict.fromkeys(problem.columns))
    answer = service.predict(model, {name: [cells[name] for cells in asked] for name in problem.columns})
    for i, cells in enumerate(asked):
        ended = walk.leaves(cells)
        one = service.predict(model, {name: [value] for name, value in cells.items()}) if i % 5 == 0 else None
        check_answer(walk, ended, {name: answer[name][i] for name in answer if name in ANSWERED})
        if one is not None:
            assert {name: one[name][0] for name in one if name in ANSWERED} == {
                name: answer[name][i] for name in answer if name in ANSWERED
            }
    for place, row in enumerate(problem.rows()):
        mine = [n["node"] for n in walk.nodes if row in walk.entries[n["node"]] and n["leaf"]]
        assert answer["leaves"][place] in mine or not mine


ANSWERED = ("predictions", "probabilities", "leaves")


def check_answer(walk: Walk, ended: Mapping[int, Fraction], told: Mapping[str, Any]) -> None:
    """The distributions of the leaves by share; the leaf is the heaviest."""
    problem, nodes = walk.problem, walk.nodes
    assert told["leaves"] in [node for node, part in ended.items() if part >= max(ended.values()) - Fraction(1, 10**9)]
    if not problem.classes:
        mean = sum(float(part) * nodes[node]["prediction"] for node, part in ended.items())
        assert told["predictions"] == pytest.approx(mean, **NEAR)
        return
    shares = [Fraction(0)] * len(problem.classes)
    for node, part in ended.items():
        here, rows = walk.at(node)
        counts = here.counts(rows)
        shares = [s + part * c / sum(counts) for s, c in zip(shares, counts, strict=True)]
    assert told["probabilities"] == pytest.approx([float(share) for share in shares], **NEAR)
    assert naive.same(told["predictions"], problem.classes[shares.index(max(shares))])


@given(PROBLEMS | strategies.echoed(PROBLEMS))
@SLOWLY
def test_surrogates(service: Service, problem: Problem) -> None:
    """With surrogates every node, candidate, surrogate and answer is what the loops find."""
    nominal = "subset" if problem.nominal == "multiway" else problem.nominal
    check(service, replace(problem, missing="surrogate", nominal=nominal))


@given(PROBLEMS)
@SLOWLY
def test_fractional(service: Service, problem: Problem) -> None:
    """With parted rows every node, candidate and answer is what the loops find."""
    check(service, replace(problem, missing="fractional"))
