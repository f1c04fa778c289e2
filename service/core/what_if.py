"""A split that somebody describes, weighed at a node as those are that the learner weighed.

The described outcome takes the place of the feature: a column of two categories in order (or of several, for a multiway
split), of which the learner's own functions make candidates. So nothing here scores, judges or counts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.core.audit import Audited, rebuild_batch, weigh_listing
from service.core.candidates import NO_ROUTE, Form
from service.core.encoding import CodedFeature, smallest_unsigned
from service.core.listing import Listing
from service.core.schema import Feature, Kind
from service.core.statistics import Ints


def weigh_described(
    audited: Audited, node: int, feature: int, outcome: Ints, *, multiway: bool
) -> tuple[Audited, Listing]:
    """The candidates that part the rows as ``outcome: (row,)`` says, -1 where the feature has no value.

    Where missing values have a learnt direction there is one for each side; one that tells missing from present, and
    one that parts nothing, may stand beside them. Also the audit that they are shown by: its only feature is the
    outcome.
    """
    learner = audited.learner
    branches = int(outcome.max(initial=0)) + 1 if multiway else 2
    codes = np.where(outcome < 0, branches, outcome).astype(smallest_unsigned(branches))
    kind: Kind = "nominal" if multiway else "ordinal"
    described = CodedFeature(Feature(learner.features[feature].feature.name, kind, tuple(range(branches))), codes=codes)
    directions = None if learner.directions is None else learner.directions[[feature]]
    alone = replace(
        learner,
        features=(described,),
        parameters=replace(learner.parameters, nominal="multiway" if multiway else "subset"),
        directions=directions,
    )
    nodes = np.array([node])
    batch = rebuild_batch(audited, nodes)
    if batch.used is not None:
        batch = replace(batch, used=batch.used[:, [feature]])
    return replace(audited, learner=alone), weigh_listing(alone, audited.target, batch, nodes)


def pick_described(listing: Listing, form: Form, missing_to: int | None) -> int | None:
    """The candidate of the ``form``, with what is missing on the side that is asked for (None: on the better one).

    None where the outcome parts nothing at the node.
    """
    forms = np.array([table.form for table in listing.tables])
    of_form = np.flatnonzero(forms[listing.table] == form)
    if missing_to is not None:
        side = np.array([listing.tables[listing.table[i]].missing_to[listing.place[i]] for i in of_form])
        # where nothing is missing here every side is right
        of_form = of_form[(side == missing_to) | (side == NO_ROUTE)]
    if not len(of_form):
        return None
    rank = np.where(listing.rank[of_form] == 0, np.iinfo(np.int64).max, listing.rank[of_form])
    score = np.nan_to_num(listing.score[of_form], nan=-np.inf)
    return int(of_form[np.lexsort((-score, rank))[0]])
