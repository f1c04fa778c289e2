"""A naive learner: plain loops over rows and values, exact fractions, no numpy and nothing of the service.

It is the slow twin of the vectorized core. Given the rows of one node it lists every candidate split with its
branches, every measure and whether it may be taken; it grows no tree of its own, because tests walk the tree that
the service returns and ask at each node what should have been found there.

A branch is a tuple of row numbers. Two candidates of one feature are the same when they part the rows alike, so
`Candidate.key` compares candidates without knowing how a listing names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

Label = int | float | str | bool
Value = Label | None
Branch = tuple[int, ...]
Exact = Fraction | float

EXHAUSTIVE = 6
"""Up to so many categories in a node, every subset is a candidate."""


@dataclass(frozen=True)
class Problem:
    """The rows to learn from and what was asked; `classes` is empty for regression, `ordinals` names ordered labels."""

    columns: Mapping[str, Sequence[Value]]
    targets: Sequence[Label]
    weights: Sequence[int]
    classes: Sequence[Label] = ()
    positive: Label | None = None
    ordinals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    criterion: str = "gini"
    nominal: str = "subset"
    missing: str = "direction"
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0
    min_gain: float = 0
    max_depth: int | None = None
    enough_branches: int | None = None  # how many branches must meet the leaf limits; None: all of them

    def rows(self) -> Branch:
        """The rows that count: those with a weight."""
        return tuple(row for row, weight in enumerate(self.weights) if weight)

    def weight(self, rows: Sequence[int]) -> Fraction:
        """Total weight of the rows."""
        return Fraction(sum(self.weights[row] for row in rows))

    def counts(self, rows: Sequence[int]) -> list[Fraction]:
        """(class) weight of each class among the rows."""
        return [self.weight([row for row in rows if same(self.targets[row], label)]) for label in self.classes]

    def moments(self, rows: Sequence[int]) -> list[tuple[Fraction, Fraction]]:
        """(weight, target) of each row."""
        return [(Fraction(self.weights[row]), Fraction(self.targets[row])) for row in rows]


@dataclass(frozen=True)
class Candidate:
    """One way to part a node's rows."""

    feature: str
    form: str
    branches: tuple[Branch, ...]
    scores: Mapping[str, Exact | None] = field(default_factory=dict)
    admissible: bool = False

    @property
    def key(self) -> tuple[str, frozenset[Branch]]:
        """The feature and the partition, whatever the order of the branches."""
        return self.feature, frozenset(tuple(sorted(branch)) for branch in self.branches)


def same(left: Value, right: Value) -> bool:
    """Equal with their JSON types: true is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


# ---------------------------------------------------------------------------------------------------- measures


def gini(counts: Sequence[Exact]) -> Exact:
    """1 - sum p^2; 0 for no rows."""
    total = sum(counts)
    return Fraction(0) if total == 0 else 1 - sum((count / total) ** 2 for count in counts)


def entropy(counts: Sequence[Exact]) -> float:
    """- sum p log2 p, in bits."""
    total = sum(counts)
    return math.fsum(-float(count / total) * math.log2(count / total) for count in counts if count > 0)


def variance(moments: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Weighted mean of the squared differences from the weighted mean."""
    total = sum(weight for weight, _ in moments)
    if total == 0:
        return Fraction(0)
    mean = sum((weight * target for weight, target in moments), Fraction(0)) / total
    return sum((weight * (target - mean) ** 2 for weight, target in moments), Fraction(0)) / total


