"""What does not change from node to node of a run: features, what is maximized, parameters, sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.bins import WIDTHS, Binned
from service.core.candidates import Lack
from service.core.criteria import Floats
from service.core.encoding import CodedFeature
from service.core.objective import Objective
from service.core.parameters import Parameters
from service.core.prune_cost import Floor
from service.core.statistics import Ints

MANY_LEVELS = 6
"""So many levels below a node repay putting its rows in order three times as soon."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """From which numbers of rows on which way of searching is taken; they change how long it takes, and nothing else.

    ``coarse``: from so many rows at the root on, bins are counted; below, rows are kept in order. ``scan``: nodes with
    fewer rows are taken off 255 bins, which would hold a few or none; off fewer bins only smaller ones are.
    ``portion``: small nodes are then grown together up to about so many rows.
    """

    coarse: int = 20_000
    scan: int = 1000
    portion: int = 250_000

    def find_small(self, binned: Binned, ahead: Ints) -> Floats:
        """(node,) nodes with fewer rows are taken off the bins, sooner where the levels ``ahead`` repay the sorting."""
        most = self.scan * max(binned.find_widths()) / WIDTHS[-1]
        return np.where(ahead < MANY_LEVELS, most, 3 * most)


_LACK = {"branch": Lack.BRANCH, "surrogate": Lack.APART, "fractional": Lack.APART}


@dataclass(frozen=True, slots=True)
class Learner:
    """Everything about a run that does not change from node to node.

    ``directions: (feature,)`` 1, -1 or 0: predictions must rise, fall, or may do either. ``floor``: which nodes are not
    worth a split whatever it is.
    """

    features: tuple[CodedFeature, ...]
    objective: Objective
    parameters: Parameters
    directions: Ints | None = None
    sizes: Sizes = Sizes()
    floor: Floor | None = None

    def is_ordered(self, feature: int) -> bool:
        """True where a feature is split by cuts along its order."""
        coded = self.features[feature]
        return coded.feature.kind == "numeric" or (
            coded.feature.kind == "ordinal" and self.parameters.nominal != "multiway"
        )

    def ranks_by(self, measure: str | None) -> bool:
        """True where a ``measure`` ranks as the run's own selection does; None asks for that."""
        own = self.parameters.selection == "criterion" and self.parameters.cut_penalty is None
        return measure is None or (own and measure == self.objective.criterion.measure)

    @property
    def lack(self) -> Lack:
        """What becomes of missing values when candidates are weighed."""
        return _LACK.get(self.parameters.missing, Lack.DIRECTED)

    @property
    def parts_rows(self) -> bool:
        """True where rows that lack a value go to all branches, with a part of their weight each."""
        return self.parameters.missing == "fractional" and any(coded.has_missing for coded in self.features)

    def find_spent(self) -> NDArray[np.bool_]:
        """(feature,) True where one split uses a feature up, if features are not reused; else cuts may come again."""
        if self.parameters.reuse_features == "never":
            return np.ones(len(self.features), bool)
        return ~np.array([self.is_ordered(f) for f in range(len(self.features))], bool)
