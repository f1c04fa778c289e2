"""A process is ready only when it has learnt and predicted something of which the answer is known."""

from __future__ import annotations

import logging
from functools import cache

import numpy as np

from service.core.descend import descend
from service.core.learn import learn
from service.core.parameters import resolve
from service.core.schema import Target
from service.readers.json_table import Limits, read_table
from service.readers.json_text import parse

log = logging.getLogger(__name__)

_ROWS = b'{"header": ["A", "B", "C", "D"], "rows": [[1, 1, 1, "n"], [1, 1, 0, "n"], [1, 1, 0, "y"], [1, 0, 1, "y"]]}'
_ANSWERS = ["n", "n", "n", "y"]  # the textbook tree: B first, then C, which leaves a tie that the first class wins


@cache
def rehearse() -> bool:
    """Whether reading, learning and predicting four rows gives their known answers; tried once in each process."""
    try:
        *features, label = read_table(parse(_ROWS), declared={}, order=None, limits=Limits(10, 10)).columns
        target = Target("D", tuple(map(str, label.categories)), label.values.astype(np.int32))
        tree = learn(features, target, resolve("cart", {}, "classification")).tree
        node = descend(tree, features, 4).node
        answers = [tree.classes[int(code)] for code in tree.prediction[node]]
    except Exception:
        log.exception("the rehearsal failed")
        return False
    if answers != _ANSWERS:
        log.error("the rehearsal gave %s instead of %s", answers, _ANSWERS)
    return answers == _ANSWERS
