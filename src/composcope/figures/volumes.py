"""Volume maps of two kinds of runs, layer by layer, on one scale."""

from collections.abc import Mapping

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from composcope.figures.layers import SIGNED
from composcope.figures.style import PAGE, STYLE, figure, outline
from composcope.paper.volumes import Evenness, inner, std


def draw_evenness(numbers: Evenness, titles: Mapping[str, str]) -> Figure:
    """A row a kind of run and a column a layer after the code; last, in the first row, the true images' own map."""
    first = next(iter(numbers.maps.values()))
    limit = _limit(numbers)
    side = (PAGE - 1.3) / len(first.layers)
    drawn = figure(PAGE, 0.4 + (side + 0.1) * len(numbers.maps))
    with matplotlib.rc_context(STYLE):
        grid = drawn.subplots(len(numbers.maps), len(first.layers), squeeze=False)
        for row, (name, maps) in zip(grid, numbers.maps.items(), strict=True):
            spreads = numbers.spreads[name].mean(0)
            for place, (axes, layer) in enumerate(zip(row, maps.layers[1:], strict=False), start=1):
                named = f"{layer}\n" if maps is first else ""
                told = f"spread {spreads[place]:.2f}" if place == 1 else f"{spreads[place]:.2f}"
                _show(axes, maps.maps[place], maps.heldout, limit, named + told)
            row[0].set_ylabel(f"{titles[name]}\n\ny", labelpad=2)
            row[-1].set_axis_off()
        _show(grid[0, -1], numbers.truth, first.heldout, limit, f"true images\n{std(inner(numbers.truth)):.2f}")
        grid[0, -1].set_axis_on()
        for axes in grid[-1, :-1]:
            axes.set_xlabel("x", labelpad=2)
        bar = drawn.colorbar(ScalarMappable(Normalize(-limit, limit), SIGNED), ax=grid, extend="both", aspect=20)
        bar.set_label("$\\log_{10} dv$ less its mean on seen")
    return drawn


def _limit(numbers: Evenness) -> float:
    """The scale's end: nearly every value of every map is within it."""
    values = torch.cat([maps.maps[1:].flatten() for maps in numbers.maps.values()]).nan_to_num(0.0).abs()
    return max(0.5, float(torch.quantile(values, 0.99)))


def _show(axes: Axes, values: Tensor, heldout: Tensor, limit: float, title: str) -> None:
    axes.imshow(values.T.numpy(), origin="lower", cmap=SIGNED, vmin=-limit, vmax=limit, interpolation="nearest")
    outline(axes, heldout)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=7, pad=2)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")
