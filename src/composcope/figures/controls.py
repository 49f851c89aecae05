"""The controls: another hole, no hole, and the reverse map."""

from typing import Any

import matplotlib
from matplotlib.figure import Figure

from composcope.figures.plane import add_scale, draw_dots, draw_share
from composcope.figures.style import COLOURS, MARK, PAGE, STYLE, figure
from composcope.paper.controls import Control, Controls

SEEN, ASKED = COLOURS[0], COLOURS[2]
TITLES = {"square": "hole in the middle", "corner": "hole in a corner", "image encoder": "images to codes"}
SHORT = {"square": "middle", "no hole": "no\nhole", "image encoder": "images\nto codes"}


def draw_controls(numbers: Controls) -> Figure:
    """Above, the error over the plane; below, the errors and the share in place, one dot a seed."""
    drawn = figure(PAGE, 3.8)
    with matplotlib.rc_context(STYLE):
        blocks: Any = drawn.subfigures(2, 1, height_ratios=[1, 1.1])
        above, below = blocks
        grid = above.subplots(1, len(numbers.controls))
        for axes, control in zip(grid, numbers.controls, strict=True):
            picture = draw_share(axes, control.share, control.region, control.withheld)
            axes.set_title(TITLES.get(control.name, control.name))
        for axes in grid[1:]:
            axes.set_ylabel("")
        add_scale(above, picture, grid)
        errors, places, volumes = below.subplots(1, 3)
        names = [SHORT.get(control.name, control.name) for control in numbers.controls]
        for axes in (errors, places, volumes):
            axes.set_xticks(range(len(names)), names)
            axes.set_xlim(-0.6, len(names) - 0.4)
        for at, control in enumerate(numbers.controls):
            _draw_control(errors, places, volumes, at, control)
        errors.axhline(1, color="black", linestyle=":", linewidth=0.8)
        errors.text(-0.55, 1.1, "blank", fontsize=6, va="bottom")
        errors.set(yscale="log", ylabel="MSE / blank MSE")
        places.set(ylabel="share in place", ylim=(-0.05, 1.05))
        volumes.axhline(0, color="black", linestyle=":", linewidth=0.8)
        volumes.set(ylabel="volume gap (log10)")
        handles = [
            matplotlib.lines.Line2D([], [], color=SEEN, linewidth=2, label="outside the outline (seen)"),
            matplotlib.lines.Line2D([], [], color=MARK, linewidth=2, label="inside, held out"),
            matplotlib.lines.Line2D([], [], color=ASKED, linewidth=2, label="inside, but seen"),
        ]
        below.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return drawn


def _draw_control(errors: Any, places: Any, volumes: Any, at: int, control: Control) -> None:
    """The dots of one control, outside left of inside."""
    inner = MARK if control.withheld else ASKED
    for side, shift, colour in ((1, -0.2, SEEN), (0, 0.2, inner)):
        draw_dots(errors, at + shift, [found.share[side] for found in control.regions], colour, 0.15)
        draw_dots(places, at + shift, [found.placed[side] for found in control.regions], colour, 0.15)
    gaps = [found.volume_gap for found in control.regions if found.volume_gap is not None]
    draw_dots(volumes, at, gaps, inner, 0.2)
