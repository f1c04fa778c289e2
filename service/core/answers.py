"""What rows are answered: their way down the tree, and what stands at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.criteria import Floats
from service.core.descend import follow
from service.core.descend_parts import descend_parts
from service.core.folds import take_cells
from service.core.guide import Guide, are_floats, lay_out
from service.core.learner import Learner
from service.core.schema import Column
from service.core.statistics import Ints
from service.core.tree import Tree, choose_answers


@dataclass(frozen=True, slots=True)
class Answers:
    """The distinct answers, and which of them each row got: ``index: (row,)``.

    ``prediction: (answer,)`` are codes of classes, as floats, or numbers; ``probability: (answer, class)`` has no
    class for numbers. The first answers are those of the nodes. Rows that were parted have answers of their own behind
    them; ``heaviest: (row,)`` is then the node that most of a row ended in.
    """

    index: Ints
    prediction: Floats
    probability: Floats
    heaviest: Ints | None = None

    @property
    def leaf(self) -> Ints:
        """(row,) the node that each row, or most of it, ended in."""
        return self.index if self.heaviest is None else self.heaviest


def answer_rows(tree: Tree, guide: Guide, columns: Sequence[Column], rows: int) -> Answers:
    """The answers to all rows; ``columns`` are those of ``tree.features``, for which the guide was made."""
    node = follow(guide, columns, rows).node
    stopped = np.flatnonzero(~guide.is_leaf[node]) if guide.parted else np.empty(0, np.int64)
    if not len(stopped):
        return Answers(node, tree.prediction, tree.probability)
    parts = descend_parts(guide, [take_cells(column, stopped) for column in columns], len(stopped))
    heaviest, index = node.copy(), node
    heaviest[stopped] = parts.find_heaviest(len(stopped))
    index[stopped] = tree.nodes + np.arange(len(stopped))
    if tree.answers:
        # objects do not mix: the heaviest leaf's stands for all
        probability, prediction = tree.probability[heaviest[stopped]], tree.prediction[heaviest[stopped]]
    elif tree.classes:
        probability = parts.mix(tree.probability, len(stopped))
        prediction = choose_answers(probability, tree.loss)
    else:
        probability, prediction = np.zeros((len(stopped), 0)), parts.mix(tree.prediction, len(stopped))
    return Answers(
        index,
        np.concatenate([tree.prediction, prediction]),
        np.concatenate([tree.probability, probability]),
        heaviest,
    )


def answer_training(learner: Learner, tree: Tree, leaf: Ints) -> Answers:
    """The answers to the training rows, of which growth put each into ``leaf: (row,)``; parted ones go down again."""
    if not learner.parts_rows:
        return Answers(leaf, tree.prediction, tree.probability)
    columns = [coded.as_column() for coded in learner.features]
    return answer_rows(tree, lay_out(tree, are_floats(columns)), columns, len(leaf))
