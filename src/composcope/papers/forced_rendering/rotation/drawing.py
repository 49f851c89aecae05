"""Figure 9: error by angle, pace and principal components of each layer, and the images drawn in the gap."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from composcope.figures.style import COLOURS, MARK, PAGE, STYLE, figure, show_image
from composcope.paper.ledger import interval
from composcope.paper.panel import Panel
from composcope.paper.rotation import InGap, Rotation, gap, rotation


def draw(numbers: Rotation) -> Figure:
    """Three rows: curves over the angle, layers as seen from two directions, images in the gap."""
    drawn = figure(PAGE, 6.3)
    with matplotlib.rc_context(STYLE):
        top, middle, bottom = drawn.subfigures(3, 1, squeeze=False, height_ratios=[1.9, 1.65, 2.75])[:, 0]
        left, right = top.subplots(1, 2)
        _errors(left, numbers)
        _paces(right, numbers)
        _manifolds(middle, numbers)
        _images(bottom, numbers)
    return drawn


def _errors(axes: Axes, numbers: Rotation) -> None:
    """MSE by angle: the mean over seeds, its interval, and what a blank image and the blend score."""
    angles = numbers.angles.numpy()
    _shade(axes, numbers)
    _band(axes, angles, numbers.errors, COLOURS[0], "decoder")
    axes.plot(angles, numbers.blank, color="#888888", linewidth=1, linestyle=(0, (4, 2)), label="blank image")
    inside = numbers.gaps[0].angles
    axes.plot(inside, numbers.between, color=COLOURS[1], linewidth=1.2, label="blend of the edges")
    axes.set(yscale="log", xlabel="angle, degrees", ylabel="MSE to the truth")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.25)
    axes.legend(frameon=False, fontsize=7, loc="upper left", ncols=3, columnspacing=1, handlelength=1.5)


def _paces(axes: Axes, numbers: Rotation) -> None:
    """How fast each layer turns with the angle; grey: the last hidden layer before training."""
    angles = numbers.angles.numpy()
    _shade(axes, numbers)
    if len(numbers.untrained):
        axes.plot(
            angles, numbers.untrained.mean(0), color="#888888", linewidth=1, linestyle=(0, (4, 2)), label="untrained"
        )
    for shade, (name, paces) in zip(_shades(len(numbers.paces)), numbers.paces.items(), strict=True):
        _band(axes, angles, paces, shade, name)
    axes.set(xlabel="angle, degrees", ylabel="pace (seen median = 1)", ylim=(0, None))
    axes.legend(frameon=False, fontsize=7, loc="lower left", ncols=3, columnspacing=1, handlelength=1.5)


def _shade(axes: Axes, numbers: Rotation) -> None:
    """The withheld angles, in the colour of what is withheld."""
    inside = numbers.gaps[0].angles
    axes.axvspan(float(inside[0]), float(inside[-1]), color=MARK, alpha=0.15, linewidth=0)
    axes.set(xlim=(0, 360), xticks=range(0, 361, 60))


def _band(axes: Axes, angles: Any, values: Tensor, colour: Any, label: str) -> None:
    """The mean over seeds as a line, and its interval as a band."""
    found = np.array([interval(column) for column in values.double().T.tolist()], dtype=float)
    axes.plot(angles, found[:, 0], color=colour, linewidth=1.2, label=label)
    axes.fill_between(angles, found[:, 1], found[:, 2], color=colour, alpha=0.25, linewidth=0)


def _shades(count: int) -> Any:
    return colormaps["viridis"](np.linspace(0.9, 0.0, count))


def _manifolds(block: Any, numbers: Rotation) -> None:
    """Each layer's first two principal components, coloured by angle, the withheld angles ringed."""
    names = list(numbers.manifolds)
    block.suptitle("principal components of each layer, with their share of its variance", fontsize=8)
    panels = block.subplots(1, len(names), squeeze=False)[0]
    held = numbers.heldout.numpy()
    marks = None
    for axes, name in zip(panels, names, strict=True):
        x, y = numbers.manifolds[name][:, 0].numpy(), numbers.manifolds[name][:, 1].numpy()
        axes.scatter(x[held], y[held], s=28, color=MARK, linewidths=0)
        marks = axes.scatter(x, y, c=numbers.angles, cmap="twilight", vmin=0, vmax=360, s=6, linewidths=0)
        share = numbers.explained[name][:2].sum().item() if name in numbers.explained else float("nan")
        half = 1.12 * max(np.ptp(x), np.ptp(y), 1e-9) / 2
        middles = (x.min() + x.max()) / 2, (y.min() + y.max()) / 2
        (left, right), (low, high) = ((centre - half, centre + half) for centre in middles)
        axes.set(xticks=[], yticks=[], title=f"{name} ({share:.0%})", aspect="equal")
        axes.set(xlim=(left, right), ylim=(low, high))
        for spine in axes.spines.values():
            spine.set(visible=True, linewidth=0.5, color="#888888")
    panels[0].set(xlabel="1st component", ylabel="2nd component")
    if marks is not None:
        block.colorbar(marks, ax=panels, label="angle", ticks=[0, 180, 360], aspect=12)


def _images(block: Any, numbers: Rotation) -> None:
    """Truth, decoder and blend at angles of the gap, with the distances of the decoder's image from both."""
    shown, places = numbers.gaps[0], numbers.shown.tolist()
    rows = {"truth": shown.truth, "decoder": shown.outputs, "blend": shown.blend}
    panels = block.subplots(3, len(places), squeeze=False)
    for line, (name, images) in zip(panels, rows.items(), strict=True):
        line[0].set_ylabel(name)
        for axes, place in zip(line, places, strict=True):
            show_image(axes, images[place])
    for axes, place in zip(panels[0], places, strict=True):
        axes.set_title(f"{float(shown.angles[place]):.1f}°")
    _captions(panels, shown, places)


def _captions(panels: Any, shown: InGap, places: list[int]) -> None:
    """Under the decoder's images their MSE to the truth, under the blends that to the blend."""
    near = shown.found
    for row, values in ((1, near.mse_to_truth), (2, near.mse_to_blend)):
        for axes, place in zip(panels[row], places, strict=True):
            axes.set_xlabel(f"{values[place].item():.4f}", fontsize=7, labelpad=2)
        panels[row][0].annotate(
            ("MSE to truth" if row == 1 else "MSE to blend"),
            (0, 0),
            (-4, -3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
        )


PANELS = (
    Panel(
        name="9",
        title="A gap in the angles of a turned digit",
        see=(
            "Below, the decoder's images in the gap between the truth above them and the blend of the gap's edges under"
            " them; above, the error by angle and how fast each layer turns, the gap shaded."
        ),
        plan=gap,
        numbers=rotation,
        draw=draw,
    ),
)
