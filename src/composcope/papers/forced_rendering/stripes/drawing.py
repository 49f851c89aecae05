"""Figures 4a, 4b, 4d and 7 drawn: stripes, and what is drawn after training on them."""

import math
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter
from torch import Tensor

from composcope.papers.forced_rendering.drawing import draw_evenness
from composcope.study.drawing import COLOURS, COLUMN, MARK, PAGE, figure, show_image
from composcope.study.numbers import Numbers, Rows

GREY = "#666666"
MEASURES = ("within 1 pixel", "MSE / blank's", "correlation")


def draw_samples(numbers: Numbers) -> Figure:
    """One row per kind of training image."""
    kinds: dict[str, Rows] = {}
    for sample in numbers.rows:
        kinds.setdefault(sample["kind"], []).append(sample)
    page = figure(COLUMN, 0.75 * len(kinds))
    grid = page.subplots(len(kinds), max(map(len, kinds.values())), squeeze=False)
    for line, (kind, samples) in zip(grid, kinds.items(), strict=True):
        for axes in line[len(samples) :]:
            axes.set_axis_off()
        for axes, sample in zip(line, samples, strict=False):
            show_image(axes, sample["image"])
        count = samples[0]["in the training set"]
        line[0].set_ylabel(f"{kind}\n({count})", rotation=0, ha="right", va="center")
    return page


def draw_outputs(numbers: Numbers) -> Figure:
    """The truth above one row per kind of run; beside each row its numbers, one dot per seed."""
    page = figure(PAGE, 0.55 * (len(numbers.kinds) + 1) + 0.6)
    points = numbers.common["points"].tolist()
    columns = len(points)
    grid = page.add_gridspec(len(numbers.kinds) + 1, columns + 3, width_ratios=[*[1.0] * columns, 1.6, 1.6, 1.6])
    lines = [("truth", numbers.common["truth"]), *((kind, each["images"]) for kind, each in numbers.first.items())]
    for row, (name, images) in enumerate(lines):
        scale = grey_scale(images)
        for column, (image, (x, y)) in enumerate(zip(images, points, strict=True)):
            axes = page.add_subplot(grid[row, column])
            show_image(axes, image, *scale)
            if row == 0:
                axes.set_title(f"({x:g}, {y:g})", fontsize=7, pad=2)
            else:
                axes.plot(x, y, "+", color=MARK, markersize=3.5, markeredgewidth=0.6)
            if column == 0:
                axes.set_ylabel(name, rotation=0, ha="right", va="center")
    _draw_numbers(page, grid, numbers, columns)
    return page


def grey_scale(images: Tensor) -> tuple[float, float]:
    """From 0 to 1, or as far as the images go beyond: an output that overshoots the background keeps its contrast."""
    return min(0.0, float(images.min())), max(1.0, float(images.max()))


def _draw_numbers(page: Figure, grid: GridSpec, numbers: Numbers, columns: int) -> None:
    """Accuracy, error and correlation beside the images, each in a column of its own."""
    last = len(numbers.kinds) - 1
    ranges = ((-0.08, 1.08), _error_range(numbers), (min(-0.05, _smallest_correlation(numbers)), 1.05))
    for offset, (measure, limits) in enumerate(zip(MEASURES, ranges, strict=True)):
        for row, kind in enumerate(numbers.kinds):
            axes = page.add_subplot(grid[row + 1, columns + offset])
            _draw_dots(axes, numbers, kind, measure)
            axes.set(xlim=limits, ylim=(-1, 1), yticks=[])
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelbottom=row == last)
            if row == last:
                axes.set_xlabel(measure)
    legend = page.add_subplot(grid[0, columns + 2])
    legend.set_axis_off()
    legend.text(0.5, 0.75, "● with the bump", color=COLOURS[0], fontsize=7, ha="center", transform=legend.transAxes)
    legend.text(0.5, 0.4, "◆ with the cross", color=COLOURS[1], fontsize=7, ha="center", transform=legend.transAxes)
    legend.text(0.5, 0.05, "¦ bump with cross", color=GREY, fontsize=7, ha="center", transform=legend.transAxes)


