"""Figures 4, 7 and 15 drawn: stripes, what is drawn after training on them, and what the units then respond to."""

import math
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter
from torch import Tensor

from composcope.figures.style import COLOURS, COLUMN, MARK, PAGE, STYLE, figure, show_image
from composcope.figures.tuning import draw_first_layers, draw_typical, draw_units
from composcope.figures.volumes import draw_evenness
from composcope.paper import stripes, tuning
from composcope.paper.panel import Panel
from composcope.paper.stripes import Drawing, Outputs, Samples, StripeSet
from composcope.paper.volumes import Evenness, evenness

GREY = "#666666"


def draw_samples(numbers: Samples) -> Figure:
    """A row a kind of training image."""
    columns = max(len(images) for images in numbers.images.values())
    drawn = figure(COLUMN, 0.75 * len(numbers.images))
    with matplotlib.rc_context(STYLE):
        grid = drawn.subplots(len(numbers.images), columns, squeeze=False)
        for row, (kind, images) in zip(grid, numbers.images.items(), strict=True):
            for axes in row[len(images) :]:
                axes.set_axis_off()
            for axes, image in zip(row, images, strict=False):
                show_image(axes, image)
            row[0].set_ylabel(f"{kind}\n({numbers.counts[kind]})", rotation=0, ha="right", va="center")
    return drawn


def draw_outputs(numbers: Outputs) -> Figure:
    """The truth above one row a kind of run; beside each row its numbers, one dot a seed."""
    names = list(numbers.drawings)
    drawn = figure(PAGE, 0.55 * (len(names) + 1) + 0.6)
    with matplotlib.rc_context(STYLE):
        columns = len(numbers.places)
        grid = drawn.add_gridspec(len(names) + 1, columns + 3, width_ratios=[*[1.0] * columns, 1.6, 1.6, 1.6])
        lines = [("truth", numbers.truth), *((name, numbers.drawings[name].images) for name in names)]
        for row, (name, images) in enumerate(lines):
            scale = grey_scale(images)
            for column, (image, (x, y)) in enumerate(zip(images, numbers.places.tolist(), strict=True)):
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
    """Accuracy, error and likeness, in as many columns, each a strip of axes beside the images."""
    last = len(numbers.drawings) - 1
    titles = ("within 1 pixel", "MSE / blank's", "correlation")
    ranges = ((-0.08, 1.08), _error_range(numbers), (min(-0.05, _least_likeness(numbers)), 1.05))
    for place, (title, limits) in enumerate(zip(titles, ranges, strict=True)):
        for row, drawing in enumerate(numbers.drawings.values()):
            axes = drawn.add_subplot(grid[row + 1, columns + place])
            _draw_dots(axes, drawing, numbers, place)
            axes.set(xlim=limits, ylim=(-1, 1), yticks=[])
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelbottom=row == last)
            if row == last:
                axes.set_xlabel(title)
    axes = drawn.add_subplot(grid[0, columns + 2])
    axes.set_axis_off()
    axes.text(0.5, 0.75, "● with the bump", color=COLOURS[0], fontsize=7, ha="center", transform=axes.transAxes)
    axes.text(0.5, 0.4, "◆ with the cross", color=COLOURS[1], fontsize=7, ha="center", transform=axes.transAxes)
    axes.text(0.5, 0.05, "¦ bump with cross", color=GREY, fontsize=7, ha="center", transform=axes.transAxes)


def _draw_dots(axes: Axes, drawing: Drawing, numbers: Outputs, place: int) -> None:
    apart = np.linspace(-0.4, 0.4, len(drawing.seeds)) if len(drawing.seeds) > 1 else np.zeros(1)
    look: dict[str, Any] = {"linestyle": "none", "markersize": 3.5, "clip_on": False}
    if place == 0:
        axes.plot(drawing.accuracy, apart, marker="o", color="black", **look)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xticks([0, 0.5, 1])
    elif place == 1:
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
    """Whole powers of ten about all errors and the blank image's."""
    shares = [1.0, *(error / numbers.blank for drawing in numbers.drawings.values() for error in drawing.mse)]
    return 10.0 ** math.floor(math.log10(min(shares))), 10.0 ** math.ceil(math.log10(max(shares) * 1.01))


def _least_likeness(numbers: Outputs) -> float:
    found = [value for drawing in numbers.drawings.values() for value in (*drawing.like_bump, *drawing.like_cross)]
    return min(found) - 0.05


