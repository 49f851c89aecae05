"""How layers are drawn: a measure's curve from the code to the image, and maps of the volume over (x, y)."""

import math
from collections.abc import Sequence
from typing import Literal

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from composcope.papers.forced_rendering.layers import OTHERS, Network, Profiles, nan_if_none
from composcope.papers.forced_rendering.volumes import VolumeMaps, Volumes
from composcope.study.drawing import COLOURS, PAGE, figure, outline
from composcope.study.statistics import interval

UNTRAINED = "#999999"
LABELS = {
    "probe R2, in sample": "$R^2$, in sample",
    "probe R2, cross-validated": "$R^2$, cross-validated",
    "probe R2, seen to held-out": "$R^2$, seen to held-out",
    "factorization, ratio of means": "factorization, as in the authors' code",
    "factorization, mean of ratios": "factorization, exact",
}
ABOVE = "(above each map: its mean in the outlined, held-out square; exact | by differences on the grid)"
ABOVE_PER_LAYER = "(above each map: mean in the outlined square minus that on seen points; exact | by differences)"
PER_LAYER = "Reds"
SMALLEST_SPAN = 0.02  # of a curve's axis: changes below a percent show, rounding does not
SIGNED = "PRGn"  # purple where there is less volume than on seen points, green where there is more
SCALE = 1.0  # powers of ten to either side of no difference, the same in every volume map


def draw_one_code(profiles: Profiles) -> Figure:
    """One code's networks over the layer's index; one axes per measure, the authors' first."""
    measures = profiles.measures
    columns = 5 * len(measures) // 2  # of the legend: as many labels as fit beside each other
    lines = math.ceil((len(profiles.networks) + 2) / columns)
    drawn = figure(2.25 * len(measures), 2.3 + 0.14 * lines)
    drawn.suptitle(f"{profiles.groups[0]} code", x=0.01, ha="left", fontsize=8, fontweight="bold")
    grid = drawn.add_gridspec(2, len(measures), height_ratios=[2.0, 0.14 * lines])
    for column, measure in enumerate(measures):
        axes = drawn.add_subplot(grid[0, column])
        _draw_curves(axes, profiles.networks, measure)
        _finish(axes, profiles, measure)
        axes.set_title(LABELS[measure])
    _draw_legend(drawn.add_subplot(grid[1, :]), axes, "upper center", columns)
    return drawn


def draw_profiles(profiles: Profiles) -> Figure:
    """All networks over the layer's index: a row per group, a column per measure."""
    groups, measures = profiles.groups, profiles.measures
    drawn = figure(PAGE, 1.7 * len(groups) + 0.3)
    ratios = [1.0] * len(measures) + [0.6]
    grid = drawn.subplots(len(groups), len(ratios), width_ratios=ratios, squeeze=False)
    for axes, measure in zip(grid[0], measures, strict=False):
        axes.set_title(LABELS[measure].replace(", ", ",\n"), fontsize=7)
    for row, group in zip(grid, groups, strict=True):
        networks = [network for network in profiles.networks if network.group == group]
        for axes, measure in zip(row, measures, strict=False):
            _draw_curves(axes, networks, measure)
            _finish(axes, profiles, measure)
            axes.tick_params(labelsize=6)
        row[0].set_ylabel(group if group == OTHERS else f"{group} code", fontweight="bold")
        _draw_legend(row[-1], row[0], "center left", 1)
    return drawn


