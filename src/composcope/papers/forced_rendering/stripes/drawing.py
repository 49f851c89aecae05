"""Figures 4a, 4b, 4d and 7 drawn: stripes, and what is drawn after training on them."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter
from torch import Tensor

from composcope.papers.forced_rendering.drawing_volumes import draw_evenness
from composcope.papers.forced_rendering.stripes.numbers import Drawing, Outputs, Samples, StripeSet
from composcope.papers.forced_rendering.volumes import Evenness
from composcope.study.drawing import COLOURS, COLUMN, MARK, PAGE, figure, show_image
from composcope.study.plan import label_of

GREY = "#666666"
MEASURES = ("within 1 pixel", "MSE / blank's", "correlation")


def draw_samples(numbers: Samples) -> Figure:
    """One row per kind of training image."""
    columns = max(len(images) for images in numbers.images.values())
    drawn = figure(COLUMN, 0.75 * len(numbers.images))
    grid = drawn.subplots(len(numbers.images), columns, squeeze=False)
    for row, (kind, images) in zip(grid, numbers.images.items(), strict=True):
        for axes in row[len(images) :]:
            axes.set_axis_off()
        for axes, image in zip(row, images, strict=False):
            show_image(axes, image)
        row[0].set_ylabel(f"{kind}\n({numbers.counts[kind]})", rotation=0, ha="right", va="center")
    return drawn


def draw_outputs(numbers: Outputs) -> Figure:
    """The truth above one row per kind of run; beside each row its numbers, one dot per seed."""
    drawn = figure(PAGE, 0.55 * (len(numbers.drawings) + 1) + 0.6)
    columns = len(numbers.points)
    grid = drawn.add_gridspec(len(numbers.drawings) + 1, columns + 3, width_ratios=[*[1.0] * columns, 1.6, 1.6, 1.6])
    lines = [("truth", numbers.truth), *((label_of(key), line.images) for key, line in numbers.drawings.items())]
    for row, (name, images) in enumerate(lines):
        scale = grey_scale(images)
        for column, (image, (x, y)) in enumerate(zip(images, numbers.points.tolist(), strict=True)):
            axes = drawn.add_subplot(grid[row, column])
            show_image(axes, image, *scale)
            if row == 0:
                axes.set_title(f"({x:g}, {y:g})", fontsize=7, pad=2)
            else:
                axes.plot(x, y, "+", color=MARK, markersize=3.5, markeredgewidth=0.6)
            if column == 0:
                axes.set_ylabel(name, rotation=0, ha="right", va="center")
    _draw_numbers(drawn, grid, numbers, columns)
    return drawn


def grey_scale(images: Tensor) -> tuple[float, float]:
    """From 0 to 1, or as far as the images go beyond: an output that overshoots the background keeps its contrast."""
    return min(0.0, float(images.min())), max(1.0, float(images.max()))


def _draw_numbers(drawn: Figure, grid: GridSpec, numbers: Outputs, columns: int) -> None:
    """Accuracy, error and correlation beside the images, each in a column of its own."""
    last = len(numbers.drawings) - 1
    ranges = ((-0.08, 1.08), _error_range(numbers), (min(-0.05, _smallest_correlation(numbers)), 1.05))
    for offset, (measure, limits) in enumerate(zip(MEASURES, ranges, strict=True)):
        for row, drawing in enumerate(numbers.drawings.values()):
            axes = drawn.add_subplot(grid[row + 1, columns + offset])
            _draw_dots(axes, drawing, numbers, measure)
            axes.set(xlim=limits, ylim=(-1, 1), yticks=[])
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelbottom=row == last)
            if row == last:
                axes.set_xlabel(measure)
    legend = drawn.add_subplot(grid[0, columns + 2])
    legend.set_axis_off()
    legend.text(0.5, 0.75, "● with the bump", color=COLOURS[0], fontsize=7, ha="center", transform=legend.transAxes)
    legend.text(0.5, 0.4, "◆ with the cross", color=COLOURS[1], fontsize=7, ha="center", transform=legend.transAxes)
    legend.text(0.5, 0.05, "¦ bump with cross", color=GREY, fontsize=7, ha="center", transform=legend.transAxes)


def _draw_dots(axes: Axes, drawing: Drawing, numbers: Outputs, measure: str) -> None:
    """One dot per seed, spread vertically so that equal values can be told apart."""
    apart = np.linspace(-0.4, 0.4, len(drawing.seeds)) if len(drawing.seeds) > 1 else np.zeros(1)
    look: dict[str, Any] = {"linestyle": "none", "markersize": 3.5, "clip_on": False}
    if measure == "within 1 pixel":
        axes.plot(drawing.accuracy, apart, marker="o", color="black", **look)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xticks([0, 0.5, 1])
    elif measure == "MSE / blank's":
        axes.set_xscale("log")
        axes.plot(np.array(drawing.mse) / numbers.blank, apart, marker="o", color="black", **look)
        axes.axvline(1, color=GREY, linestyle=":", linewidth=1)
        axes.xaxis.set_major_locator(LogLocator(numticks=4))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.plot(drawing.like_bump, apart, marker="o", color=COLOURS[0], **look)
        axes.plot(drawing.like_cross, apart, marker="D", color=COLOURS[1], **look)
        axes.axvline(numbers.bump_like_cross, color=GREY, linestyle=":", linewidth=1)


def _error_range(numbers: Outputs) -> tuple[float, float]:
    """Whole powers of ten around all errors and the blank image's."""
    shares = [1.0, *(error / numbers.blank for drawing in numbers.drawings.values() for error in drawing.mse)]
    return 10.0 ** math.floor(math.log10(min(shares))), 10.0 ** math.ceil(math.log10(max(shares) * 1.01))


