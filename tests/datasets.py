"""Public data sets with missing values, many classes and many categories, ready to be posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.oracle.contract import read_columns
from tests.running import PROJECT


@dataclass(frozen=True)
class Dataset:
    """A file with its target; ``left_out`` columns are the target in other words, ``codes`` have digits for names."""

    file: str | Path
    target: str
    left_out: Sequence[str] = ()
    codes: Sequence[str] = ()

    @cached_property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """All rows that have a target."""
        columns = read_columns(self.file, self.codes)
        kept = [row for row, cell in enumerate(columns[self.target]) if cell is not None]
        return {name: [cells[row] for row in kept] for name, cells in columns.items() if name not in self.left_out}

    @property
    def targets(self) -> Sequence[Any]:
        """The target of each row."""
        return self.columns[self.target]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]


SOYBEAN = (
    "date plant.stand precip temp hail crop.hist area.dam sever seed.tmt germ plant.growth leaves leaf.halo leaf.marg "
    "leaf.size leaf.shread leaf.malf leaf.mild stem lodging stem.cankers canker.lesion fruiting.bodies ext.decay "
    "mycelium int.discolor sclerotia fruit.pods fruit.spots seed mold.growth seed.discolor seed.size shriveling roots"
)
DATASETS = {
    "votes": Dataset("HouseVotes84.csv", "Class"),
    "soybean": Dataset("Soybean.csv", "Class", codes=SOYBEAN.split()),
    "titanic": Dataset(PROJECT / "service" / "samples" / "titanic.csv", "survived"),
    "credit": Dataset("credit_data.csv", "Status"),
    "boston": Dataset("BostonHousing2.csv", "cmedv", left_out=("medv",), codes=("chas",)),
    "airquality": Dataset("airquality.csv", "Ozone"),
}