def draw_stripe_set(numbers: StripeSet) -> Figure:
    """Every stripe above; below, held-out images as the share of bumps grows."""
    across = 14 if len(numbers.stripes) % 14 == 0 else 16
    rows = math.ceil(len(numbers.stripes) / across)
    outputs = numbers.outputs
    heights = 0.43 * rows + 0.25, 0.8 * (len(outputs.places) - 1) + 0.5
    drawn = figure(PAGE, sum(heights))
    with matplotlib.rc_context(STYLE):
        above, below = drawn.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
        for place, axes in enumerate(above.subplots(rows, across, squeeze=False).flat):
            axes.set_axis_off()
            if place < len(numbers.stripes):
                axes.set_axis_on()
                show_image(axes, numbers.stripes[place])
        above.suptitle(f"all {len(numbers.stripes)} stripes", fontsize=8)
        _draw_shares(below, outputs)
    return drawn


def _draw_shares(part: SubFigure, outputs: Outputs) -> None:
    """A column a share of bumps, a row a held-out place."""
    shown = list(range(len(outputs.places)))[:4]
    kinds = [("truth", outputs.truth)]
    for name, drawing in outputs.drawings.items():
        accuracy = sum(drawing.accuracy) / len(drawing.accuracy)
        error = sum(drawing.mse) / len(drawing.mse) / outputs.blank
        bumps = name.removeprefix("stripes + ")
        told = f"{drawing.share:.0%} of bumps ({bumps})\nin place {accuracy:.0%}\nMSE {error:.2g} of blank's"
        kinds.append((told, drawing.images))
    grid = part.subplots(len(shown), len(kinds), squeeze=False)
    for column, (told, images) in enumerate(kinds):
        for row, place in enumerate(shown):
            show_image(grid[row, column], images[place], *grey_scale(images))
            x, y = outputs.places[place].tolist()
            if column > 0:
                grid[row, column].plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
            else:
                grid[row, column].set_ylabel(f"({x:g}, {y:g})", rotation=0, ha="right", va="center", fontsize=7)
        grid[0, column].set_title(told, fontsize=7)


def draw_volume(numbers: Evenness) -> Figure:
    return draw_evenness(numbers, {name: name.replace(" + ", "\n+ ") for name in numbers.maps})


PANELS = (
    Panel(
        name="4a",
        title="What is trained on: stripes and a few bumps",
        see="A stripe shows one value of one factor and says nothing of the other; bumps come from outside the hole.",
        plan=stripes.with_most,
        numbers=stripes.samples,
        draw=draw_samples,
        no_claim="it shows the training set",
        diagnosed=False,
    ),
    Panel(
        name="4b",
        title="Held-out images as bumps join the stripes",
        see="From crosses to bumps, down the rows; the last row has as many bumps and no stripes. A cross in the right "
        "place counts as in place: the correlation tells it from a bump. The plus is where the bump belongs; each row "
        "has its own scale of grey.",
        plan=stripes.amounts,
        numbers=stripes.outputs,
        draw=draw_outputs,
        diagnosed=False,
    ),
    Panel(
        name="4d",
        title="Volume element after training with and without stripes",
        see="How even the colour is, above all across the line around held-out (x, y), down to the image. The number "
        "is the spread: the standard deviation of log10 volume over the grid without its border, mean over seeds.",
        plan=stripes.compared,
        numbers=evenness,
        draw=draw_volume,
    ),
    Panel(
        name="4e",
        title="First-layer channels after training with and without stripes",
        see="Whether a value of x alone gives upright bands and one of y level bands, as in the penalised embeddings "
        "of figure 3b; both together give their sum. The share along the own axis is over all values and channels.",
        plan=stripes.few_compared,
        numbers=tuning.first_layers,
        draw=draw_first_layers,
        diagnosed=False,
    ),
    Panel(
        name="4f",
        title="Tuning over (x, y), layer by layer",
        see="A typical unit of each layer, the median of the liveliest: bands, crosses or a bump. On the right the "
        "mean over all units; dashed, before training.",
        plan=stripes.with_few,
        numbers=tuning.typical,
        draw=draw_typical,
    ),
    Panel(
        name="7",
        title="The stripe set, and growing shares of bumps",
        see="Which share of the seen bumps it takes until held-out images are bumps instead of crosses.",
        plan=stripes.growing,
        numbers=stripes.stripe_set,
        draw=draw_stripe_set,
        diagnosed=False,
    ),
    Panel(
        name="15",
        title="Tuning of sample units, stripes alone and with bumps",
        see="Two units a layer, one from the stripe-like and one from the bump-like half of the liveliest; their mean "
        "activation along x and along y beside the map. Compare left and right, and first and last rows.",
        plan=stripes.ends,
        numbers=tuning.stripe_and_bump,
        draw=draw_units,
    ),
)