def _smallest_correlation(numbers: Outputs) -> float:
    drawings = numbers.drawings.values()
    return min(value for drawing in drawings for value in (*drawing.like_bump, *drawing.like_cross)) - 0.05


def draw_stripe_set(numbers: StripeSet) -> Figure:
    """Every stripe above; below, held-out images as the share of bumps increases."""
    across = 14 if len(numbers.stripes) % 14 == 0 else 16
    rows = math.ceil(len(numbers.stripes) / across)
    outputs = numbers.outputs
    heights = 0.43 * rows + 0.25, 0.8 * (len(outputs.points) - 1) + 0.5
    drawn = figure(PAGE, sum(heights))
    above, below = drawn.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
    for index, axes in enumerate(above.subplots(rows, across, squeeze=False).flat):
        if index < len(numbers.stripes):
            show_image(axes, numbers.stripes[index])
        else:
            axes.set_axis_off()
    above.suptitle(f"all {len(numbers.stripes)} stripes", fontsize=8)
    _draw_shares(below, outputs)
    return drawn


def _draw_shares(part: SubFigure, outputs: Outputs) -> None:
    """One column per share of bumps, one row per held-out point."""
    columns = [("truth", outputs.truth)]
    for drawing in outputs.drawings.values():
        accuracy = sum(drawing.accuracy) / len(drawing.accuracy)
        error = sum(drawing.mse) / len(drawing.mse) / outputs.blank
        bumps = f"{drawing.share:.0%} of bumps ({drawing.bumps})"
        columns.append((f"{bumps}\n{accuracy:.0%} within 1 pixel\nMSE / blank's {error:.2g}", drawing.images))
    points = outputs.points[:4].tolist()
    grid = part.subplots(len(points), len(columns), squeeze=False)
    for column, (title, images) in enumerate(columns):
        for row, (x, y) in enumerate(points):
            show_image(grid[row, column], images[row], *grey_scale(images))
            if column > 0:
                grid[row, column].plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
            else:
                grid[row, column].set_ylabel(f"({x:g}, {y:g})", rotation=0, ha="right", va="center", fontsize=7)
        grid[0, column].set_title(title, fontsize=7)


def draw_volume(numbers: Evenness) -> Figure:
    """Volume maps with stripes above those without, by differences and exactly."""
    return draw_evenness(numbers, {key: label_of(key).replace(", ", "\n") for key in numbers.maps})
