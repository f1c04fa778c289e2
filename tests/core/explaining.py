"""Small random trees of every form, and rows that make them say everything they can say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import example
from hypothesis import strategies as st

from service.core.answers import Answers, answer_rows
from service.core.folds import take_cells
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


def make_stand_ins(seed: int, style: int = 0) -> Case:
    """A tree whose surrogates are many, and rows of which many cells are missing or new."""
    source = np.random.default_rng(seed)
    rows = 120
    x, z = source.normal(size=rows), source.integers(0, 4, rows)
    y = x + z + source.normal(size=rows) / 4
    code = np.where(source.random(rows) < 0.9, (x > 0) * 1, 2).astype(np.int32)
    size = np.where(source.random(rows) < 0.9, z, source.integers(0, 4, rows)).astype(np.int32)
    trained = [
        Column("x", "numeric", np.where(source.random(rows) < 0.2, np.nan, x)),
        Column("z", "numeric", z.astype(np.int64), missing=source.random(rows) < 0.2),
        Column("like x", "numeric", x * -2 + source.normal(size=rows) / 3),
        Column("side", "nominal", np.where(source.random(rows) < 0.1, -1, code).astype(np.int32), ("l", "r", "q")),
        Column("size", "ordinal", size, tuple(ORDER)),
    ]
    parameters = {"missing": "surrogate", "max_depth": 3, "min_samples_leaf": 5, "surrogate_style": style}
    target = Target("y", values=y) if seed % 2 else classes(["a" if v < 1 else "b" if v < 2 else "c" for v in y])
    tree = grow(trained, target, parameters).tree
    asked = [take_cells(column, np.arange(8)) for column in trained]
    gone = source.random((5, 8)) < 0.5
    asked[0].values[gone[0]] = np.nan
    asked[1] = Column("z", "numeric", asked[1].values, missing=gone[1])
    asked[2].values[gone[2]] = np.nan
    asked[3].values[gone[3]] = UNSEEN
    asked[4].values[gone[4]] = -1
    return Case(tree, asked)


def with_stand_ins(test: Callable[..., None]) -> Callable[..., None]:
    """Tries a property of random cases on trees with surrogates as well."""
    for seed in range(6):
        test = example(case=make_stand_ins(seed, seed % 2))(test)
    return test
