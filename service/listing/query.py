"""What a listing of candidate splits is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SplitQuery:
    """Which candidates to list, in which order."""

    node: int | None = None
    feature: str | None = None
    type: str | None = None
    chosen: bool | None = None
    admissible: bool | None = None
    top: int | None = None
    measure: str | None = None
    sort: Literal["rank", "position"] = "rank"
    limit: int = 100
    cursor: str | None = None

    @property
    def is_whole(self) -> bool:
        """True where its pages leave no candidate of any node out."""
        asked = (self.node, self.feature, self.type, self.chosen, self.admissible, self.top)
        return all(each is None for each in asked)
