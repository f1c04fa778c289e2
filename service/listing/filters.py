"""Which candidates of a listing a query wants."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited
from service.core.candidates import Form
from service.core.listing import Listing
from service.core.statistics import Ints
from service.listing.query import SplitQuery

Flags: TypeAlias = NDArray[np.bool_]


def find_wanted(audited: Audited, listing: Listing, rows: Ints, query: SplitQuery) -> Flags:
    """(candidate,) True for those of the ``rows`` with which all filters agree."""
    wanted = np.ones(len(rows), bool)
    if query.feature is not None:
        names = [feature.name for feature in audited.tree.features]
        wanted &= listing.feature[rows] == names.index(query.feature)
    if query.type is not None:
        wanted &= _name_forms(audited, listing, rows) == query.type
    if query.chosen is not None:
        wanted &= listing.chosen[rows] == query.chosen
    if query.admissible is not None:
        wanted &= (listing.reason[rows] == 0) == query.admissible
    return wanted


def _name_forms(audited: Audited, listing: Listing, rows: Ints) -> np.ndarray[Any, np.dtype[np.str_]]:
    """(candidate,) the API's name of each candidate's form; cuts of an ordinal feature are subsets."""
    names = np.array([table.form.name.lower() for table in listing.tables])[listing.table[rows]]
    ordinal = np.array([feature.kind == "ordinal" for feature in audited.tree.features])
    cut = names == Form.THRESHOLD.name.lower()
    return np.where(ordinal[listing.feature[rows]] & cut, "subset", names)
