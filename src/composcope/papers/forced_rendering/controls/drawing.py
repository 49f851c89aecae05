"""The figure of controls: another hole, no hole, and the reverse map."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from composcope.papers.forced_rendering.drawing import add_scale, draw_dots, draw_share
from composcope.study.drawing import COLOURS, MARK, PAGE, figure
from composcope.study.numbers import Numbers

OUTSIDE, SEEN_INSIDE = COLOURS[0], COLOURS[2]
TITLES = {"square": "hole in the middle", "corner": "hole in a corner", "image encoder": "images to codes"}
SHORT = {"square": "middle", "no hole": "no\nhole", "image encoder": "images\nto codes"}


def draw_controls(numbers: Numbers) -> Figure:
    """Above, the error over the plane; below, errors, accuracy and volume, one dot per seed."""
    page = figure(PAGE, 3.8)
    blocks: Any = page.subfigures(2, 1, height_ratios=[1, 1.1])
    above, below = blocks
    grid = above.subplots(1, len(numbers.first))
    for axes, (kind, maps) in zip(grid, numbers.first.items(), strict=True):
        picture = draw_share(axes, maps["share"], maps["region"], maps["held out"])
        axes.set_title(TITLES.get(kind, kind))
    for axes in grid[1:]:
        axes.set_ylabel("")
    add_scale(above, picture, grid)
    _draw_seeds(below, numbers)
    return page


def _draw_seeds(block: Any, numbers: Numbers) -> None:
    """Errors, accuracy and volume of every seed, inside the outline and outside it."""
    errors, accuracy, volumes = block.subplots(1, 3)
    names = [SHORT.get(kind, kind) for kind in numbers.kinds]
    for axes in (errors, accuracy, volumes):
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.6, len(names) - 0.4)
    for place, kind in enumerate(numbers.kinds):
        # Outside to the left of inside.
        inner = MARK if numbers.first[kind]["held out"] else SEEN_INSIDE
        for side, shift, colour in (("outside", -0.2, OUTSIDE), ("in the region", 0.2, inner)):
            draw_dots(errors, place + shift, numbers.column(f"MSE / blank, {side}", kind), colour, 0.15)
            draw_dots(accuracy, place + shift, numbers.column(f"within 1 pixel, {side}", kind), colour, 0.15)
        gaps = [gap for gap in numbers.column("log10 volume, region minus rest", kind) if gap is not None]
        draw_dots(volumes, place, gaps, inner, 0.2)
    errors.axhline(1, color="black", linestyle=":", linewidth=0.8)
    errors.text(-0.55, 1.1, "blank", fontsize=6, va="bottom")
    errors.set(yscale="log", ylabel="MSE / blank MSE")
    accuracy.set(ylabel="share within 1 pixel", ylim=(-0.05, 1.05))
    volumes.axhline(0, color="black", linestyle=":", linewidth=0.8)
    volumes.set(ylabel="volume gap (log10)")
    colours = {"outside the outline (seen)": OUTSIDE, "inside, held out": MARK, "inside, but seen": SEEN_INSIDE}
    handles = [Line2D([], [], color=colour, linewidth=2, label=label) for label, colour in colours.items()]
    block.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=7)
