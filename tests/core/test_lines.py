"""Cuts read off the entries of one node in the order of a number are the candidates that counting its codes gives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from service.core import lines
from service.core.candidates import Candidates
from service.core.lines import add_neighbours, can_line, draw_line, pick_cuts, pick_sides, walk_cuts, weigh_lack
from service.core.schema import Target
from service.core.weigh import weigh_block
from tests.core.growing import SORTED, make_root, random_columns, random_target
from tests.core.making import classes, labels, numbers, values

KINDS = pytest.mark.parametrize("classes_", [0, 2, 3])
WEIGHTS = pytest.mark.parametrize("weights", ["none", "real"])


def list_cuts(table: Candidates) -> list[object]:
    """Rows and statistics of both branches, cut by cut."""
    return [table.rows.T.tolist(), np.moveaxis(table.branches, -1, 0).tolist()]


@KINDS
@WEIGHTS
def test_lines_give_the_cuts_that_codes_give(classes_: int, weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Walked in portions or picked one by one, every cut has the same branches, to the last digit, and neighbours."""
    monkeypatch.setattr(lines, "STEP", 7)
    source = np.random.default_rng(classes_)
    columns = random_columns(source, 90, gaps=False)[:4]
    target = random_target(source, columns, classes_, weights)
    learner, batch = make_root(columns, target, {}, SORTED)
    for feature in range(4):
        line = draw_line(learner, batch, feature)
        (table, *_) = weigh_block(learner, batch, np.array([feature]))[1]
        picked = pick_cuts(batch, line, line.find_cuts())[0]
        assert list_cuts(picked) == list_cuts(table)
        cells = learner.features[feature].numbers
        for beside in ("lower", "upper"):
            assert (cells[getattr(picked, beside)] == cells[getattr(table, beside)]).all()
        walked = list(walk_cuts(batch, line, scored=False))
        assert len(walked) > 1 or len(table.segment) < 14
        assert list_cuts(join(walked)) == list_cuts(table)
        scored = join(list(walk_cuts(batch, line)))
        assert (scored.branches == table.branches[: len(scored.branches)]).all()
        few = line.find_cuts()[::-3]
        assert list_cuts(pick_cuts(batch, line, few)[0]) == list_cuts(
            join([pick_cuts(batch, line, few[i : i + 1])[0] for i in range(len(few))])
        )


@KINDS
@pytest.mark.parametrize("missing", ["direction", "branch", "surrogate", "fractional"])
def test_lines_with_gaps_give_the_cuts_that_codes_give(
    classes_: int, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever becomes of missing values, each cut has the same branches and routes, and what is in none of them.

    What is missing against what is not comes last, where that is a candidate.
    """
    monkeypatch.setattr(lines, "STEP", 7)
    source = np.random.default_rng(classes_)
    columns = random_columns(source, 90, gaps=True)[:4]
    learner, batch = make_root(columns, random_target(source, columns, classes_, "real"), {"missing": missing}, SORTED)
    for feature in range(4):
        line = draw_line(learner, batch, feature)
        table, *rest = weigh_block(learner, batch, np.array([feature]))[1]
        walked, lack = list(walk_cuts(batch, line)), weigh_lack(batch, line)
        assert len(walked) > 1 or len(table.segment) < 14
        for found, given in [(join(walked), table), *zip(lack, rest, strict=True)]:
            assert list_cuts(found) == list_cuts(given)
            assert found.missing_to.tolist() == given.missing_to.tolist()
            assert (found.gone is None) == (given.gone is None)
            if found.gone is not None and given.gone is not None:
                assert found.gone.tolist() == given.gone.tolist()
                assert np.array_equal(found.gone_rows, given.gone_rows)
        cells = learner.features[feature].numbers
        found = add_neighbours(batch, line, join(walked))
        assert cells[found.lower].tolist() == cells[table.lower].tolist()
        assert cells[found.upper].tolist() == cells[table.upper].tolist()


def show_by_position(table: Candidates, name: str, asked: NDArray[np.bool_] | None = None) -> list[tuple[int, object]]:
    """What a table says of its candidates, or of those that are ``asked`` for, each with its position."""
    told = np.moveaxis(getattr(table, name), -1, 0)
    return [
        (position, each.tolist())
        for place, (position, each) in enumerate(zip(table.position.tolist(), told, strict=True))
        if asked is None or asked[place]
    ]


@KINDS
@WEIGHTS
def test_picked_cuts_with_gaps_are_those_that_are_walked(classes_: int, weights: str) -> None:
    """Twice each, missing values left and right, with the rows beside them; and last what is missing alone."""
    source = np.random.default_rng(classes_)
    columns = random_columns(source, 90, gaps=True)[:4]
    learner, batch = make_root(columns, random_target(source, columns, classes_, weights), {}, SORTED)
    lacking = 0
    for feature in range(4):
        line = draw_line(learner, batch, feature)
        if not len(line.missing):
            continue
        lacking += 1
        lack = weigh_lack(batch, line)
        walked = add_neighbours(batch, line, join(list(walk_cuts(batch, line, scored=False))))
        for cut in (line.find_cuts(), line.find_cuts()[::3], line.find_cuts()[-1:], line.find_cuts()[:0]):
            *tables, last = [table for table, _ in pick_sides(batch, line, cut)]
            assert [list_cuts(last)] == [list_cuts(given) for given in lack]
            assert len(tables) == (2 if len(cut) else 0)
            for name in ("position", "missing_to", "lower", "upper", "rows", "branches"):
                found = [each for table in tables for each in show_by_position(table, name)]
                asked = np.isin(walked.position // 2, cut)
                assert sorted(found) == show_by_position(walked, name, asked)
    assert lacking


def join(tables: list[Candidates]) -> Candidates:
    """Tables one after the other."""
    return Candidates(
        tables[0].form,
        *(np.concatenate([getattr(table, name) for table in tables]) for name in ("segment", "position", "missing_to")),
        np.concatenate([table.rows for table in tables], axis=1),
        np.concatenate([table.branches for table in tables], axis=2),
        gone=None if tables[0].gone is None else np.concatenate([np.asarray(table.gone) for table in tables], axis=1),
        gone_rows=None if tables[0].gone_rows is None else np.concatenate([table.gone_rows for table in tables]),
    )


def test_which_features_have_a_line() -> None:
    """Numbers without gaps, where statistics of branches add up: no names, nothing missing, no medians."""
    columns = [numbers("x", [1, 2, 3]), numbers("gap", [1, None, 3]), labels("name", ["a", "b", "a"])]

    def ask(target: Target, criterion: str) -> list[bool]:
        learner, batch = make_root(columns, target, {"criterion": criterion}, SORTED)
        return [can_line(learner, batch, feature) for feature in range(3)]

    assert ask(classes(["p", "q", "q"]), "gini") == [True, False, False]
    assert ask(values([1.0, 2.0, 3.0]), "variance") == [True, False, False]
    assert ask(values([1.0, 2.0, 3.0]), "absolute_error") == [False, False, False]
