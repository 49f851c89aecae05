"""Numbers as text, and tables of text with aligned columns."""

import math
from collections.abc import Sequence
from typing import Any


def number(value: float | None) -> str:
    """Three digits, or a dash for no value.

    >>> number(0.00012345), number(0.98765), number(12.3), number(None)
    ('1.23e-04', '0.988', '12.3', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.2e}"


def cell(value: Any) -> str:
    """A quantity's value in a table: numbers in three digits, whole numbers and words as they are."""
    return number(value) if value is None or isinstance(value, float) else str(value)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns, the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numeric = [all(text[:1] in "-+.0123456789" for text in column[1:] if text) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if right and index else text.ljust(width)
            for index, (text, width, right) in enumerate(zip(row, widths, numeric, strict=True))
        ).rstrip()
        for row in rows
    ]
