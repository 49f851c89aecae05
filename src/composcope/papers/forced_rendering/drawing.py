"""What several figures draw in the same way: curves over layers, maps of the volume and of errors, a dot per seed."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from composcope.papers.forced_rendering.layers import OTHERS, UNTRAINED, last_hidden, nan_if_none
from composcope.papers.forced_rendering.volumes import inner, std
from composcope.study.drawing import COLOURS, PAGE, figure, frame, outline
from composcope.study.numbers import Numbers, Row
from composcope.study.statistics import interval

GREY = "#999999"
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
MIN_SPAN = 0.02  # of a curve's axis: changes below a percent show, rounding does not
SIGNED = "PRGn"  # purple where there is less volume than on seen points, green where there is more
SCALE = 1.0  # powers of ten to either side of no difference, the same in every volume map


def draw_one_code(numbers: Numbers) -> Figure:
    """One code's networks over the layer's index; one axes per measure, the authors' first."""
    measures = list(numbers.common["truth"])
    columns = 5 * len(measures) // 2  # of the legend: as many labels as fit beside each other
    lines = math.ceil((len(numbers.kinds) + 2) / columns)
    page = figure(2.25 * len(measures), 2.3 + 0.14 * lines)
    page.suptitle(f"{numbers.rows[0]['group']} code", x=0.01, ha="left", fontsize=8, fontweight="bold")
    grid = page.add_gridspec(2, len(measures), height_ratios=[2.0, 0.14 * lines])
    for column, measure in enumerate(measures):
        axes = page.add_subplot(grid[0, column])
        _draw_curves(axes, numbers, numbers.kinds, measure)
        _finish(axes, numbers, measure)
        axes.set_title(LABELS[measure])
    _draw_legend(page.add_subplot(grid[1, :]), axes, "upper center", columns)
    return page


def draw_profiles(numbers: Numbers) -> Figure:
    """All networks over the layer's index: a row per group, a column per measure."""
    groups, measures = list(dict.fromkeys(numbers.column("group"))), list(numbers.common["truth"])
    page = figure(PAGE, 1.7 * len(groups) + 0.3)
    ratios = [1.0] * len(measures) + [0.6]
    grid = page.subplots(len(groups), len(ratios), width_ratios=ratios, squeeze=False)
    for axes, measure in zip(grid[0], measures, strict=False):
        axes.set_title(LABELS[measure].replace(", ", ",\n"), fontsize=7)
    for row, group in zip(grid, groups, strict=True):
        kinds = [kind for kind in numbers.kinds if numbers.of(kind)[0]["group"] == group]
        for axes, measure in zip(row, measures, strict=False):
            _draw_curves(axes, numbers, kinds, measure)
            _finish(axes, numbers, measure)
            axes.tick_params(labelsize=6)
        row[0].set_ylabel(group if group == OTHERS else f"{group} code", fontweight="bold")
        _draw_legend(row[-1], row[0], "center left", 1)
    return page


def _draw_curves(axes: Axes, numbers: Numbers, kinds: Sequence[str], measure: str) -> None:
    """A line per network with its interval over seeds, and grey lines for the same networks before training.

    The lines are of the input and the hidden layers, which is what the paper shows; the image is a dot beyond them.
    """
    networks = [numbers.of(kind)[0] for kind in kinds]
    for kind in kinds:
        axes.plot(_untrained(numbers, kind, measure), color=GREY, linewidth=0.8, zorder=1, label="untrained")
    for colour, kind, network in zip(_colours(networks), kinds, networks, strict=True):
        curves, end = numbers.stack(measure, kind), last_hidden(network) + 1
        depths = torch.arange(len(network["layers"]))
        mean, low, high = (torch.tensor(bound) for bound in zip(*map(_interval, curves.T), strict=True))
        if len(curves) > 1:
            axes.fill_between(depths[:end], low[:end], high[:end], color=colour, alpha=0.15, linewidth=0)
        axes.plot(depths[:end], mean[:end], color=colour, linewidth=1.1, label=network["label"])
        axes.plot(depths[end - 1 :], mean[end - 1 :], ":", color=colour, linewidth=0.8)
        axes.plot(depths[end:], mean[end:], "o", color=colour, markersize=3)
    axes.set_xlabel("hidden layer\n(in: input, dot: image)", fontsize=6.5)
    count = max(len(network["layers"]) for network in networks) - 1
    indices = range(0, count, 1 if count <= 8 else 2)
    axes.set_xticks([0, *(1 + index for index in indices)], ["in", *map(str, indices)])


def _untrained(numbers: Numbers, kind: str, measure: str) -> Tensor:
    """The mean before training, of the input and the hidden layers."""
    curves = numbers.stack(f"{measure}{UNTRAINED}", kind)
    return curves.mean(0)[: last_hidden(numbers.of(kind)[0]) + 1]


