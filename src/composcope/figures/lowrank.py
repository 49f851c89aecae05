"""Figures 3 and 6 drawn: low-rank embeddings, their volume and the ablation of their penalties."""

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from composcope.figures.style import COLOURS, COLUMN, PAGE, STYLE, figure, show_image
from composcope.figures.volumes import draw_evenness
from composcope.paper import lowrank
from composcope.paper.lowrank import Ablation, Embeddings, Scheme, Terms
from composcope.paper.panel import Panel
from composcope.paper.volumes import Evenness, evenness

TITLES = {"none": "no penalty", "entropy": "entropy", "variance": "variance", "both": "both penalties"}
COLOUR = dict(zip(TITLES, COLOURS, strict=False))
MARKER = dict(zip(TITLES, "os^D", strict=True))
BLANK = "#666666"
ARROW = "→"
KEY = "red: positive, blue: negative; every matrix on its own scale"


def show_matrix(axes: Axes, matrix: Tensor) -> None:
    """A signed matrix on its own scale with the origin at the lower left, white at 0."""
    limit = max(float(matrix.abs().max()), 1e-9)
    axes.imshow(matrix.numpy(), origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")


def draw_scheme(numbers: Scheme) -> Figure:
    """From left to right: the codes, a value's matrix as a sum of products, the conv layers, the image."""
    layers = list(numbers.hidden)
    ratios = [0.22, 0.35, 0.22, 0.8, 1.0, 1.15, 1.0, 0.35, *[1.0] * len(layers), 0.35, 1.5, 1.5]
    drawn = figure(PAGE, 1.65)
    with matplotlib.rc_context(STYLE):
        grid = drawn.add_gridspec(2, len(ratios), width_ratios=ratios)
        for row, (factor, value) in enumerate(zip(numbers.terms, numbers.place, strict=True)):
            cells = [drawn.add_subplot(grid[row, column]) for column in range(8 + len(layers))]
            _draw_terms(cells, numbers.terms[factor], row == 0)
            hot = torch.zeros(numbers.size, 1)
            hot[value] = 1
            show_matrix(cells[0], hot)
            cells[0].set_aspect("auto")
            cells[0].set_ylabel(f"{factor} = {value}")
            for axes, name in zip(cells[8:], layers, strict=True):
                _draw_channel(axes, numbers.hidden[name], row, name)
        _say(drawn.add_subplot(grid[:, 8 + len(layers)]), ARROW)
        for place, (title, image) in enumerate((("image", numbers.image), ("truth", numbers.truth))):
            axes = drawn.add_subplot(grid[:, 9 + len(layers) + place])
            show_image(axes, image)
            axes.set_title(title)
    return drawn


def _draw_terms(cells: list[Axes], terms: Terms, named: bool) -> None:
    """v lambda u^T + the other terms = W."""
    for cell, matrix in ((2, terms.v[0][:, None]), (4, terms.u[0][None]), (6, terms.matrix)):
        show_matrix(cells[cell], matrix)
    cells[2].set_aspect("auto")
    cells[4].set_aspect(len(terms.u[0]) / 5)
    _say(cells[1], ARROW)
    _say(cells[3], f"$\\times$ {terms.weight[0]:.2f} $\\times$")
    _say(cells[5], f"+ {len(terms.weight) - 1} more\n({terms.shares[1:].sum():.1%})\n=")
    _say(cells[7], ARROW)
    if named:
        for cell, title in ((0, "code"), (2, "$v$"), (3, "$\\lambda$"), (4, "$u^T$"), (6, "$W$")):
            cells[cell].set_title(title)


def _draw_channel(axes: Axes, maps: Tensor, row: int, name: str) -> None:
    """One channel of a layer, if it has so many."""
    if row < len(maps):
        show_matrix(axes, maps[row])
    else:
        axes.set_axis_off()
    if row == 0:
        axes.set_title(name)


def _say(axes: Axes, text: str) -> None:
    axes.set_axis_off()
    size = 12 if text == ARROW else 7
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=size, transform=axes.transAxes)


def draw_pair(numbers: Embeddings) -> Figure:
    """x above y, without penalties on the left."""
    drawn = figure(COLUMN, 3.4)
    with matplotlib.rc_context(STYLE):
        grid = drawn.subplots(2, len(numbers.shown), squeeze=False)
        for column, (name, stacks) in enumerate(numbers.shown.items()):
            for axes, stack in zip(grid[:, column], stacks.values(), strict=True):
                show_matrix(axes, stack[0])
                axes.set_xlabel("column (along x)", fontsize=7)
            grid[0, column].set_title(f"{TITLES[name]}\n{_told(numbers, name)}", fontsize=7)
        for axes, factor in zip(grid[:, 0], next(iter(numbers.shown.values())), strict=True):
            axes.set_ylabel(f"embedding of {factor} = {numbers.values[0]}\nrow (along y)", fontsize=7)
        drawn.suptitle(KEY, fontsize=6.5, color=BLANK)
    return drawn


