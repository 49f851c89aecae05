"""Units drawn: first-layer channels, and activation over (x, y) with its curves."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from torch import Tensor

from composcope.figures.style import COLOURS, PAGE, STYLE, figure, outline
from composcope.paper.layers import Network
from composcope.paper.ledger import interval
from composcope.paper.tuning import FirstLayers, Tunings, Unit

ALONG_X, ALONG_Y = COLOURS[0], COLOURS[1]
MEASURES = {"stripe-likeness": COLOURS[0], "bump-likeness": COLOURS[1], "additive share": COLOURS[2]}


def draw_first_layers(numbers: FirstLayers) -> Figure:
    """A block a kind of run: a row an input, a column a channel; dark is silent."""
    drawn = figure(PAGE, 0.62 * len(numbers.inputs) + 0.55)
    with matplotlib.rc_context(STYLE):
        blocks = drawn.subfigures(1, len(numbers.channels), squeeze=False, wspace=0.02)[0]
        for block, (name, found) in zip(blocks, numbers.channels.items(), strict=True):
            grid = block.subplots(*found.maps.shape[:2], squeeze=False)
            top = max(float(found.maps.max()), 1e-9)
            for cells, told, maps in zip(grid, numbers.inputs, found.maps, strict=True):
                for axes, channel in zip(cells, maps, strict=True):
                    axes.imshow(channel.numpy(), origin="lower", cmap="magma", vmin=0, vmax=top)
                    _bare(axes)
                if block is blocks[0]:
                    cells[0].set_ylabel(told, rotation=0, ha="right", va="center", fontsize=7)
            for axes, number in zip(grid[0], found.numbers, strict=True):
                axes.set_title(f"ch. {number}", fontsize=7, pad=2)
            share, before = np.mean(found.bands), np.mean(found.bands_before)
            block.suptitle(f"{name}: {share:.0%} along own axis ({before:.0%} before training)", fontsize=8)
    return drawn


def draw_typical(numbers: Tunings) -> Figure:
    """One unit a layer with its curves, and the likeness of all units by layer."""
    ((name, units), *_) = numbers.units.items()
    drawn = figure(PAGE, 2.6)
    with matplotlib.rc_context(STYLE):
        left, right = drawn.subfigures(1, 2, squeeze=False, width_ratios=(2, 1))[0]
        grid = left.subplots(2, len(units), height_ratios=(1.0, 0.8), squeeze=False)
        for cells, (layer, found) in zip(grid.T, units.items(), strict=True):
            if found:
                _draw_map(cells[0], found[0], numbers.heldout)
                _draw_curves(cells[1], found[0])
            cells[0].set_title(layer, fontsize=7)
            cells[1].set_xlabel("x or y", fontsize=7)
        grid[0, 0].set(xlabel="x", ylabel="y")
        grid[1, 0].set_ylabel("mean activation", fontsize=7)
        left.suptitle(f"{name}: a typical unit of each layer", fontsize=8)
        left.legend(
            *grid[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=7, frameon=False
        )
        axes = right.subplots()
        _draw_likeness(axes, numbers.likeness[name])
        right.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=6.5, frameon=False
        )
    return drawn


def draw_units(numbers: Tunings) -> Figure:
    """A block a kind of run, a row a layer, and of each layer two units: the map, then both curves."""
    layers = list(next(iter(numbers.units.values())))
    drawn = figure(PAGE, 0.78 * len(layers) + 0.45)
    with matplotlib.rc_context(STYLE):
        blocks = drawn.subfigures(1, len(numbers.units), squeeze=False, wspace=0.03)[0]
        for block, (name, units) in zip(blocks, numbers.units.items(), strict=True):
            _draw_block(block, units, numbers.heldout, block is blocks[0])
            block.suptitle(name, fontsize=8)
        axes = blocks[0].axes[1]
        drawn.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    return drawn


def _draw_block(block: SubFigure, units: dict[str, list[Unit]], heldout: Tensor, named: bool) -> None:
    grid = block.subplots(len(units), 4, squeeze=False, width_ratios=(1, 1, 1, 1))
    for cells, (layer, found) in zip(grid, units.items(), strict=True):
        for place, unit in enumerate(found[:2]):
            _draw_map(cells[2 * place], unit, heldout)
            cells[2 * place].set_title(f"stripe {unit.stripe:.2f}, bump {unit.bump:.2f}", fontsize=6, pad=2, loc="left")
            _draw_curves(cells[2 * place + 1], unit)
        if named:
            cells[0].set_ylabel(layer, rotation=0, ha="right", va="center")


def _draw_map(axes: Axes, unit: Unit, heldout: Tensor) -> None:
    axes.imshow(unit.map.T.numpy(), origin="lower", cmap="viridis", interpolation="nearest")
    outline(axes, heldout)
    _bare(axes)


def _draw_curves(axes: Axes, unit: Unit) -> None:
    along_x, along_y = unit.curves
    axes.plot(along_x.numpy(), color=ALONG_X, linewidth=1, label="by x, mean over y")
    axes.plot(along_y.numpy(), color=ALONG_Y, linewidth=1, linestyle="--", label="by y, mean over x")
    axes.set(xticks=[0, len(along_x) - 1], yticks=[])
    axes.tick_params(labelsize=6)


def _bare(axes: Axes) -> None:
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")


def _draw_likeness(axes: Axes, network: Network) -> None:
    """Each measure from the code to the image, with its range over seeds; dashed, before training."""
    places = np.arange(len(network.layers))
    for measure, colour in MEASURES.items():
        bands = [interval(_known(column)) for column in network.trained[measure].T]
        mean, low, high = (np.array([np.nan if v is None else v for v in part]) for part in zip(*bands, strict=True))
        axes.plot(places, mean, color=colour, marker="o", markersize=3, linewidth=1, label=measure)
        axes.fill_between(places, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(places, network.untrained[measure].nanmean(0), color=colour, linewidth=0.8, linestyle="--")
    axes.plot([], [], color="#666666", linewidth=0.8, linestyle="--", label="before training")
    axes.set_xticks(places, network.layers, rotation=45, ha="right")
    axes.set(ylim=(-0.03, 1.03), ylabel="mean over units")


def _known(column: Tensor) -> Sequence[float]:
    known: Sequence[float] = column[column.isfinite()].tolist()
    return known
