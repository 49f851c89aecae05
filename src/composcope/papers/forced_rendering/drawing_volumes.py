"""Volume maps of some kinds of runs, layer by layer, on one scale."""

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from composcope.papers.forced_rendering.drawing_layers import SIGNED
from composcope.papers.forced_rendering.volumes import Evenness, inner, std
from composcope.study.drawing import PAGE, figure, outline
from composcope.study.plan import Key


def draw_evenness(numbers: Evenness, titles: Mapping[Key, str]) -> Figure:
    """A row per kind of run, a column per layer after the code; last, in the first row, the map of the true images."""
    first = next(iter(numbers.maps.values()))
    limit = _limit(numbers)
    side = (PAGE - 1.3) / len(first.layers)
    drawn = figure(PAGE, 0.4 + (side + 0.1) * len(numbers.maps))
    grid = drawn.subplots(len(numbers.maps), len(first.layers), squeeze=False)
    for row, (key, maps) in zip(grid, numbers.maps.items(), strict=True):
        spreads = numbers.spreads[key].mean(0)
        for index, (axes, layer) in enumerate(zip(row, maps.layers[1:], strict=False), start=1):
            name = f"{layer}\n" if maps is first else ""
            spread = f"spread {spreads[index]:.2f}" if index == 1 else f"{spreads[index]:.2f}"
            _show(axes, maps.maps[index], maps.heldout, limit, name + spread)
        row[0].set_ylabel(f"{titles[key]}\n\ny", labelpad=2)
        row[-1].set_axis_off()
    _show(grid[0, -1], numbers.truth, first.heldout, limit, f"true images\n{std(inner(numbers.truth)):.2f}")
    grid[0, -1].set_axis_on()
    for axes in grid[-1, :-1]:
        axes.set_xlabel("x", labelpad=2)
    bar = drawn.colorbar(ScalarMappable(Normalize(-limit, limit), SIGNED), ax=grid, extend="both", aspect=20)
    bar.set_label("$\\log_{10} dv$ minus its mean on seen")
    return drawn


def _limit(numbers: Evenness) -> float:
    """The end of the colour scale: nearly every value of every map is within it."""
    values = torch.cat([maps.maps[1:].flatten() for maps in numbers.maps.values()]).nan_to_num(0.0).abs()
    return max(0.5, float(torch.quantile(values, 0.99)))


def _show(axes: Axes, values: Tensor, heldout: Tensor, limit: float, title: str) -> None:
    axes.imshow(values.T.numpy(), origin="lower", cmap=SIGNED, vmin=-limit, vmax=limit, interpolation="nearest")
    outline(axes, heldout)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=7, pad=2)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")