def _draw_curves(axes: Axes, networks: Sequence[Network], measure: str) -> None:
    """A line per network with its interval over seeds, and grey lines for the same networks before training.

    The lines are of the input and the hidden layers, which is what the paper shows; the image is a dot beyond them.
    """
    for network in networks:
        axes.plot(_shown_untrained(network, measure), color=UNTRAINED, linewidth=0.8, zorder=1, label="untrained")
    for colour, network in zip(_colours(networks), networks, strict=True):
        curves, end = network.trained[measure], network.last_hidden + 1
        depths = torch.arange(len(network.layers))
        mean, low, high = (torch.tensor(bound) for bound in zip(*map(_interval, curves.T), strict=True))
        if len(curves) > 1:
            axes.fill_between(depths[:end], low[:end], high[:end], color=colour, alpha=0.15, linewidth=0)
        axes.plot(depths[:end], mean[:end], color=colour, linewidth=1.1, label=network.label)
        axes.plot(depths[end - 1 :], mean[end - 1 :], ":", color=colour, linewidth=0.8)
        axes.plot(depths[end:], mean[end:], "o", color=colour, markersize=3)
    axes.set_xlabel("hidden layer\n(in: input, dot: image)", fontsize=6.5)
    count = max(len(network.layers) for network in networks) - 1
    indices = range(0, count, 1 if count <= 8 else 2)
    axes.set_xticks([0, *(1 + index for index in indices)], ["in", *map(str, indices)])


def _shown_untrained(network: Network, measure: str) -> Tensor:
    """The mean before training, of the input and the hidden layers."""
    return network.untrained[measure].mean(0)[: network.last_hidden + 1]


def _finish(axes: Axes, profiles: Profiles, measure: str) -> None:
    """The true images' score as a dotted line; a range from the lowest mean, or -1 if that is higher, to 1."""
    axes.axhline(profiles.truth[measure], color="black", linewidth=0.8, linestyle=":", zorder=0, label="true images")
    means = [network.trained[measure].mean(0) for network in profiles.networks]
    means += [_shown_untrained(network, measure) for network in profiles.networks]
    lowest = min(profiles.truth[measure], *(mean.nan_to_num(1).min().item() for mean in means))
    span = max(1 - max(lowest, -1), SMALLEST_SPAN)
    axes.set_ylim(1 - 1.15 * span, 1 + 0.04 * span)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def _interval(values: Tensor) -> tuple[float, float, float]:
    mean, low, high = map(nan_if_none, interval(values.tolist()))
    return mean, low, high


def _colours(networks: Sequence[Network]) -> Sequence[object]:
    """From dark to light with depth; the other decoders have no order and take the palette."""
    if networks[0].group == OTHERS:
        return COLOURS[: len(networks)]
    return [matplotlib.colormaps["viridis"](share) for share in np.linspace(0, 0.88, len(networks))]


def _draw_legend(target: Axes, source: Axes, where: Literal["upper center", "center left"], columns: int) -> None:
    """The labels of the lines of other axes, each once; what they are compared with comes last."""
    target.set_axis_off()
    handles = {label: handle for handle, label in zip(*source.get_legend_handles_labels(), strict=True)}
    handles |= {label: handles.pop(label) for label in ("untrained", "true images")}
    target.legend(
        handles.values(),
        [label.replace(" (", "\n(") for label in handles],
        loc=where,
        ncols=columns,
        frameon=False,
        fontsize=6.5,
        handlelength=1.2,
        columnspacing=1,
        borderpad=0,
    )


Scale = Literal["shared", "layer"]
"""One scale around the mean on seen points for all maps, or one per layer: its mean and 3 standard deviations."""


