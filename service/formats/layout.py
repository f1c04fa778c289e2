"""The columns of a listing as CSV and Arrow have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from service.core.tree import Tree
from service.rendering.columns import Part

Chunk: TypeAlias = tuple[Part, ...] | list[dict[str, Any]]
"""Some candidates: in columns, or as they are shown."""
NUMBERS = ("threshold", "below", "above")


def count_chunk(chunk: Chunk) -> int:
    """How many candidates a chunk has."""
    return sum(map(len, chunk)) if isinstance(chunk, tuple) else len(chunk)


@dataclass(frozen=True)
class Layout:
    """What differs from model to model: the names of the measures, and how many numbers are predicted."""

    measures: Sequence[str]
    classes: int
    outputs: int
    notes: Mapping[str, str]


def lay_out(tree: Tree, measures: Sequence[str], notes: Mapping[str, str]) -> Layout:
    """The layout of a tree's candidates; ``notes`` are what a file says of itself."""
    outputs = tree.prediction.shape[1] if tree.prediction.ndim > 1 else 1
    return Layout(measures, len(tree.classes), outputs, notes)


def flatten(row: Mapping[str, Any], layout: Layout) -> list[Any]:
    """The cells of `list_columns`."""
    split, scores = row["split"], row["scores"]
    return [
        row["node"], row["rank"], row["chosen"], row["feature"], split["type"],
        *(split.get(name) for name in (*NUMBERS, "categories", "missing", "shares")),
        row["score"], *(scores[name] for name in layout.measures), row["admissible"], row["reason"], row["branches"],
    ]  # fmt: skip


def list_columns(layout: Layout) -> list[tuple[str, str]]:
    """The columns of CSV and Arrow with what they hold."""
    return [
        ("node", "whole"), ("rank", "whole"), ("chosen", "flag"), ("feature", "name"), ("type", "name"),
        *((name, "number") for name in NUMBERS), ("categories", "labels"), ("missing", "text"), ("shares", "numbers"),
        ("score", "number"), *((name, "number") for name in layout.measures), ("admissible", "flag"),
        ("reason", "name"), ("branches", "branches"),
    ]  # fmt: skip
