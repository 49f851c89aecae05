"""Figures 4e, 4f and 15 page: first-layer channels, and units' activation over (x, y) with its curves."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from torch import Tensor

from composcope.measures.tuning import tuning_marginals
from composcope.papers.forced_rendering.layers import UNTRAINED, nan_if_none
from composcope.study.drawing import COLOURS, PAGE, figure, frame, outline
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.statistics import interval

ALONG_X, ALONG_Y = COLOURS[0], COLOURS[1]
SAMPLE = {"stripe-likeness, sample": COLOURS[0], "bump-likeness, sample": COLOURS[1]}
ALL = {"stripe-likeness": COLOURS[0], "bump-likeness": COLOURS[1], "additive share": COLOURS[2]}


def draw_first_layers(numbers: Numbers) -> Figure:
    """One block per kind of run: units over (x, y) above, channels by input below."""
    inputs = numbers.common["inputs"]
    page = figure(PAGE, 0.62 * (len(inputs) + 1) + 1.0)
    blocks = page.subfigures(1, len(numbers.kinds), squeeze=False, wspace=0.02)[0]
    for block, kind in zip(blocks, numbers.kinds, strict=True):
        above, below = block.subfigures(2, 1, squeeze=False, height_ratios=(1.15, len(inputs) + 0.35))[:, 0]
        leftmost = _draw_units(above, numbers.first[kind])
        grid = _draw_channels(below, numbers.first[kind])
        if block is blocks[0]:
            leftmost.set_ylabel("units\nover (x, y)", rotation=0, ha="right", va="center", fontsize=7)
            for axes, label in zip(grid[:, 0], inputs, strict=True):
                axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=7)
        share, before = (
            np.mean(numbers.column(f"units: {name}", kind)) for name in ("share of one factor", "before training")
        )
        above.suptitle(f"{kind}: {share:.0%} by one factor ({before:.0%} before training)", fontsize=8)
        share, before = (
            np.mean(numbers.column(f"maps: {name}", kind)) for name in ("share along own axis", "before training")
        )
        below.suptitle(f"channels: {share:.0%} along own axis ({before:.0%} before training)", fontsize=8)
    return page


def _draw_units(part: SubFigure, channels: Row) -> Axes:
    """Each unit on its own scale, titled with the share of its variance that one factor explains; the first axes."""
    cells = part.subplots(1, max(1, len(channels["units"])), squeeze=False)[0]
    for axes, unit, share in zip(cells, channels["units"], channels["unit shares"], strict=False):
        axes.imshow(unit.T.numpy(), origin="lower", cmap="viridis", interpolation="nearest")
        axes.set_title(f"{share:.0%}", fontsize=7, pad=2)
    for axes in cells:
        frame(axes)
    first: Axes = cells[0]
    return first


def _draw_channels(block: SubFigure, channels: Row) -> np.ndarray:
    """The channels of one kind of run on one scale; the axes."""
    grid: np.ndarray = block.subplots(*channels["maps"].shape[:2], squeeze=False)
    top = max(float(channels["maps"].max()), 1e-9)
    for cells, maps in zip(grid, channels["maps"], strict=True):
        for axes, channel in zip(cells, maps, strict=True):
            axes.imshow(channel.numpy(), origin="lower", cmap="magma", vmin=0, vmax=top)
            frame(axes)
    for axes, index in zip(grid[0], channels["channels"], strict=True):
        axes.set_title(f"ch. {index}", fontsize=7, pad=2)
    return grid


def draw_typical(numbers: Numbers) -> Figure:
    """One unit per layer with its curves, and the likeness of all units by layer."""
    kind, units = next(iter(numbers.first.items()))
    page = figure(PAGE, 3.3)
    left, right = page.subfigures(1, 2, squeeze=False, width_ratios=(2, 1))[0]
    grid = left.subplots(2, len(units), height_ratios=(1.0, 0.8), squeeze=False)
    for (above, below), (layer, some) in zip(grid.T, units.items(), strict=True):
        for unit in some[:1]:
            _draw_map(above, unit, numbers.common["heldout"])
            _draw_curves(below, unit)
        above.set_title(layer, fontsize=7)
        below.set_xlabel("x or y", fontsize=7)
    grid[0, 0].set(xlabel="x", ylabel="y")
    grid[1, 0].set_ylabel("mean activation", fontsize=7)
    left.suptitle(f"{kind}: a typical unit of each layer", fontsize=8)
    _add_legend(left, grid[1, 0], fontsize=7)
    above, below = right.subplots(2, 1, sharex=True)
    _draw_likeness(above, numbers, kind, SAMPLE)
    above.set_ylabel("sample units", fontsize=7)
    _draw_likeness(below, numbers, kind, ALL)
    below.set_ylabel("all units", fontsize=7)
    _add_legend(right, below, fontsize=6.5)
    return page


def draw_units(numbers: Numbers) -> Figure:
    """One block per kind of run, one row per layer, and two units of each layer: the map, then both curves."""
    layers = list(next(iter(numbers.first.values())))
    page = figure(PAGE, 0.78 * len(layers) + 0.45)
    blocks = page.subfigures(1, len(numbers.first), squeeze=False, wspace=0.03)[0]
    for block, (kind, units) in zip(blocks, numbers.first.items(), strict=True):
        _draw_block(block, units, numbers.common["heldout"], with_names=block is blocks[0])
        block.suptitle(kind, fontsize=8)
    _add_legend(page, blocks[0].axes[1], fontsize=7)
    return page


def _add_legend(part: Figure | SubFigure, axes: Axes, fontsize: float) -> None:
    """The legend of these axes, below the whole part."""
    handles, labels = axes.get_legend_handles_labels()
    part.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=fontsize, frameon=False)


def _draw_block(block: SubFigure, units: Mapping[str, Rows], heldout: Tensor, with_names: bool) -> None:
    grid = block.subplots(len(units), 4, squeeze=False, width_ratios=(1, 1, 1, 1))
    for cells, (layer, some) in zip(grid, units.items(), strict=True):
        for index, unit in enumerate(some[:2]):
            _draw_map(cells[2 * index], unit, heldout)
            title = f"stripe {unit['stripe']:.2f}, bump {unit['bump']:.2f}"
            cells[2 * index].set_title(title, fontsize=6, pad=2, loc="left")
            _draw_curves(cells[2 * index + 1], unit)
        for axes in cells[2 * len(some[:2]) :]:
            axes.set_axis_off()
        if with_names:
            cells[0].set_ylabel(layer, rotation=0, ha="right", va="center")


def _draw_map(axes: Axes, unit: Row, heldout: Tensor) -> None:
    """The unit's activation over the latent plane."""
    axes.imshow(unit["map"].T.numpy(), origin="lower", cmap="viridis", interpolation="nearest")
    outline(axes, heldout)
    frame(axes)


