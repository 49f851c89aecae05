"""How values are shown: numbers as text, aligned tables for a terminal, HTML for notebooks with all text escaped."""

import base64
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def counted(count: int, noun: str, more: str = "") -> str:
    """A number with its noun, in the singular for one.

    - `more`: words between the two.

    >>> counted(1, "run"), counted(3, "run"), counted(2, "run", "more")
    ('1 run', '3 runs', '2 more runs')
    """
    return " ".join(word for word in (str(count), more, noun if count == 1 else f"{noun}s") if word)


def percent(share: float) -> str:
    """A share as a whole percentage.

    >>> percent(0.125), percent(1.0)
    ('12%', '100%')
    """
    return f"{share:.0%}"


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


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
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


CELL = "text-align:left;padding:2px 10px;vertical-align:top"
IMAGE = "image-rendering:pixelated;width:64px;height:64px;object-fit:contain;border:1px solid #8888;margin:2px"


def block(*parts: str) -> str:
    """Pieces of HTML, one below the other."""
    return f"<div style='overflow-x:auto'>{''.join(parts)}</div>"


def line(text: object, strong: bool = False) -> str:
    """
    >>> line("x < y", strong=True)
    "<p style='margin:4px 0'><b>x &lt; y</b></p>"
    """
    inner = f"<b>{escape(str(text))}</b>" if strong else escape(str(text))
    return f"<p style='margin:4px 0'>{inner}</p>"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table of text; numbers are formatted by the caller."""
    return (
        "<table style='margin:6px 0'><thead><tr>"
        + "".join(f"<th style='{CELL}'>{escape(str(cell))}</th>" for cell in head)
        + "</tr></thead><tbody>"
        + "".join(
            "<tr>" + "".join(f"<td style='{CELL}'>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
        )
        + "</tbody></table>"
    )


def folded(title: str, inner: str) -> str:
    """HTML that opens on a click."""
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def images(title: str, row: "np.ndarray") -> str:
    """Images (n, channels, height, width) in [0, 1] side by side, enlarged without smoothing."""
    from PIL import Image

    tags = []
    for image in row:
        pixels = (255 * image.clip(0, 1)).round().astype("uint8")
        content = io.BytesIO()
        Image.fromarray(pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]).save(content, format="png")
        address = base64.b64encode(content.getvalue()).decode("ascii")
        tags.append(f"<img style='{IMAGE}' alt='{escape(title, quote=True)}' src='data:image/png;base64,{address}'>")
    return line(title) + "".join(tags)