def _finish(axes: Axes, numbers: Numbers, measure: str) -> None:
    """The true images' score as a dotted line; a range from the lowest mean, or -1 if that is higher, to 1."""
    truth = numbers.common["truth"][measure]
    axes.axhline(truth, color="black", linewidth=0.8, linestyle=":", zorder=0, label="true images")
    means = [numbers.stack(measure, kind).mean(0) for kind in numbers.kinds]
    means += [_untrained(numbers, kind, measure) for kind in numbers.kinds]
    lowest = min(truth, *(mean.nan_to_num(1).min().item() for mean in means))
    span = max(1 - max(lowest, -1), MIN_SPAN)
    axes.set_ylim(1 - 1.15 * span, 1 + 0.04 * span)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def _interval(values: Tensor) -> tuple[float, float, float]:
    mean, low, high = map(nan_if_none, interval(values.tolist()))
    return mean, low, high


def _colours(networks: Sequence[Row]) -> Sequence[object]:
    """From dark to light with depth; the other decoders have no order and take the palette."""
    if networks[0]["group"] == OTHERS:
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


def draw_volumes(numbers: Numbers, scale: Scale = "shared") -> Figure:
    """A row per network, a column per layer with the image last; above a map its gap, exact and by differences.

    - `scale`: "layer" draws the maps as in the paper: by differences on the grid, and each coloured by itself.
    """
    networks = [numbers.of(kind)[0] for kind in numbers.kinds]
    columns = max(len(network["layers"]) for network in networks)
    headed = [index == 0 or _begins(networks[index - 1], network) for index, network in enumerate(networks)]
    left, gap, below = 0.85, 0.05, 0.95
    side = (PAGE - left) / max(columns, 5) - gap
    tops = np.cumsum([0.17 + 0.12 * has_names + (index > 0) * side for index, has_names in enumerate(headed)])
    sheet = Sheet(PAGE, tops[-1] + side + below)
    name = "maps" if scale == "shared" else "maps, differences"
    for index, (top, network) in enumerate(zip(tops, networks, strict=True)):
        places = [*range(len(network["layers"]) - 1), columns - 1]
        row = [sheet.square(left + place * (side + gap), top, side) for place in places]
        maps, above = numbers.first[network["run"]][name], networks[index - 1]["layers"]
        # Layers are named where the row is headed, and where the row above does not have them.
        named = [headed[index] or layer not in above for layer in network["layers"]]
        _draw_maps(row, network, maps, numbers.common["heldout"], named, scale)
        code = f"{network['group']} code,\n" if headed[index] and network["group"] != OTHERS else ""
        text = code + network["label"].replace(" (", "\n(")
        beside: Any = {"ha": "right", "va": "center", "fontsize": 6.5}
        row[0].annotate(text, (0, 0.5), (-14, 0), "axes fraction", "offset points", **beside)
    row[0].set(xlabel="x", ylabel="y")
    bar = sheet.box(PAGE / 2 - 1.2, tops[-1] + side + 0.27, 2.4, 0.09)
    if scale == "shared":
        values = ScalarMappable(Normalize(-SCALE, SCALE), SIGNED)
        sheet.page.colorbar(values, bar, orientation="horizontal", extend="both", ticks=[-SCALE, 0, SCALE])
        bar.set_xlabel(f"$\\log_{{10}} dv$ minus its mean on seen points\n{ABOVE}")
    else:
        values = ScalarMappable(Normalize(-3, 3), PER_LAYER)
        sheet.page.colorbar(values, bar, orientation="horizontal", extend="both", ticks=[-3, 0, 3])
        unit = "$\\log_{10} dv$ by differences, in standard deviations from its mean in the layer"
        bar.set_xlabel(f"{unit}\n{ABOVE_PER_LAYER}")
    return sheet.page


def _begins(before: Row, network: Row) -> bool:
    """Whether this row needs layer names of its own: a new code, or a decoder unlike the one before."""
    return network["group"] != before["group"] or network["group"] == OTHERS


def _draw_maps(
    row: Sequence[Axes], network: Row, maps: Tensor, heldout: Tensor, named: Sequence[bool], scale: Scale
) -> None:
    """One network's maps, each below its gap and, where it is named, its layer."""
    gaps = zip(network["gap"].tolist(), network["gap, differences"].tolist(), strict=True)
    for axes, layer, values, (gap, grid_gap), has_name in zip(row, network["layers"], maps, gaps, named, strict=True):
        centre, half, colours = 0.0, SCALE, SIGNED
        if scale == "layer":
            # A flat map has no deviation; any width then gives one colour.
            centre, half, colours = values.mean().item(), 3 * values.std().item() or 1.0, PER_LAYER
        limits: Any = {"vmin": centre - half, "vmax": centre + half}
        axes.imshow(values.T.numpy(), origin="lower", cmap=colours, interpolation="nearest", **limits)
        border = outline(axes, heldout)
        if scale == "layer":
            border.set_color("black")  # the usual colour cannot be told from the map's
        text = f"{gap:+.2f} | {grid_gap:+.2f}"
        axes.set_title(f"{layer}\n{text}" if has_name else text, fontsize=6, pad=1.5)


