"""The look that all figures share, and how they are saved: the same numbers give the same bytes."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

MARK = "#D55E00"  # vermilion of the Okabe-Ito palette: what is withheld
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "composcope",
}


def figure(width: float, height: float) -> Figure:
    """An empty figure in our style, in inches; no window and no global state."""
    with matplotlib.rc_context(STYLE):
        empty = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(empty)
        return empty


def save(drawn: Figure, stem: Path) -> list[Path]:
    """Write the figure as PDF and PNG and return their paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    with matplotlib.rc_context(STYLE):
        for path in paths:
            stamps: dict[str, Any] = (
                {"CreationDate": None, "ModDate": None} if path.suffix == ".pdf" else {"Software": None}
            )
            drawn.savefig(path, metadata=stamps)
    return paths


def show_image(axes: Axes, image: Tensor, low: float = 0.0, high: float = 1.0) -> None:
    """A one-channel image with the origin at the lower left, on a fixed scale of grey."""
    axes.imshow(image[0].numpy(), origin="lower", cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")


def outline(axes: Axes, heldout: Tensor) -> None:
    """Draw a line around the held-out cells of an (x, y) map."""
    inside = np.pad(heldout.numpy().astype(bool), 1)
    for x, y in np.argwhere(inside):
        for along_x, along_y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if not inside[x + along_x, y + along_y]:
                centre = np.array([x - 1 + along_x / 2, y - 1 + along_y / 2])
                half = np.array([along_y, along_x]) / 2
                (start, end) = centre - half, centre + half
                axes.plot([start[0], end[0]], [start[1], end[1]], color=MARK, linewidth=1.2)
