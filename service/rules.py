"""The way of a row in words: the test of each node, and all tests on a feature joined into one condition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.core.candidates import NO_ROUTE, Form
from service.core.explain import How
from service.core.schema import UNSEEN, Feature, Label
from service.core.tree import Surrogates, Tree
from service.rendering.nodes import show_threshold

Cut = tuple[float, int]
"""A threshold as float64 and as int64, for `show_threshold`."""


@dataclass(slots=True)
class Condition:
    """What is known of one feature: an interval, codes of categories (`UNSEEN`: any new one), or that none is there.

    ``above`` is excluded, ``up_to`` included; of ordinal and other categories there are ``codes`` (None: any).
    """

    feature: Feature
    above: Cut | None = None
    up_to: Cut | None = None
    codes: set[int] | None = None
    has_value: bool | None = None

    def cut(self, at: Cut, left: bool) -> None:
        """Values up to the threshold, or the others."""
        self.has_value = True
        if left:
            self.up_to = at if self.up_to is None else min(self.up_to, at)
        else:
            self.above = at if self.above is None else max(self.above, at)

    def keep(self, codes: set[int]) -> None:
        """Only these categories."""
        self.has_value = True
        self.codes = codes if self.codes is None else self.codes & codes

    def show(self) -> dict[str, Any]:
        """The condition as JSON, with its text."""
        shown: dict[str, Any] = {"feature": self.feature.name, "text": self.write()}
        if not self.has_value:
            return shown | {"has_value": False}
        if self.codes is not None:
            labels, new = self._list_labels()
            return shown | {"none_of" if new else "one_of": labels}
        bounds = {"above": self.above, "up_to": self.up_to}
        cuts = {name: show_threshold(self.feature, *cut) for name, cut in bounds.items() if cut is not None}
        return shown | (cuts or {"has_value": True})

    def write(self) -> str:
        """The condition in words."""
        name = self.feature.name
        if not self.has_value:
            return f"{name} has no value"
        if self.codes is not None:
            labels, new = self._list_labels()
            return write_categories(name, labels, "none of" if new else "one of")
        above, up_to = (cut and show_threshold(self.feature, *cut) for cut in (self.above, self.up_to))
        if above is None:
            return f"{name} has a value" if up_to is None else f"{name} <= {up_to}"
        return f"{name} > {above}" if up_to is None else f"{above} < {name} <= {up_to}"

    def _list_labels(self) -> tuple[list[Label], bool]:
        """The categories, or where new ones are among them, those that are not."""
        codes = self.codes or set()
        new = UNSEEN in codes
        return [label for code, label in enumerate(self.feature.categories) if (code in codes) != new], new


def write_categories(name: str, labels: Sequence[Label | None], which: str = "one of") -> str:
    """The words for some categories; null is a missing one."""
    written = [json.dumps(label, ensure_ascii=False) for label in labels]
    if len(written) == 1 and which == "one of":
        return f"{name} is {written[0]}"
    return f"{name} is {which} {', '.join(written)}"


def write_test(tree: Tree, node: int) -> str:
    """What an inner node asks: where it holds a row goes to the first branch, but for a multiway split."""
    feature, form = tree.features[int(tree.feature[node])], Form(int(tree.form[node]))
    if form == Form.MISSING:
        return f"{feature.name} has no value"
    if form == Form.MULTIWAY:
        return f"which {feature.name}"
    return _write_side(feature, tree, node, flipped=False)


def write_surrogate(tree: Tree, stands: Surrogates, which: int) -> str:
    """What a surrogate asks in place of its node."""
    return _write_side(tree.features[int(stands.feature[which])], stands, which, flipped=bool(stands.flipped[which]))


def _write_side(feature: Feature, tests: Tree | Surrogates, at: int, *, flipped: bool) -> str:
    """The condition under which a row goes to the first branch."""
    if feature.kind == "numeric":
        threshold = show_threshold(feature, float(tests.threshold[at]), int(tests.whole[at]))
        return f"{feature.name} {'>' if flipped else '<='} {threshold}"
    labels: list[Label | None] = [*feature.categories, None]
    branches = list_branches(feature, tests, at, Form.SUBSET)
    return write_categories(feature.name, [label for label, b in zip(labels, branches, strict=False) if b == flipped])


def list_branches(feature: Feature, tests: Tree | Surrogates, at: int, form: Form) -> list[int]:
    """The branch of each category, `NO_ROUTE` where the test does not know it; flipped ones are not turned round."""
    if feature.kind == "ordinal" and form != Form.MULTIWAY:
        return [int(code > tests.whole[at]) for code in range(len(feature.categories))]
    start = int(tests.category_start[at])
    branches: list[int] = tests.category_branch[start : start + len(feature.categories) + 1].tolist()
    return branches


class RowRule:
    """The conditions of one row, gathered step by step; ``values`` are its cells by feature, None where missing.

    A row for which all of them hold goes the same way.
    """

    def __init__(self, tree: Tree, values: Sequence[float | None]) -> None:
        self.tree, self.values = tree, values
        self.conditions: dict[int, Condition] = {}

    def add(self, node: int, how: How, surrogate: int) -> None:
        """What the row's way from an inner node on says of its cells."""
        index, form = int(self.tree.feature[node]), Form(int(self.tree.form[node]))
        if form == Form.MISSING:
            condition = self._find(index)
            condition.has_value = self.values[index] is not None
            return
        self._read(index, self.tree, node, form)
        stands = self.tree.surrogates
        if stands is not None and stands.asked.all() and how not in (How.VALUE, How.ENDED):
            for which in stands.list_at(node):
                self._read(int(stands.feature[which]), stands, which, Form.SUBSET)
                if which == surrogate:
                    break

    def show(self) -> list[dict[str, Any]]:
        """The conditions, in the order in which features were asked for."""
        return [condition.show() for condition in self.conditions.values()]

    def write(self) -> str:
        """The rule in words."""
        return " and ".join(condition.write() for condition in self.conditions.values()) or "any row"

    def _find(self, index: int) -> Condition:
        return self.conditions.setdefault(index, Condition(self.tree.features[index]))

    def _read(self, index: int, tests: Tree | Surrogates, at: int, form: Form) -> None:
        """A test read the cell of a feature, or could not tell by it."""
        condition, value = self._find(index), self.values[index]
        if value is None:
            condition.has_value = False
            return
        if condition.feature.kind == "numeric":
            cut = float(tests.threshold[at]), int(tests.whole[at])
            condition.cut(cut, value <= (cut[1] if isinstance(value, int) else cut[0]))
            return
        branches = list_branches(condition.feature, tests, at, form)[: len(condition.feature.categories)]
        branch = branches[int(value)] if value >= 0 else NO_ROUTE
        alike = {code for code, b in enumerate(branches) if b == branch}
        condition.keep(alike | {UNSEEN} if branch == NO_ROUTE else alike)
