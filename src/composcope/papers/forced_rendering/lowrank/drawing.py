"""Figures 3 and 6 page: low-rank embeddings, their volume and the ablation of their penalties."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from composcope.papers.forced_rendering.drawing import draw_evenness
from composcope.study.drawing import COLOURS, COLUMN, PAGE, figure, frame, show_image
from composcope.study.numbers import Numbers

TITLES = {
    "none": "no penalty",
    "entropy": "entropy",
    "variance": "variance",
    "both": "both penalties",
}
COLOUR = dict(zip(TITLES, COLOURS, strict=False))
MARKER = dict(zip(TITLES, "os^D", strict=True))
BLANK = "#666666"
GAP = "#cccccc"
ARROW = "→"
LEGEND = "red: positive, blue: negative; every matrix on its own scale"


def show_matrix(axes: Axes, matrix: Tensor) -> None:
    """A signed matrix on its own scale with the origin at the lower left, white at 0."""
    limit = max(float(matrix.nan_to_num(0.0).abs().max()), 1e-9)
    axes.imshow(matrix.numpy(), origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    frame(axes)


def draw_walkthrough(numbers: Numbers) -> Figure:
    """From left to right: the codes, a value's matrix as a sum of products, the conv layers, the image."""
    steps, value = numbers.first["both"], numbers.common["value"]
    layers = list(steps["conv layers"])
    ratios = [0.22, 0.35, 0.22, 0.8, 1.0, 1.15, 1.0, 0.35, *[1.0] * len(layers), 0.35, 1.5, 1.5]
    page = figure(PAGE, 1.65)
    grid = page.add_gridspec(2, len(ratios), width_ratios=ratios)
    for row, (factor, terms) in enumerate(steps["terms"].items()):
        cells = [page.add_subplot(grid[row, column]) for column in range(8 + len(layers))]
        _draw_terms(cells, terms, with_titles=row == 0)
        hot = torch.zeros(numbers.common["size"], 1)
        hot[value] = 1
        show_matrix(cells[0], hot)
        cells[0].set_aspect("auto")
        cells[0].set_ylabel(f"{factor} = {value}")
        for axes, name in zip(cells[8:], layers, strict=True):
            _draw_channel(axes, steps["conv layers"][name], row, name)
    _write(page.add_subplot(grid[:, 8 + len(layers)]), ARROW)
    for offset, (title, image) in enumerate((("image", steps["image"]), ("truth", steps["truth"]))):
        axes = page.add_subplot(grid[:, 9 + len(layers) + offset])
        show_image(axes, image)
        axes.set_title(title)
    return page


def _draw_terms(cells: Sequence[Axes], terms: Mapping[str, Tensor], with_titles: bool) -> None:
    """v lambda u^T + the other terms = W."""
    v, weight, u = terms["v"], terms["weight"], terms["u"]
    shares = weight.square() / weight.square().sum()
    for cell, matrix in ((2, v[0][:, None]), (4, u[0][None]), (6, torch.einsum("nh,n,nw->hw", v, weight, u))):
        show_matrix(cells[cell], matrix)
    cells[2].set_aspect("auto")
    cells[4].set_aspect(len(u[0]) / 5)
    _write(cells[1], ARROW)
    _write(cells[3], f"$\\times$ {weight[0]:.2f} $\\times$")
    _write(cells[5], f"+ {len(weight) - 1} more\n({shares[1:].sum():.1%})\n=")
    _write(cells[7], ARROW)
    if with_titles:
        for cell, title in ((0, "code"), (2, "$v$"), (3, "$\\lambda$"), (4, "$u^T$"), (6, "$W$")):
            cells[cell].set_title(title)


def _draw_channel(axes: Axes, maps: Tensor, channel: int, name: str) -> None:
    """One channel of a layer; empty if the layer has fewer."""
    if channel < len(maps):
        show_matrix(axes, maps[channel])
    else:
        axes.set_axis_off()
    if channel == 0:
        axes.set_title(name)


def _write(axes: Axes, text: str) -> None:
    """Text instead of a plot."""
    axes.set_axis_off()
    size = 12 if text == ARROW else 7
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=size, transform=axes.transAxes)