def _draw_curves(axes: Axes, unit: Row) -> None:
    """Mean activation by x and by y."""
    (along_x,), (along_y,) = tuning_marginals(unit["map"][None])
    axes.plot(along_x.numpy(), color=ALONG_X, linewidth=1, label="by x, mean over y")
    axes.plot(along_y.numpy(), color=ALONG_Y, linewidth=1, linestyle="--", label="by y, mean over x")
    axes.set(xticks=[0, len(along_x) - 1], yticks=[])
    axes.tick_params(labelsize=6)


def _draw_likeness(axes: Axes, numbers: Numbers, kind: str, measures: Mapping[str, str]) -> None:
    """Each measure from the code to the image, with its interval over seeds; dashed, before training."""
    layers = numbers.of(kind)[0]["layers"]
    positions = np.arange(len(layers))
    for measure, colour in measures.items():
        intervals = [interval(_finite(column)) for column in numbers.stack(measure, kind).T]
        mean, low, high = np.array([[nan_if_none(value) for value in column] for column in intervals]).T
        axes.plot(positions, mean, color=colour, marker="o", markersize=3, linewidth=1, label=measure)
        axes.fill_between(positions, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(
            positions,
            numbers.stack(f"{measure}{UNTRAINED}", kind).nanmean(0),
            color=colour,
            linewidth=0.8,
            linestyle="--",
        )
    axes.plot([], [], color="#666666", linewidth=0.8, linestyle="--", label="before training")
    axes.set_xticks(positions, layers, rotation=45, ha="right")
    axes.set(ylim=(-0.03, 1.03))


def _finite(column: Tensor) -> list[float]:
    values: list[float] = column[column.isfinite()].tolist()
    return values