def _draw_dots(axes: Axes, numbers: Numbers, kind: str, measure: str) -> None:
    """One dot per seed, spread vertically so that equal values can be told apart."""
    count = len(numbers.of(kind))
    apart = np.linspace(-0.4, 0.4, count) if count > 1 else np.zeros(1)
    look: dict[str, Any] = {"linestyle": "none", "markersize": 3.5, "clip_on": False}
    if measure == "within 1 pixel":
        axes.plot(numbers.column("held-out accuracy", kind), apart, marker="o", color="black", **look)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xticks([0, 0.5, 1])
    elif measure == "MSE / blank's":
        axes.set_xscale("log")
        axes.plot(_errors(numbers, kind), apart, marker="o", color="black", **look)
        axes.axvline(1, color=GREY, linestyle=":", linewidth=1)
        axes.xaxis.set_major_locator(LogLocator(numticks=4))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.plot(numbers.column("correlation with the bump", kind), apart, marker="o", color=COLOURS[0], **look)
        axes.plot(numbers.column("correlation with the cross", kind), apart, marker="D", color=COLOURS[1], **look)
        axes.axvline(numbers.common["bump like cross"], color=GREY, linestyle=":", linewidth=1)


def _errors(numbers: Numbers, kind: str | None = None) -> np.ndarray:
    """Held-out MSE over that of a blank image."""
    errors, blanks = numbers.column("held-out MSE", kind), numbers.column("blank MSE", kind)
    return np.array(errors) / np.array(blanks)


def _error_range(numbers: Numbers) -> tuple[float, float]:
    """Whole powers of ten around all errors and the blank image's."""
    shares = [1.0, *_errors(numbers).tolist()]
    return 10.0 ** math.floor(math.log10(min(shares))), 10.0 ** math.ceil(math.log10(max(shares) * 1.01))


def _smallest_correlation(numbers: Numbers) -> float:
    columns = ("correlation with the bump", "correlation with the cross")
    return min(value for column in columns for value in numbers.column(column)) - 0.05


def draw_stripe_set(numbers: Numbers) -> Figure:
    """Every stripe above; below, held-out images as the share of bumps increases."""
    stripes = numbers.common["stripes"]
    across = 14 if len(stripes) % 14 == 0 else 16
    rows = math.ceil(len(stripes) / across)
    heights = 0.43 * rows + 0.25, 0.8 * (len(numbers.common["points"]) - 1) + 0.5
    page = figure(PAGE, sum(heights))
    above, below = page.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
    for index, axes in enumerate(above.subplots(rows, across, squeeze=False).flat):
        if index < len(stripes):
            show_image(axes, stripes[index])
        else:
            axes.set_axis_off()
    above.suptitle(f"all {len(stripes)} stripes", fontsize=8)
    _draw_shares(below, numbers)
    return page


def _draw_shares(part: SubFigure, numbers: Numbers) -> None:
    """One column per share of bumps, one row per held-out point."""
    columns = [("truth", numbers.common["truth"])]
    for kind in numbers.kinds:
        first = numbers.of(kind)[0]
        accuracy = fmean(numbers.column("held-out accuracy", kind))
        error = fmean(numbers.column("held-out MSE", kind)) / first["blank MSE"]
        bumps = f"{first['share of seen bumps']:.0%} of bumps ({first['bumps']})"
        text = f"{bumps}\n{accuracy:.0%} within 1 pixel\nMSE / blank's {error:.2g}"
        columns.append((text, numbers.first[kind]["images"]))
    points = numbers.common["points"][:4].tolist()
    grid = part.subplots(len(points), len(columns), squeeze=False)
    for column, (title, images) in enumerate(columns):
        for row, (x, y) in enumerate(points):
            show_image(grid[row, column], images[row], *grey_scale(images))
            if column > 0:
                grid[row, column].plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
            else:
                grid[row, column].set_ylabel(f"({x:g}, {y:g})", rotation=0, ha="right", va="center", fontsize=7)
        grid[0, column].set_title(title, fontsize=7)


def draw_volume(numbers: Numbers) -> Figure:
    """Volume maps with stripes above those without, by differences and exactly."""
    return draw_evenness(numbers, lambda kind: kind.replace(", ", "\n"))
