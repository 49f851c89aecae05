"""The look that all figures share, and how they are saved: the same numbers give the same bytes."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes as Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure, SubFigure
from torch import Tensor

MARK = "#D55E00"  # vermilion of the Okabe-Ito palette: what is held out
# The rest of the palette, in the order in which lines take it; a code keeps its colour in every figure.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
COLUMN, PAGE = 3.25, 6.75  # inches: one column of a paper, and both
DPI = 200
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "composcope",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw and save in our style; entered once, around everything that draws."""
    with matplotlib.rc_context(STYLE):
        yield


def figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches; no window and no global state."""
    empty = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(empty)
    return empty


def as_bytes(page: Figure, kind: Literal["png", "pdf"]) -> bytes:
    """The figure as the contents of a file. The layout, which takes most of the time, is computed once."""
    content = io.BytesIO()
    layout = page.get_layout_engine()
    if layout is not None:
        layout.execute(page)
        page.set_layout_engine("none")
        _settle(page)
    page.set_dpi(DPI)
    # `savefig` would draw everything twice. Dates and versions would make the bytes differ from run to run.
    if kind == "pdf":
        FigureCanvasPdf(page).print_pdf(content, metadata={"CreationDate": None, "ModDate": None})
    else:
        FigureCanvasAgg(page).print_png(content, metadata={"Software": None})
    return content.getvalue()


def _settle(part: Figure | SubFigure) -> None:
    """Round the positions: the last digits of the layout's solver differ from run to run."""
    for inner in part.subfigs:
        inner.bbox_relative.set_points(inner.bbox_relative.get_points().round(6))
        _settle(inner)
    for axes in part.axes:
        left, bottom, width, height = (round(side, 6) for side in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def stamp(page: Figure, text: str) -> None:
    """Add small text under the figure that says what it was made from; the figure grows by its lines."""
    width, height = page.get_size_inches()
    lines = textwrap.wrap(text, int(width / 0.046))  # inches of a character of this size, on average
    line = 0.2 + 0.1 * (len(lines) - 1)
    page.set_size_inches(width, height + line)
    layout, kept = page.get_layout_engine(), height / (height + line)
    if layout is not None:
        layout.set(rect=(0, 1 - kept, 1, kept))  # type: ignore[call-arg]
    else:
        for axes in page.axes:
            left, bottom, across, up = axes.get_position(original=True).bounds
            axes.set_position((left, 1 - kept + bottom * kept, across, up * kept))
    page.text(0.99, 0.03 / (height + line), "\n".join(lines), ha="right", va="bottom", fontsize=6, color="#666666")


def show_image(axes: Axes, image: Tensor, low: float = 0.0, high: float = 1.0) -> None:
    """A one-channel image with the origin at the lower left, on a fixed scale of grey."""
    axes.imshow(image[0].numpy(), origin="lower", cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    frame(axes)


def frame(axes: Axes) -> None:
    """A thin frame without ticks."""
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")


def outline(axes: Axes, region: Tensor, seen: bool = False) -> LineCollection:
    """Draw a line around the true cells of an (x, y) map: held out or, if `seen`, white and dotted."""
    cells = np.pad(region.numpy().astype(np.int8), 1)
    upright = [((i - 0.5, start), (i - 0.5, end)) for i, start, end in _edges(np.diff(cells, axis=0)[:, 1:-1])]
    level = [((start, j - 0.5), (end, j - 0.5)) for j, start, end in _edges(np.diff(cells, axis=1)[1:-1].T)]
    colour, dashes = ("white", ":") if seen else (MARK, "-")
    lines = LineCollection(
        upright + level, colors=colour, linestyles=dashes, linewidths=1.2, capstyle="projecting", clip_on=False
    )
    axes.add_collection(lines, autolim=False)
    return lines


def _edges(changes: np.ndarray) -> list[tuple[int, float, float]]:
    """Line number, start and end of every unbroken stretch of cell edges; whole stretches, so that dots are even."""
    stretches = []
    for number, row in enumerate(changes):
        turns = np.flatnonzero(np.diff(np.pad((row != 0).astype(np.int8), 1))) - 0.5
        stretches += [(number, float(start), float(end)) for start, end in zip(turns[::2], turns[1::2], strict=True)]
    return stretches
