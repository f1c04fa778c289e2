"""Is the fast tree the exact one? Every node's split against all cuts of all features, and scikit-learn's tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.measure import Bound, Findings, Options, Result
from benchmarks.ours import fit
from benchmarks.problems import Floats, Problem, make_numbers
from service.core.learn import Learnt
from service.core.tree import Tree

ROWS = 50_000
SAME = 1e-12
Rows = NDArray[np.int64]


def exact(options: Options) -> Findings:
    """Two classes, ten classes, regression: how many nodes are not the exhaustive search's."""
    findings = Findings()
    for name, classes in (("2 classes", 2), ("10 classes", 10), ("regression", None)):
        problem = make_numbers(options.seed, options.limit(ROWS), options.columns, classes)
        learnt = fit(problem, options.depth)
        work = f"exact tree, {problem.shape}, {name}, depth {options.depth}"
        wrong, inner = check_exhaustively(problem, learnt)
        findings.results.append(_count(work, "exhaustive search of each node", wrong, inner))
        sklearn = peers.sklearn_fit(problem, options.depth)
        if sklearn is not None:
            findings.results.append(_count(work, "scikit-learn", *compare_trees(learnt.tree, sklearn().tree_)))
    return findings


def _count(work: str, against: str, wrong: int, nodes: int) -> Result:
    return Result(f"{work}: nodes that differ", against, wrong, nodes, "nodes", wrong, Bound("at most", 0))


def check_exhaustively(problem: Problem, learnt: Learnt) -> tuple[int, int]:
    """How many inner nodes have a split that is not the first of the best of all cuts, and how many there are."""
    tree, wrong = learnt.tree, 0
    inner = np.flatnonzero(~tree.is_leaf)
    for node, rows in _gather_rows(tree, learnt.leaf).items():
        if not tree.is_leaf[node]:
            feature, threshold = find_best_cut(problem, rows)
            wrong += feature != tree.feature[node] or not np.isclose(threshold, tree.threshold[node], rtol=1e-9)
    return int(wrong), len(inner)


def _gather_rows(tree: Tree, leaf: Rows) -> dict[int, Rows]:
    """The training rows of every node, from the leaves up."""
    order = np.argsort(leaf, kind="stable")
    parts = np.split(order, np.searchsorted(leaf[order], np.arange(1, tree.nodes)))
    rows = dict(enumerate(parts))
    for node in range(tree.nodes - 1, 0, -1):
        parent = int(tree.parent[node])
        rows[parent] = np.concatenate([rows[parent], rows[node]])
    return rows


def find_best_cut(problem: Problem, rows: Rows) -> tuple[int, float]:
    """The first feature and its first cut whose score no other surpasses, found by sorting each column."""
    statistics = _statistics(problem, rows)
    purity = _concentration if problem.target.is_classification else _explained_squares
    total = statistics.sum(0)
    scores, cuts = [], []
    for feature in range(problem.matrix.shape[1]):
        values = problem.matrix[rows, feature]
        order = np.argsort(values, kind="stable")
        values = values[order]
        left = np.cumsum(statistics[order], axis=0)[:-1]
        score = purity(left) + purity(total - left)
        score[values[1:] == values[:-1]] = -np.inf
        best = int(np.argmax(score >= score.max() - SAME * len(rows)))
        scores.append(score[best])
        cuts.append(values[best] + (values[best + 1] - values[best]) / 2)
    winner = int(np.argmax(np.array(scores) >= max(scores) - SAME * len(rows)))
    return winner, cuts[winner]


def _statistics(problem: Problem, rows: Rows) -> Floats:
    """(row, statistic): the class one-hot; for regression 1 and the target, centred and scaled."""
    if problem.target.is_classification:
        return np.eye(len(problem.target.classes))[problem.answers[rows]]
    values = problem.answers[rows] - problem.answers[rows].mean()
    return np.stack([np.ones(len(rows)), values / (values.std() or 1.0)], axis=1)


def _concentration(counts: Floats) -> Floats:
    """(cut,) rows less rows times Gini impurity of one side, whose sum over both the best cut maximizes."""
    return np.asarray((counts**2).sum(1) / counts.sum(1))


def _explained_squares(sums: Floats) -> Floats:
    """(cut,) rows times squared mean of one side, whose sum over both the best cut maximizes."""
    return np.asarray(sums[:, 1] ** 2 / sums[:, 0])


def compare_trees(ours: Tree, theirs: Any) -> tuple[int, int]:  # noqa: ANN401 - scikit-learn's tree
    """Walk both from the root: nodes that differ though no tie explains it, and how many were compared.

    Equal score, other cut: a tie, which scikit-learn breaks by chance; what lies below is not compared.
    """
    pairs, differing, compared = [(0, 0)], 0, 0
    while pairs:
        mine, other = pairs.pop()
        compared += 1
        leaf = bool(ours.is_leaf[mine])
        if leaf or theirs.children_left[other] < 0:
            differing += leaf != (theirs.children_left[other] < 0)
            continue
        left, right = int(theirs.children_left[other]), int(theirs.children_right[other])
        first = int(ours.first_child[mine])
        same = ours.feature[mine] == theirs.feature[other] and ours.rows[first] == theirs.n_node_samples[left]
        if same:
            pairs += [(first, left), (first + 1, right)]
        else:
            differing += not _are_tied(ours, first, theirs, left, right)
    return int(differing), compared


def _are_tied(ours: Tree, first: int, theirs: Any, left: int, right: int) -> bool:  # noqa: ANN401
    mine = ours.weight[first : first + 2] @ ours.impurity[first : first + 2]
    children = [left, right]
    other = theirs.weighted_n_node_samples[children] @ theirs.impurity[children]
    return bool(np.isclose(mine, other, rtol=1e-9, atol=1e-9))


CASES = {"exact": exact}