def _told(numbers: Embeddings, name: str) -> str:
    """Means over all values, both factors and seeds."""
    rank, share = np.mean(numbers.ranks[name]), np.mean(numbers.own_axes[name])
    return f"effective rank {rank:.2f}\nalong own axis {share:.0%}"


def draw_several(numbers: Embeddings) -> Figure:
    """A row a factor and kind of run, a column a value."""
    rows = [(name, factor) for name, stacks in numbers.shown.items() for factor in stacks]
    drawn = figure(PAGE, 0.3 + 1.12 * len(rows))
    with matplotlib.rc_context(STYLE):
        grid = drawn.subplots(len(rows), len(numbers.values), squeeze=False)
        for cells, (name, factor) in zip(grid, rows, strict=True):
            for axes, value, matrix in zip(cells, numbers.values, numbers.shown[name][factor], strict=True):
                show_matrix(axes, matrix)
                axes.set_title(f"{factor} = {value}", fontsize=7, pad=2)
            cells[0].set_ylabel(f"{TITLES[name]}\nembedding of {factor}", fontsize=7)
        drawn.suptitle(KEY, fontsize=6.5, color=BLANK)
    return drawn


def draw_ablation(numbers: Ablation) -> Figure:
    """Error on seen against held-out points, one dot a seed; beside it the share of bumps in place."""
    drawn = figure(PAGE, 2.5)
    with matplotlib.rc_context(STYLE):
        errors, places = drawn.subplots(1, 2, width_ratios=(3, 2))
        for number, name in enumerate(numbers.seeds):
            look = {"color": COLOUR[name], "marker": MARKER[name], "linestyle": "none", "markersize": 5, "alpha": 0.85}
            errors.plot(numbers.seen[name], numbers.heldout[name], label=TITLES[name], **look)
            count = len(numbers.accuracy[name])
            places.plot(number + np.linspace(-0.15, 0.15, count) * (count > 1), numbers.accuracy[name], **look)
        errors.axhline(numbers.blank, color=BLANK, linestyle=":", linewidth=1, label="blank image, held out")
        errors.set(xscale="log", yscale="log", xlabel="MSE on seen (x, y)", ylabel="MSE on held-out (x, y)")
        drawn.legend(loc="outside upper center", ncols=5, fontsize=7, frameon=False)
        places.set(ylim=(-0.04, 1.04), ylabel="held-out bumps within 1 pixel", xlim=(-0.5, len(numbers.seeds) - 0.5))
        places.set_xticks(range(len(numbers.seeds)), [TITLES[name].replace(" ", "\n") for name in numbers.seeds])
        places.yaxis.set_major_formatter(PercentFormatter(1))
    return drawn


def draw_volume(numbers: Evenness) -> Figure:
    return draw_evenness(numbers, TITLES)


PANELS = (
    Panel(
        name="3a",
        title="Low-rank rendering, step by step",
        see="Each value's code picks a matrix made of products of two vectors; the matrices of x and y are the "
        "channels of a small conv net. All that is shown was read from a trained decoder at a held-out place.",
        plan=lowrank.cured,
        numbers=lowrank.scheme,
        draw=draw_scheme,
        no_claim="it explains the architecture",
        diagnosed=False,
    ),
    Panel(
        name="3b",
        title="Embeddings of one x and one y, without and with penalties",
        see="Whether the embedding of x is an upright band and that of y a level one. Red and blue are signs, each "
        "matrix on its own scale; rank and share along the own axis are means over all values and seeds.",
        plan=lowrank.ends,
        numbers=lowrank.embeddings_in_the_middle,
        draw=draw_pair,
        diagnosed=False,
    ),
    Panel(
        name="3c",
        title="Volume element without and with penalties",
        see="How even the colour is, above all across the line around held-out (x, y). The number is the spread: "
        "the standard deviation of log10 volume over the grid without its border, mean over seeds.",
        plan=lowrank.ends,
        numbers=evenness,
        draw=draw_volume,
    ),
    Panel(
        name="3d",
        title="Ablation of the penalties",
        see="Which penalties take the held-out error below that of a blank image, at what cost on seen points, and "
        "whether the bumps are then in place.",
        plan=lowrank.ablation,
        numbers=lowrank.ablation_errors,
        draw=draw_ablation,
        diagnosed=False,
    ),
    Panel(
        name="6",
        title="Embedding matrices of several values",
        see="Whether the bands move with the value and lie along its own axis, or differ from value to value.",
        plan=lowrank.ends,
        numbers=lowrank.embeddings_of_several,
        draw=draw_several,
        diagnosed=False,
    ),
)
