"""What rows are answered: their way down the tree, and what stands at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.core.criteria import Floats
from service.core.descend import follow
from service.core.guide import Guide
from service.core.schema import Column
from service.core.statistics import Ints
from service.core.tree import Tree


@dataclass(frozen=True, slots=True)
class Answers:
    """The distinct answers, and which of them each row got: ``index: (row,)``.

    ``prediction: (answer,)`` are codes of classes, as floats, or numbers; ``probability: (answer, class)`` has no
    class for numbers. Of rows that each end in one node, answers are nodes.
    """

    index: Ints
    prediction: Floats
    probability: Floats


def answer_rows(tree: Tree, guide: Guide, columns: Sequence[Column], rows: int) -> Answers:
    """The answers to all rows; ``columns`` are those of ``tree.features``, for which the guide was made."""
    node = follow(guide, columns, rows).node
    return Answers(node, tree.prediction, tree.probability)
