"""Small random trees of every form, and rows that make them say everything they can say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from service.core.answers import Answers, answer_rows
from service.core.guide import Guide, are_floats, lay_out
from service.core.schema import UNSEEN, Column, Target
from service.core.tree import Tree
from tests.core.making import classes, grow, labels, numbers, values

ORDER = ["S", "M", "L", "XL"]
CRITERIA: dict[str, list[dict[str, Any]]] = {
    "classes": [{"criterion": "gini"}, {"criterion": "entropy", "class_weight": {"a": 3, "b": 1, "c": 1}},
                {"criterion": "gini", "priors": {"a": 1, "b": 2, "c": 2}, "loss": [[0, 3, 1], [1, 0, 1], [1, 1, 0]]}],
    "numbers": [{"criterion": "variance"}, {"criterion": "absolute_error"}, {"criterion": "poisson"}],
    "vectors": [{"criterion": "variance"}],
}  # fmt: skip
MISSING = ["direction", "branch", "surrogate", "fractional"]


@dataclass(frozen=True)
class Case:
    """A tree, and rows to be explained."""

    tree: Tree
    columns: Sequence[Column]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.columns[0].values)

    @property
    def guide(self) -> Guide:
        """The guide for these columns."""
        return lay_out(self.tree, are_floats(self.columns))

    def answer(self, columns: Sequence[Column] | None = None) -> Answers:
        """What rows are answered."""
        asked = self.columns if columns is None else columns
        return answer_rows(self.tree, lay_out(self.tree, are_floats(asked)), asked, len(asked[0].values))


@st.composite
def column(draw: st.DrawFn, place: int, rows: int, cells: str) -> Column:
    """One of some kind; ``cells`` is that of another column of the same kind, to be asked about."""
    gap = st.none() if draw(st.booleans()) or not cells else st.nothing()
    kind = cells or draw(st.sampled_from(["whole", "real", "nominal", "boolean", "ordinal"]))
    drawn: dict[str, st.SearchStrategy[Any]] = {
        "whole": st.integers(0, 4), "real": st.sampled_from([-1.5, 0.0, 0.1, 2.5, 1e300]),
        "nominal": st.sampled_from("pqrs"), "boolean": st.booleans(), "ordinal": st.sampled_from(ORDER),
    }  # fmt: skip
    made = draw(st.lists(st.one_of(drawn[kind], drawn[kind], gap), min_size=rows, max_size=rows))
    name = f"{kind}{place}"
    if kind in ("whole", "real"):
        return numbers(name, made)
    known = {"nominal": list("pqrs"), "boolean": [False, True], "ordinal": ORDER}[kind]
    return labels(name, made, known, "nominal" if kind == "nominal" else "boolean" if kind == "boolean" else "ordinal")


@st.composite
def targets(draw: st.DrawFn, kind: str, rows: int) -> Target:
    """What is learnt."""
    if kind == "classes":
        return classes(["a", "b", "c", *draw(st.lists(st.sampled_from("abc"), min_size=rows - 3, max_size=rows - 3))])
    cells = st.lists(st.integers(1, 9).map(float), min_size=rows, max_size=rows)
    if kind == "numbers":
        return values(draw(cells))
    return Target("y", values=np.array([draw(cells), draw(cells)]).T, statistic="vectors", names=("y", "z"))


@st.composite
def cases(draw: st.DrawFn, missing: Sequence[str] = MISSING) -> Case:
    """A tree of few rows and features, and rows with gaps, new categories and numbers between those of training."""
    rows, asked = draw(st.integers(6, 14)), 4
    kind = draw(st.sampled_from(sorted(CRITERIA)))
    target = draw(targets(kind, rows))
    trained = [draw(column(place, rows, "")) for place in range(draw(st.integers(1, 4)))]
    parameters = dict(draw(st.sampled_from(CRITERIA[kind])))
    parameters |= {"missing": draw(st.sampled_from(missing)), "max_depth": draw(st.sampled_from([2, 4, None]))}
    parameters["nominal"] = draw(st.sampled_from(["subset", "multiway", "one_vs_rest"]))
    if parameters["missing"] == "surrogate":
        parameters["nominal"] = "subset"
    tree = grow(trained, target, parameters).tree
    posted = []
    for place, known in enumerate(trained):
        new = draw(column(place, asked, "".join(filter(str.isalpha, known.name))))
        if known.kind == "nominal" and draw(st.booleans()):
            new.values[0] = UNSEEN
        if known.kind == "numeric" and known.values.dtype.kind == "i" and draw(st.booleans()):
            real = new.values + 0.3
            real[new.is_missing()] = np.nan
            new = Column(known.name, "numeric", real)
        elif known.kind == "numeric" and known.values.dtype.kind == "f":
            cells = new.values.astype(float)
            cells[new.is_missing()] = np.nan
            new = Column(known.name, "numeric", cells)
        posted.append(new)
    return Case(tree, posted)