def draw_evenness(numbers: Numbers, title: Callable[[str], str]) -> Figure:
    """A row per kind of run, a column per layer after the code; last, in the first row, the map of the true images.

    - `title`: what a row is called, from its kind of run and the way in which derivatives are taken.
    """
    kinds = [(kind, way) for kind in numbers.kinds for way in numbers.common["ways"]]
    layers = numbers.rows[0]["layers"]
    heldout, truth = numbers.common["heldout"], numbers.common["truth"]
    maps = {pair: numbers.first[pair[0]][f"maps{pair[1]}"] for pair in kinds}
    # The end of the colour scale: nearly every value of every map is within it.
    values = torch.cat([each[1:].flatten() for each in maps.values()]).nan_to_num(0.0).abs()
    limit = max(0.5, float(torch.quantile(values, 0.99)))
    side = (PAGE - 1.3) / len(layers)
    page = figure(PAGE, 0.4 + (side + 0.1) * len(kinds))
    grid = page.subplots(len(kinds), len(layers), squeeze=False)
    for number, (line, (kind, way)) in enumerate(zip(grid, kinds, strict=True)):
        spreads = numbers.stack(f"spread{way}", kind).mean(0)
        for index, (axes, layer) in enumerate(zip(line, layers[1:], strict=False), start=1):
            name = f"{layer}\n" if number == 0 else ""
            text = f"spread {spreads[index]:.2f}" if index == 1 else f"{spreads[index]:.2f}"
            _show(axes, maps[kind, way][index], heldout, limit, name + text)
        line[0].set_ylabel(f"{title(kind + way)}\n\ny", labelpad=2)
        line[-1].set_axis_off()
    _show(grid[0, -1], truth, heldout, limit, f"true images\n{std(inner(truth)):.2f}")
    grid[0, -1].set_axis_on()
    for axes in grid[-1, :-1]:
        axes.set_xlabel("x", labelpad=2)
    bar = page.colorbar(ScalarMappable(Normalize(-limit, limit), SIGNED), ax=grid, extend="both", aspect=20)
    bar.set_label("$\\log_{10} dv$ minus its mean on seen")
    return page


def _show(axes: Axes, values: Tensor, heldout: Tensor, limit: float, title: str) -> None:
    axes.imshow(values.T.numpy(), origin="lower", cmap=SIGNED, vmin=-limit, vmax=limit, interpolation="nearest")
    outline(axes, heldout)
    axes.set_title(title, fontsize=7, pad=2)
    frame(axes)


class Sheet:
    """A figure with axes at fixed positions, in inches from the upper left.

    A layout engine takes half a minute for a hundred axes.
    """

    def __init__(self, width: float, height: float) -> None:
        self.page, self.width, self.height = figure(width, height), width, height
        self.page.set_layout_engine(None)

    def box(self, left: float, top: float, width: float, height: float) -> Axes:
        """Empty axes."""
        bottom = self.height - top - height
        return self.page.add_axes((left / self.width, bottom / self.height, width / self.width, height / self.height))

    def square(self, left: float, top: float, side: float) -> Axes:
        """Empty square axes for an image, in a thin frame."""
        axes = self.box(left, top, side, side)
        frame(axes)
        return axes


MIN_SHARE, MAX_SHARE = 1e-3, 3.0  # of a blank image's error: the range of colours


def draw_share(axes: Any, share: Tensor, region: Tensor, heldout: bool = True) -> Any:
    """Each combination's error as a share of a blank image's, over the plane; the region outlined, dotted if seen."""
    values = share.clamp(MIN_SHARE, MAX_SHARE).numpy().T
    picture = axes.imshow(
        values, origin="lower", cmap="viridis", norm=LogNorm(MIN_SHARE, MAX_SHARE), interpolation="nearest"
    )
    outline(axes, region, seen=not heldout)
    axes.set(xlabel="x", ylabel="y")
    return picture


def add_scale(page: Any, picture: Any, axes: Any, shrink: float = 1.0) -> None:
    """The scale of the colours, with the blank image's error marked."""
    bar = page.colorbar(picture, ax=axes, label="MSE / blank MSE", extend="both", pad=0.02, shrink=shrink)
    bar.ax.axhline(1, color="white", linewidth=1.5)


def draw_dots(axes: Any, at: float, values: Sequence[float], colour: str, width: float = 0.3) -> None:
    """A line at the mean and a dot per seed."""
    if not values:
        return
    mean = sum(values) / len(values)
    axes.plot([at - width, at + width], [mean, mean], color=colour, linewidth=2)
    step = min(0.45, 1.8 / max(len(values) - 1, 1)) * width  # many dots stay beside their neighbours
    spread = [at + step * (i - (len(values) - 1) / 2) for i in range(len(values))]
    axes.plot(spread, values, "o", color=colour, markersize=3.5, markeredgecolor="white", markeredgewidth=0.4)
