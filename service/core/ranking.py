"""Ranks of listed candidates: by the run's own selection, as growth chose, or by any measure; margins of the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.c45 import find_many_valued, find_useful
from service.core.criteria import LOWER_IS_BETTER, TIE_BREAKS, TOLERANCE, Floats
from service.core.judge import Reason
from service.core.learner import Learner
from service.core.listing import Listing
from service.core.statistics import Ints


def build_keys(learner: Learner, batch: Batch, listing: Listing, within: Floats, gain: Floats) -> list[Floats]:
    """What ranks, first key first, each (candidate,): tied with the best, the tie-breaking score, the score.

    ``within: (candidate,)`` is -inf for what is inadmissible. Under C4.5's selection, which takes the mean of ``gain:
    (candidate,)``, the first key says that the candidate is its feature's and has a useful gain.
    """
    criterion, node = learner.objective.criterion, listing.node
    score = np.where(within > -np.inf, listing.score, -np.inf)
    eligible: NDArray[np.bool_] | None = None
    rival = score
    if learner.parameters.selection == "c45":
        eligible = find_eligible(learner, batch, listing, within, gain)
        rival = np.where(eligible, score, -np.inf)
    best = np.full(batch.entries.nodes, -np.inf)
    np.maximum.at(best, node, rival)
    with np.errstate(invalid="ignore"):
        tied = (rival >= (best - learner.objective.tolerance(batch.stats))[node]) & (rival > -np.inf)
    keys = [tied.astype(float)]
    if criterion.tie_break:
        tie = np.zeros(len(node))
        tie[tied] = listing.score_rows(criterion.tie_break, np.flatnonzero(tied))
        keys.append(tie)
    if eligible is not None:
        keys.append((eligible & ~tied).astype(float))
    return [*keys, np.where(tied, 0.0, score)]


def find_eligible(learner: Learner, batch: Batch, listing: Listing, within: Floats, gain: Floats) -> NDArray[np.bool_]:
    """(candidate,) True for each feature's first best candidate, where its gain is useful (see `search.choose`)."""
    features = len(learner.features)
    segment = listing.node * features + listing.feature
    best = np.full(batch.entries.nodes * features, -np.inf)
    np.maximum.at(best, segment, within)
    ordered = np.array([learner.is_ordered(f) for f in range(features)], bool)[listing.feature]
    cut, other = (learner.objective.tolerance(batch.stats, how)[listing.node] for how in ("c45", "criterion"))
    near = np.flatnonzero((within >= best[segment] - np.where(ordered, cut, other)) & (within > -np.inf))
    first = near[np.diff(segment[near], prepend=-1) != 0]  # candidates stand in segment order
    table = np.full(len(best), -np.inf)
    table[segment[~ordered & (listing.reason == Reason.NO_IMPROVEMENT)]] = 0.0
    table[segment[first]] = gain[first]
    many_valued = find_many_valued(learner.features, batch.tally.all_rows)
    useful = find_useful(table.reshape(batch.entries.nodes, features), many_valued)
    eligible = np.zeros(len(segment), bool)
    eligible[first] = useful.ravel()[segment[first]]
    return eligible


def rank_keys(node: Ints, ranked: NDArray[np.bool_], keys: Sequence[Floats]) -> Ints:
    """(candidate,) 1 for the best of its node by ``keys``, 0 for what is not ranked; equal keys stay in order."""
    rank = np.zeros(len(node), np.int64)
    index = np.flatnonzero(ranked)
    order = index[np.lexsort((*(-key[index] for key in reversed(keys)), node[index]))]
    first = np.flatnonzero(np.diff(node[order], prepend=-1))
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order))) + 1
    return rank


def rank_by(learner: Learner, listing: Listing, measure: str | None, rows: Ints) -> Ints:
    """Ranks of ``rows``, all candidates of a node, under another measure; 0 where inadmissible or undefined.

    Scores that differ by less than a trillionth of the best are tied, and the first of them is the first, or the best
    by what breaks the measure's ties, as the learner has it.
    """
    if measure is None or learner.ranks_by(measure):
        return listing.rank[rows]
    score = listing.score_rows(measure, rows) * (-1.0 if measure in LOWER_IS_BETTER else 1.0)
    ranked = (listing.reason[rows] == 0) & ~np.isnan(score)
    score = np.where(ranked, score, -np.inf)
    best = score.max(initial=-np.inf)
    tied = ranked & (score >= best - TOLERANCE * abs(best)) if np.isfinite(best) else ranked & (score == best)
    tie = np.zeros(len(rows))
    if measure in TIE_BREAKS:
        tie[tied] = listing.score_rows(TIE_BREAKS[measure], rows[tied])
    return rank_keys(listing.node[rows], ranked, [tied.astype(float), tie, np.where(tied, 0.0, score)])


def count_better(score: Floats, admissible: NDArray[np.bool_], above: float) -> int:
    """How many of the candidates that are ``admissible``, all of them in a node, score more than ``above``."""
    return int(np.count_nonzero(admissible & (score > above) & (score < np.inf)))


@dataclass(frozen=True, slots=True)
class Margin:
    """How far the best admissible candidate of a node is ahead; None where there is none to compare with.

    ``nearest`` of the next one, ``other`` of the best on another feature; ``best`` is its score.
    """

    best: float | None = None
    nearest: float | None = None
    other: float | None = None

    def relate(self, ahead: float | None) -> float | None:
        """A margin as a share of the best score."""
        return ahead / abs(self.best) if ahead is not None and self.best else None


def find_margin(listing: Listing, rows: Ints, rank: Ints, score: Floats) -> Margin:
    """The margin of the first of ``rows``, all candidates of a node, with their ranks and scores: (candidate,).

    Scores are such that more is better.
    """
    first, second = np.flatnonzero(rank == 1), np.flatnonzero(rank == 2)
    if not len(first):
        return Margin()
    best = float(score[first[0]])
    other = score[(rank > 0) & (listing.feature[rows] != listing.feature[rows[first[0]]])]
    return Margin(
        best,
        best - float(score[second[0]]) if len(second) else None,
        best - float(np.nanmax(other)) if len(other) else None,
    )