def draw_volumes(volumes: Volumes, scale: Scale = "shared") -> Figure:
    """A row per network, a column per layer with the image last; above a map its gap, exact and by differences.

    - `scale`: "layer" draws the maps as in the paper: by differences on the grid, and each coloured by itself.
    """
    networks = volumes.networks
    columns = max(len(network.layers) for network in networks)
    headed = [index == 0 or _begins(networks[index - 1], network) for index, network in enumerate(networks)]
    left, gap, below = 0.85, 0.05, 0.95
    side = (PAGE - left) / max(columns, 5) - gap
    tops = np.cumsum([0.17 + 0.12 * has_names + (index > 0) * side for index, has_names in enumerate(headed)])
    drawn = Sheet(PAGE, tops[-1] + side + below)
    for index, (top, network) in enumerate(zip(tops, networks, strict=True)):
        numbers = [*range(len(network.layers) - 1), columns - 1]
        row = [drawn.square(left + number * (side + gap), top, side) for number in numbers]
        _draw_row(row, network, networks[index - 1].layers, headed[index], scale)
    row[0].set(xlabel="x", ylabel="y")
    bar = drawn.box(PAGE / 2 - 1.2, tops[-1] + side + 0.27, 2.4, 0.09)
    if scale == "shared":
        values = ScalarMappable(Normalize(-SCALE, SCALE), SIGNED)
        drawn.paper.colorbar(values, bar, orientation="horizontal", extend="both", ticks=[-SCALE, 0, SCALE])
        bar.set_xlabel(f"$\\log_{{10}} dv$ minus its mean on seen points\n{ABOVE}")
    else:
        values = ScalarMappable(Normalize(-3, 3), PER_LAYER)
        drawn.paper.colorbar(values, bar, orientation="horizontal", extend="both", ticks=[-3, 0, 3])
        shown = "$\\log_{10} dv$ by differences, in standard deviations from its mean in the layer"
        bar.set_xlabel(f"{shown}\n{ABOVE_PER_LAYER}")
    return drawn.paper


def _begins(before: VolumeMaps, network: VolumeMaps) -> bool:
    """Whether this row needs layer names of its own: a new code, or a decoder unlike the one before."""
    return network.group != before.group or network.group == OTHERS


def _draw_row(
    row: Sequence[Axes], network: VolumeMaps, layers_above: Sequence[str], headed: bool, scale: Scale
) -> None:
    """One network's maps; layers are named where the row is headed or the row above does not have them."""
    both = zip(network.gaps[0].tolist(), network.grid_gaps[0].tolist(), strict=True)
    maps = network.maps if scale == "shared" else network.grid_maps
    for axes, layer, values, (gap, grid_gap) in zip(row, network.layers, maps, both, strict=True):
        centre, half, colours = 0.0, SCALE, SIGNED
        if scale == "layer":
            # A flat map has no deviation; any width then gives one colour.
            centre, half, colours = values.mean().item(), 3 * values.std().item() or 1.0, PER_LAYER
        axes.imshow(
            values.T.numpy(),
            origin="lower",
            cmap=colours,
            vmin=centre - half,
            vmax=centre + half,
            interpolation="nearest",
        )
        frame = outline(axes, network.heldout)
        if scale == "layer":
            frame.set_color("black")  # the usual colour cannot be told from the map's
        named = headed or layer not in layers_above  # then there is no map above that the name would cover
        gaps = f"{gap:+.2f} | {grid_gap:+.2f}"
        axes.set_title(f"{layer}\n{gaps}" if named else gaps, fontsize=6, pad=1.5)
    code = f"{network.group} code,\n" if headed and network.group != OTHERS else ""
    label = code + network.label.replace(" (", "\n(")
    row[0].annotate(label, (0, 0.5), (-14, 0), "axes fraction", "offset points", ha="right", va="center", fontsize=6.5)


class Sheet:
    """A figure with axes at fixed positions, in inches from the upper left.

    A layout engine takes half a minute for a hundred axes.
    """

    def __init__(self, width: float, height: float) -> None:
        self.paper, self.width, self.height = figure(width, height), width, height
        self.paper.set_layout_engine(None)

    def box(self, left: float, top: float, width: float, height: float) -> Axes:
        """Empty axes."""
        bottom = self.height - top - height
        return self.paper.add_axes((left / self.width, bottom / self.height, width / self.width, height / self.height))

    def square(self, left: float, top: float, side: float) -> Axes:
        """Empty square axes for an image, in a thin frame."""
        axes = self.box(left, top, side, side)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(visible=True, linewidth=0.5, color="#888888")
        return axes