def draw_pair(numbers: Numbers) -> Figure:
    """x above y, without penalties on the left."""
    page = figure(COLUMN, 3.4)
    grid = page.subplots(2, len(numbers.first), squeeze=False)
    for column, (key, stacks) in enumerate(numbers.first.items()):
        for axes, stack in zip(grid[:, column], stacks.values(), strict=True):
            show_matrix(axes, stack[0])
            axes.set_xlabel("column (along x)", fontsize=7)
        # Means over all values, both factors and seeds, not of the matrices shown.
        rank, share = (
            np.mean(numbers.column("effective rank", key)),
            np.mean(numbers.column("share along own axis", key)),
        )
        title = f"{TITLES[key]}\neffective rank {rank:.2f}\nalong own axis {share:.0%}"
        grid[0, column].set_title(title, fontsize=7)
    for axes, factor in zip(grid[:, 0], next(iter(numbers.first.values())), strict=True):
        axes.set_ylabel(f"embedding of {factor} = {numbers.common['values'][0]}\nrow (along y)", fontsize=7)
    page.suptitle(LEGEND, fontsize=6.5, color=BLANK)
    return page


ACROSS = 8  # matrices beside each other in figure 6


def draw_all(numbers: Numbers) -> Figure:
    """One block per kind of run and factor, every value's matrix in it."""
    side = (PAGE - 0.5) / 2
    values = numbers.common["values"]
    rows = -(-len(values) // ACROSS)
    page = figure(PAGE, 0.4 + len(numbers.first) * (side * rows / ACROSS + 0.25))
    grid = page.subplots(len(numbers.first), 2, squeeze=False)
    for cells, (key, stacks) in zip(grid, numbers.first.items(), strict=True):
        for axes, (factor, stack) in zip(cells, stacks.items(), strict=True):
            show_matrix(axes, mosaic(stack))
            axes.set_facecolor(GAP)
            axes.set_title(f"{TITLES[key]}: {factor} = {values[0]} to {values[-1]}", fontsize=7, pad=2)
    page.suptitle(LEGEND, fontsize=6.5, color=BLANK)
    return page


def mosaic(matrices: Tensor, across: int = ACROSS) -> Tensor:
    """The matrices beside each other, row by row from the top, each scaled to -1..1, with one empty cell between them.

    The lowest row comes first, since matrices are page with the origin at the lower left.
    """
    count, height, width = matrices.shape
    rows = -(-count // across)
    tiles = torch.full((rows * across, height + 1, width + 1), torch.nan)
    tiles[:count, :height, :width] = matrices / matrices.abs().amax((1, 2), keepdim=True).clamp(min=1e-9)
    lines = tiles.unflatten(0, (rows, across)).flip(0)
    return lines.transpose(1, 2).flatten(2).flatten(0, 1)[:-1, :-1]


def draw_ablation(numbers: Numbers) -> Figure:
    """Error on seen against held-out points, one dot per seed; beside it the held-out accuracy."""
    page = figure(PAGE, 2.5)
    errors, accuracies = page.subplots(1, 2, width_ratios=(3, 2))
    for index, key in enumerate(numbers.kinds):
        look = {"color": COLOUR[key], "marker": MARKER[key], "linestyle": "none", "markersize": 5, "alpha": 0.85}
        errors.plot(numbers.column("seen MSE", key), numbers.column("held-out MSE", key), label=TITLES[key], **look)
        values = numbers.column("held-out accuracy", key)
        places = index + np.linspace(-0.15, 0.15, len(values)) * (len(values) > 1)
        accuracies.plot(places, values, **look)
    errors.axhline(numbers.rows[0]["blank MSE"], color=BLANK, linestyle=":", linewidth=1, label="blank image, held out")
    errors.set(xscale="log", yscale="log", xlabel="MSE on seen (x, y)", ylabel="MSE on held-out (x, y)")
    page.legend(loc="outside upper center", ncols=5, fontsize=7, frameon=False)
    accuracies.set(ylim=(-0.04, 1.04), ylabel="held-out bumps within 1 pixel", xlim=(-0.5, len(numbers.kinds) - 0.5))
    accuracies.set_xticks(range(len(numbers.kinds)), [TITLES[key].replace(" ", "\n") for key in numbers.kinds])
    accuracies.yaxis.set_major_formatter(PercentFormatter(1))
    return page


def draw_volume(numbers: Numbers) -> Figure:
    """Volume maps without penalties above those with both."""
    return draw_evenness(numbers, lambda kind: TITLES[kind])
