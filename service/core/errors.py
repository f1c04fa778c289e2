"""What can go wrong inside the learner, in the words of the domain.

    CoreError
    ├── InvalidData          a table, column or cell that cannot be used
    ├── InvalidParameters    a parameter that does not exist or cannot have that value
    └── UnsuitableTask       the target and what is asked of it do not fit together

Each carries its faults: a JSON pointer to the place, and what is wrong there with the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where (a JSON pointer such as ``/data/columns/age/17``), and what to do."""

    place: str
    message: str


def pointer(*parts: object) -> str:
    """The JSON pointer (RFC 6901) through the given keys and indices."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


class CoreError(Exception):
    """Root of the learner's errors; ``faults`` has at least one entry."""

    def __init__(self, faults: Sequence[Fault] | Fault) -> None:
        self.faults = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("; ".join(f"{fault.place}: {fault.message}" for fault in self.faults))


class InvalidData(CoreError):
    """Posted data are well-formed and yet cannot be learnt from or predicted on."""


class InvalidParameters(CoreError):
    """A parameter is unknown, out of its range, or at odds with another one."""


class UnsuitableTask(CoreError):
    """The target does not fit the task, the criterion or the positive class that was asked for."""
