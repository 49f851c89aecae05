"""The figure of controls: another hole, no hole, and the reverse map."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from composcope.papers.forced_rendering.controls.numbers import Control, Controls
from composcope.papers.forced_rendering.drawing_plane import add_scale, draw_dots, draw_share
from composcope.study.drawing import COLOURS, MARK, PAGE, figure

OUTSIDE, SEEN_INSIDE = COLOURS[0], COLOURS[2]
TITLES = {"square": "hole in the middle", "corner": "hole in a corner", "image encoder": "images to codes"}
SHORT = {"square": "middle", "no hole": "no\nhole", "image encoder": "images\nto codes"}


def draw_controls(numbers: Controls) -> Figure:
    """Above, the error over the plane; below, errors, accuracy and volume, one dot per seed."""
    drawn = figure(PAGE, 3.8)
    blocks: Any = drawn.subfigures(2, 1, height_ratios=[1, 1.1])
    above, below = blocks
    grid = above.subplots(1, len(numbers.controls))
    for axes, control in zip(grid, numbers.controls, strict=True):
        picture = draw_share(axes, control.share, control.region, control.heldout)
        axes.set_title(TITLES.get(control.name, control.name))
    for axes in grid[1:]:
        axes.set_ylabel("")
    add_scale(above, picture, grid)
    _draw_seeds(below, numbers)
    return drawn


def _draw_seeds(block: Any, numbers: Controls) -> None:
    """Errors, accuracy and volume of every seed, inside the outline and outside it."""
    errors, accuracy, volumes = block.subplots(1, 3)
    names = [SHORT.get(control.name, control.name) for control in numbers.controls]
    for axes in (errors, accuracy, volumes):
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.6, len(names) - 0.4)
    for at, control in enumerate(numbers.controls):
        _draw_control(errors, accuracy, volumes, at, control)
    errors.axhline(1, color="black", linestyle=":", linewidth=0.8)
    errors.text(-0.55, 1.1, "blank", fontsize=6, va="bottom")
    errors.set(yscale="log", ylabel="MSE / blank MSE")
    accuracy.set(ylabel="share within 1 pixel", ylim=(-0.05, 1.05))
    volumes.axhline(0, color="black", linestyle=":", linewidth=0.8)
    volumes.set(ylabel="volume gap (log10)")
    colours = {"outside the outline (seen)": OUTSIDE, "inside, held out": MARK, "inside, but seen": SEEN_INSIDE}
    handles = [Line2D([], [], color=colour, linewidth=2, label=label) for label, colour in colours.items()]
    block.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=7)


def _draw_control(errors: Any, accuracy: Any, volumes: Any, at: int, control: Control) -> None:
    """The dots of one control, outside to the left of inside."""
    inner = MARK if control.heldout else SEEN_INSIDE
    for side, shift, colour in ((1, -0.2, OUTSIDE), (0, 0.2, inner)):
        draw_dots(errors, at + shift, [region.share[side] for region in control.regions], colour, 0.15)
        draw_dots(accuracy, at + shift, [region.accuracy[side] for region in control.regions], colour, 0.15)
    gaps = [region.volume_gap for region in control.regions if region.volume_gap is not None]
    draw_dots(volumes, at, gaps, inner, 0.2)
