"""How R 4.2 prints numbers, vectors and matrices: as much of `format` and `print` as rpart's texts need.

Sources: R's `format.Rd`, and `formatReal` in src/main/format.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

LEFT_OF_POINT = 1


def signif(value: float, digits: int) -> float:
    """The value rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def format_numbers(values: Sequence[float], digits: int, nsmall: int = 0) -> list[str]:
    """R's `format`: all to as many decimals as some value needs for ``digits`` significant ones, and equally wide."""
    rounded = [Decimal(f"{value:.{digits - 1}e}").normalize() for value in values]
    signs = any(value < 0 for value in values)
    decimals = max((max(0, -int(value.as_tuple().exponent)) for value in rounded), default=0)
    whole = max((len(str(abs(int(value)))) + (value < 0) for value in rounded), default=LEFT_OF_POINT)
    mantissa = max((len(value.as_tuple().digits) for value in rounded), default=1) - 1
    exponent = 3 if any(value and abs(value.adjusted()) >= 100 for value in rounded) else 2
    scientific = signs + 1 + (mantissa > 0) + mantissa + 2 + exponent
    if whole + decimals + (decimals > 0) > scientific:
        texts = [f"{value:.{mantissa}e}" for value in values]
    else:
        texts = [f"{value:.{max(decimals, nsmall)}f}" for value in values]
    return pad_left(texts)


def format_g(value: float, digits: int) -> str:
    """C's `%.<digits>g`."""
    return f"{value:.{digits}g}"


def pad_left(texts: Sequence[str]) -> list[str]:
    """All as wide as the widest, to the right."""
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def pad_right(texts: Sequence[str]) -> list[str]:
    """All as wide as the widest, to the left."""
    width = max(map(len, texts), default=0)
    return [text.ljust(width) for text in texts]


def print_matrix(rows: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The lines of a matrix whose columns are formatted already, each with its name above."""
    parts = [pad_right(["", *rows])] + [pad_left([name, *cells]) for name, cells in columns]
    return [" ".join(line) for line in zip(*parts, strict=True)]


def print_named(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The two lines of a named vector."""
    width = max(map(len, [*names, *texts]))
    return ["".join(f"{cell:>{width}} " for cell in line) for line in (names, texts)]
