"""HTML for notebooks: tables and small images. Every text is escaped, so that no name can become markup."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

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