def half_mean_squared_difference(moments: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Half the mean of (a - b)^2 over all ordered pairs, each taken once: the encyclopaedia's way to the variance."""
    total = sum(weight for weight, _ in moments)
    pairs = sum((v * w * (a - b) ** 2 for (v, a), (w, b) in combinations(moments, 2)), Fraction(0))
    return pairs / (total * total)


def poisson(moments: Sequence[tuple[Fraction, Fraction]]) -> float:
    """Half the Poisson deviance about the weighted mean, mean of y log(y / mean); 0 for no rows."""
    total = sum(weight for weight, _ in moments)
    mean = sum((weight * target for weight, target in moments), Fraction(0)) / (total or 1)
    return math.fsum(float(w * y) * math.log(y / mean) for w, y in moments if y > 0) / float(total or 1)


def half_mean_difference(moments: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Half the mean of abs(a - b) over all ordered pairs, each taken once; 0 for no rows."""
    total = sum(weight for weight, _ in moments)
    pairs = sum((v * w * abs(a - b) for (v, a), (w, b) in combinations(moments, 2)), Fraction(0))
    return pairs / (total * total) if total else Fraction(0)


def medoid(moments: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """The target with the least weighted sum of differences from all, the first of equals."""
    return min((sum((w * abs(y - m) for w, y in moments), Fraction(0)), m) for _, m in moments)[1]


def absolute(moments: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """The weighted mean of abs(y - m) about the target m for which it is least: a median."""
    total = sum(weight for weight, _ in moments)
    sums = [sum((w * abs(y - m) for w, y in moments), Fraction(0)) for _, m in moments]
    return min(sums, default=Fraction(0)) / (total or 1)


def median(moments: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """The middle of the targets that halve the weight."""
    half = sum((weight for weight, _ in moments), Fraction(0)) / 2
    low = min(m for _, m in moments if sum(w for w, y in moments if y <= m) >= half)
    high = max(m for _, m in moments if sum(w for w, y in moments if y >= m) >= half)
    return (low + high) / 2


def class_measures(branches: Sequence[Sequence[Fraction]], positive: int | None = None) -> dict[str, Exact | None]:
    """Every measure of a split from its branches' class weights: (branch, class)."""
    sizes = [sum(branch, Fraction(0)) for branch in branches]
    total = sum(sizes, Fraction(0))
    node = [sum(column, Fraction(0)) for column in zip(*branches, strict=True)]
    gini_cost = sum((size / total * gini(branch) for size, branch in zip(sizes, branches, strict=True)), Fraction(0))
    bits = math.fsum(float(size / total) * entropy(branch) for size, branch in zip(sizes, branches, strict=True))
    content = entropy(sizes)
    scores: dict[str, Exact | None] = {
        "gini_cost": gini_cost,
        "gini_gain": gini(node) - gini_cost,
        "entropy_cost": bits,
        "information_gain": entropy(node) - bits,
        "information_content": content,
        "gain_ratio": (entropy(node) - bits) / content if content else None,
        "gini_gain_ratio": float(gini(node) - gini_cost) / content if content else None,
        "goodness": None,
        "twoing": None,
    }
    if len(branches) == 2:
        scores |= binary_measures(branches, sizes)
    if positive is not None and len(node) == 2:
        scores |= positive_measures(branches, sizes, positive)
    return scores


def binary_measures(branches: Sequence[Sequence[Fraction]], sizes: Sequence[Fraction]) -> dict[str, Exact | None]:
    """Breiman et al. 1984: goodness 2 PL PR sum|..| and twoing PL PR / 4 (sum|..|)^2."""
    left, right = branches
    spread = sum((abs(a / sizes[0] - b / sizes[1]) for a, b in zip(left, right, strict=True)), Fraction(0))
    product = sizes[0] * sizes[1] / sum(sizes, Fraction(0)) ** 2
    return {"goodness": 2 * product * spread, "twoing": product / 4 * spread**2}


def positive_measures(
    branches: Sequence[Sequence[Fraction]], sizes: Sequence[Fraction], positive: int
) -> dict[str, Exact | None]:
    """TP - FP and TP / (TP + FN); positive is the branch with the higher share of positives, the first of equals."""
    if len(branches) != 2:
        return {"positive_correctness": None, "true_positive_rate": None}
    shares = [branch[positive] / size for branch, size in zip(branches, sizes, strict=True)]
    chosen = branches[0] if shares[0] >= shares[1] else branches[1]
    all_positives = branches[0][positive] + branches[1][positive]
    return {
        "positive_correctness": chosen[positive] - chosen[1 - positive],
        "true_positive_rate": chosen[positive] / all_positives if all_positives else None,
    }


def number_measures(branches: Sequence[Sequence[tuple[Fraction, Fraction]]]) -> dict[str, Exact | None]:
    """Every measure of a split from its branches' (weight, target) pairs."""
    node = [pair for branch in branches for pair in branch]
    sizes = [sum((weight for weight, _ in branch), Fraction(0)) for branch in branches]
    shares = [size / sum(sizes, Fraction(0)) for size in sizes]
    spread = [half_mean_squared_difference(branch) for branch in branches]
    whole = half_mean_squared_difference(node)
    return {
        "variance_reduction": whole - sum((p * v for p, v in zip(shares, spread, strict=True)), Fraction(0)),
        "pairwise_variance_reduction": whole
        - sum((p**2 * v for p, v in zip(shares, spread, strict=True)), Fraction(0)),
        **deviations(branches, shares),
    }


def pair_measures(branches: Sequence[Sequence[tuple[Fraction, Fraction]]]) -> dict[str, Exact | None]:
    """Both measures of a split by the differences of pairs."""
    node = [pair for branch in branches for pair in branch]
    sizes = [sum((weight for weight, _ in branch), Fraction(0)) for branch in branches]
    parts = [size * half_mean_difference(branch) for size, branch in zip(sizes, branches, strict=True)]
    cost = sum(parts, Fraction(0)) / sum(sizes, Fraction(0))
    return {"dissimilarity_cost": cost, "dissimilarity_reduction": half_mean_difference(node) - cost}


def deviations(
    branches: Sequence[Sequence[tuple[Fraction, Fraction]]], shares: Sequence[Fraction]
) -> dict[str, Exact | None]:
    """Costs and reductions of the absolute error and of the Poisson deviance, which needs counts."""
    node = [pair for branch in branches for pair in branch]
    left = sum((p * absolute(branch) for p, branch in zip(shares, branches, strict=True)), Fraction(0))
    scores: dict[str, Exact | None] = {"absolute_error_cost": left, "absolute_error_reduction": absolute(node) - left}
    if any(target < 0 for _, target in node):
        return {**scores, "poisson_deviance_reduction": None}
    cost = math.fsum(float(p) * poisson(branch) for p, branch in zip(shares, branches, strict=True))
    defined = all(any(target > 0 for _, target in branch) for branch in branches)
    return {**scores, "poisson_deviance_reduction": poisson(node) - cost if defined else None}


# ---------------------------------------------------------------------------------------------------- criteria


@dataclass(frozen=True)
class Criterion:
    """Which measure decides, what a node scores unsplit, and how near two scores are tied."""

    measure: str
    baseline: Callable[[Problem, Branch], Exact]
    tolerance: Callable[[Problem, Branch], Exact]
    then: str | None = None


def impurity(problem: Problem, rows: Branch) -> Exact:
    """Impurity of the node under the problem's criterion."""
    if problem.criterion == "variance":
        return variance(problem.moments(rows))
    if problem.criterion == "poisson":
        return poisson(problem.moments(rows))
    if problem.criterion == "absolute_error":
        return absolute(problem.moments(rows))
    if problem.criterion == "dissimilarity":
        return half_mean_difference(problem.moments(rows))
    counts = problem.counts(rows)
    return entropy(counts) if problem.criterion in ("entropy", "gain_ratio") else gini(counts)


def majority_margin(problem: Problem, rows: Branch) -> Exact:
    """max(0, P - N): what calling the whole node positive, or none of it, would earn."""
    counts = problem.counts(rows)
    positive = [*problem.classes].index(problem.positive)  # type: ignore[arg-type]
    return max(Fraction(0), counts[positive] - counts[1 - positive])


def nothing(_problem: Problem, _rows: Branch) -> Exact:
    """A baseline of 0."""
    return Fraction(0)


def tiny(_problem: Problem, _rows: Branch) -> Exact:
    """Ratios and rates are of the order of one."""
    return 1e-12


def tiny_impurity(problem: Problem, rows: Branch) -> Exact:
    """Gains are of the order of the impurity."""
    return 1e-12 * float(impurity(problem, rows))


def tiny_weight(problem: Problem, rows: Branch) -> Exact:
    """Counts are of the order of the weight."""
    return 1e-12 * float(problem.weight(rows))


CRITERIA = {
    "gini": Criterion("gini_gain", nothing, tiny_impurity),
    "entropy": Criterion("information_gain", nothing, tiny_impurity),
    "gain_ratio": Criterion("gain_ratio", nothing, tiny),
    "gini_gain_ratio": Criterion("gini_gain_ratio", nothing, tiny),
    "goodness": Criterion("goodness", nothing, tiny),
    "positive_correctness": Criterion("positive_correctness", majority_margin, tiny_weight),
    "true_positive_rate": Criterion("true_positive_rate", nothing, tiny, then="positive_correctness"),
    "variance": Criterion("variance_reduction", nothing, tiny_impurity),
    "poisson": Criterion("poisson_deviance_reduction", nothing, tiny_impurity),
    "absolute_error": Criterion("absolute_error_reduction", nothing, tiny_impurity),
    "dissimilarity": Criterion("dissimilarity_reduction", nothing, tiny_impurity),
}


# ---------------------------------------------------------------------------------------------------- candidates


def node_candidates(problem: Problem, rows: Branch) -> list[Candidate]:
    """Every candidate of the node, features in order; measured and judged."""
    found = []
    for feature in problem.columns:
        for form, branches in feature_branches(problem, feature, rows):
            scores = measure(problem, branches)
            found.append(Candidate(feature, form, branches, scores, admissible(problem, rows, branches, scores)))
    return found


def measure(problem: Problem, branches: Sequence[Branch]) -> dict[str, Exact | None]:
    """Every measure of the partition."""
    if not problem.classes:
        if problem.criterion == "dissimilarity":
            return pair_measures([problem.moments(branch) for branch in branches])
        scores = number_measures([problem.moments(branch) for branch in branches])
        if any(problem.targets[row] < 0 for row in problem.rows()):  # type: ignore[operator]
            scores["poisson_deviance_reduction"] = None
        return scores
    positive = None if problem.positive is None else list(problem.classes).index(problem.positive)
    return class_measures([problem.counts(branch) for branch in branches], positive)


def admissible(problem: Problem, rows: Branch, branches: Sequence[Branch], scores: Mapping[str, Exact | None]) -> bool:
    """Enough rows and weight in the branches, a score, and an improvement beyond the tolerance."""
    criterion = CRITERIA[problem.criterion]
    score = scores[criterion.measure]
    if len(branches) < 2 or score is None:
        return False
    enough = [
        len(branch) >= problem.min_samples_leaf and problem.weight(branch) >= problem.min_weight_leaf
        for branch in branches
    ]
    if sum(enough) < (problem.enough_branches or len(branches)):
        return False
    gain = score - criterion.baseline(problem, rows)
    return gain > criterion.tolerance(problem, rows) and gain >= problem.min_gain


def feature_branches(problem: Problem, feature: str, rows: Branch) -> list[tuple[str, tuple[Branch, ...]]]:
    """(form, branches) of every candidate of one feature."""
    cells = problem.columns[feature]
    absent = tuple(row for row in rows if cells[row] is None)
    present = tuple(row for row in rows if cells[row] is not None)
    if not present:
        return [("constant", (absent,))]
    values = {cells[row] for row in present}
    if len(values) == 1 and not absent:
        return [("constant", (present,))]
    categories = isinstance(next(iter(values)), str | bool)
    ordered = feature in problem.ordinals and problem.nominal != "multiway"
    if categories and not ordered:
        groups = by_category(problem, feature, present)
        if problem.missing == "branch":
            return groupings(problem, [*groups, absent] if absent else groups)
        known = groupings(problem, groups)
    else:
        known = [("subset" if ordered else "threshold", cut) for cut in cuts(problem, feature, present)]
    if not absent:
        return known
    return [*place_missing(problem, known, absent), ("missing", (absent, present))]


def by_category(problem: Problem, feature: str, present: Branch) -> list[Branch]:
    """The rows of each value or category, in order: of numbers, of what was declared, else of the alphabet."""
    cells = problem.columns[feature]
    order = problem.ordinals.get(feature) or sorted({cells[row] for row in present})  # type: ignore[type-var]
    groups = [tuple(row for row in present if same(cells[row], value)) for value in order]
    return [group for group in groups if group]


def cuts(problem: Problem, feature: str, present: Branch) -> list[tuple[Branch, ...]]:
    """Left and right of each gap between neighbouring values."""
    groups = by_category(problem, feature, present)
    return [(sum(groups[:place], ()), sum(groups[place:], ())) for place in range(1, len(groups))]


def groupings(problem: Problem, groups: Sequence[Branch]) -> list[tuple[str, tuple[Branch, ...]]]:
    """The partitions of a nominal feature's categories; under `branch` the missing ones are one more category."""
    if len(groups) < 2:
        return []
    if problem.nominal == "multiway":
        return [("multiway", tuple(groups))]
    sizes = range(1, len(groups)) if problem.nominal == "subset" else [1]
    return [
        ("subset", split)
        for size in sizes
        for chosen in combinations(groups, size)
        if (split := two_sides(groups, chosen, half=len(groups) == 2 or problem.nominal == "subset"))
    ]


def two_sides(groups: Sequence[Branch], chosen: Sequence[Branch], half: bool) -> tuple[Branch, ...]:
    """The chosen groups against the others; of a pair of mirror images only the one with the first group (half)."""
    if half and groups[0] not in chosen:
        return ()
    left = tuple(row for group in groups if group in chosen for row in group)
    right = tuple(row for group in groups if group not in chosen for row in group)
    return left, right


def place_missing(
    problem: Problem, known: Sequence[tuple[str, tuple[Branch, ...]]], absent: Branch
) -> list[tuple[str, tuple[Branch, ...]]]:
    """Where the missing ones go: each side in turn, the heaviest branch of many, or a branch of their own."""
    placed: list[tuple[str, tuple[Branch, ...]]] = []
    for form, branches in known:
        if problem.missing == "branch":
            placed.append((form, (*branches, absent)))
        elif form == "multiway":
            weights = [problem.weight(branch) for branch in branches]
            placed.append((form, join(branches, weights.index(max(weights)), absent)))
        else:
            placed += [(form, join(branches, side, absent)) for side in range(2)]
    return placed


def join(branches: Sequence[Branch], side: int, absent: Branch) -> tuple[Branch, ...]:
    """The branches with the missing rows added to one."""
    return tuple(branch + absent if place == side else branch for place, branch in enumerate(branches))


# ---------------------------------------------------------------------------------------------------- choice


def best_of(problem: Problem, rows: Branch, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The admissible candidates that are tied at the top, in the order given; none when the node cannot improve."""
    criterion = CRITERIA[problem.criterion]
    usable = [candidate for candidate in candidates if candidate.admissible]
    tied = top(usable, criterion.measure, criterion.tolerance(problem, rows))
    if criterion.then:
        tied = top(tied, criterion.then, tiny_weight(problem, rows))
    return tied


def top(candidates: Sequence[Candidate], name: str, tolerance: Exact) -> list[Candidate]:
    """Those within the tolerance of the largest value of one measure."""
    values = [candidate.scores[name] for candidate in candidates]
    best = max((value for value in values if value is not None), default=None)
    return [
        candidate
        for candidate, value in zip(candidates, values, strict=True)
        if value is not None and best is not None and value >= best - tolerance
    ]


def pure(problem: Problem, rows: Branch) -> bool:
    """All rows have one target."""
    return all(same(problem.targets[row], problem.targets[rows[0]]) for row in rows)


def prediction(problem: Problem, rows: Branch) -> Label | Fraction:
    """The majority class, the first of equals; the weighted mean, or median, for regression."""
    if problem.criterion == "absolute_error":
        return median(problem.moments(rows))
    if problem.criterion == "dissimilarity":
        return medoid(problem.moments(rows))
    if not problem.classes:
        return sum((w * y for w, y in problem.moments(rows)), Fraction(0)) / problem.weight(rows)
    counts = problem.counts(rows)
    return problem.classes[counts.index(max(counts))]
