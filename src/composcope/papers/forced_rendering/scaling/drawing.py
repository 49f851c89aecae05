"""Figure 4c page: images needed against the image's side, and the accuracies behind them."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

from composcope.papers.forced_rendering.scaling.search import ENOUGH, CountSearch, Scaling, Summary, over_seeds
from composcope.study.drawing import COLOURS, PAGE, figure
from composcope.study.numbers import Numbers

KINDS = ("bumps", "stripes")
LAWS = {"bumps": 3, "stripes": 1}  # the paper's powers of N
SPREAD = 0.06  # of the side: how far the lines of seeds reach from it
LOOK = {"bumps": (COLOURS[0], "o", "bumps alone"), "stripes": (COLOURS[1], "s", "stripes")}


def draw_scaling(numbers: Numbers) -> Figure:
    """Thresholds on the left, accuracy against the number of images on the right."""
    scaling = Scaling.read(numbers)
    page = figure(PAGE, 2.5)
    grid = page.add_gridspec(1, 3, width_ratios=[1.35, 1, 1])
    _draw_thresholds(page.add_subplot(grid[0, 0]), scaling)
    left = None
    for column, kind in enumerate(KINDS, start=1):
        left = page.add_subplot(grid[0, column], sharey=left)
        _draw_accuracies(left, scaling, kind)
    return page


def _draw_thresholds(axes: Axes, scaling: Scaling) -> None:
    """Mean and interval over seeds, every seed as a thin line, and the paper's power laws through the first mean.

    A size for which some seeds have only a bound has no mean.
    """
    for kind in KINDS:
        colour, marker, label = LOOK[kind]
        thresholds = {size: scaling.threshold(kind, size) for size in scaling.sizes}
        measured = {size: summary for size, summary in thresholds.items() if summary.sign != "?"}
        _draw_seeds(axes, scaling, kind)
        if not measured:
            continue
        power = over_seeds(list(scaling.exponents(kind).values()))
        exact = {size: summary for size, summary in measured.items() if not summary.sign}
        sizes, means = list(exact), np.array([2**summary.mean for summary in exact.values()])
        ends = np.array([[2**summary.low, 2**summary.high] for summary in exact.values()]).reshape(-1, 2).T
        axes.errorbar(
            sizes,
            means,
            np.abs(ends - means),
            color=colour,
            marker=marker,
            markersize=4.5,
            linewidth=1.3,
            capsize=2.5,
            label=f"{label}: {_power(power)}",
        )
        first = min(measured)
        guide = np.array([first, max(scaling.sizes)])
        law = 2 ** measured[first].mean * (guide / first) ** LAWS[kind]
        axes.plot(guide, law, color=colour, linestyle=(0, (2, 2)), linewidth=0.9)
        name = "N" if LAWS[kind] == 1 else f"N$^{LAWS[kind]}$"
        beside = guide[1] * (1 + SPREAD), law[1]
        axes.annotate(name, beside, (3, 0), textcoords="offset points", color=colour, va="center")
    axes.set(xscale="log", xlabel="image side N, pixels", ylabel=f"training images for {ENOUGH:.0%} within 1 pixel")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    _ticks(axes, scaling.sizes)
    axes.margins(0.12)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7, loc="upper left")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.28)  # room for the legend


def _draw_seeds(axes: Axes, scaling: Scaling, kind: str) -> None:
    """One faint line per seed, from the largest count that was not enough to the threshold.

    An arrow up from the cap if that was not enough, down if the smallest count was. Seeds are page side by side. The
    line of a single seed would repeat the interval of the mean.
    """
    colour = LOOK[kind][0]
    for search in scaling.of(kind):
        if not search.finished:
            continue
        side, bounds = search.size * _shift(scaling, search), search.bounds
        if search.threshold is None:
            _arrow(axes, side, search.counts[-1], "$\\uparrow$", colour)
        elif bounds.low == 0:
            _arrow(axes, side, search.threshold, "$\\downarrow$", colour)
        elif len(scaling.of(kind, search.size)) > 1:
            axes.plot([side, side], [bounds.low, bounds.high], color=colour, linewidth=0.9, alpha=0.55)


def _shift(scaling: Scaling, search: CountSearch) -> float:
    """A factor of the side that keeps a seed's line apart from those of the other seeds and of the other kind."""
    seeds = sorted({other.seed for other in scaling.searches})
    place = (seeds.index(search.seed) + 1) / len(seeds)
    return 1.0 + SPREAD * (place if search.kind == KINDS[0] else -place)


def _arrow(axes: Axes, side: float, count: int, sign: str, colour: str) -> None:
    axes.plot(side, count, marker=sign, color=colour, markersize=8, alpha=0.55, markeredgewidth=0)


def _power(power: Summary) -> str:
    """The fitted power of N with its interval."""
    if power.sign == "?":
        return "no exponent"
    if power.sign:
        return f"exponent {'≥' if power.sign == '>=' else '≤'} {power.mean:.1f}"
    return f"exponent {power.mean:.1f} [{power.low:.1f}, {power.high:.1f}]"


def _draw_accuracies(axes: Axes, scaling: Scaling, kind: str) -> None:
    """One line per seed, darker for larger images, as far as the search went."""
    shades = colormaps["viridis"](np.linspace(0.85, 0.0, max(2, len(scaling.sizes))))
    for shade, size in zip(shades, scaling.sizes, strict=False):
        for index, search in enumerate(scaling.of(kind, size)):
            counts, accuracies = zip(*search.tried, strict=True) if search.tried else ((), ())
            label = f"N = {size}" if index == 0 else None
            axes.plot(counts, accuracies, marker=".", markersize=4, linewidth=0.8, color=shade, label=label)
    axes.axhline(ENOUGH, color="#888888", linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    axes.set(xlabel="training images", ylim=(-0.03, 1.05), title=LOOK[kind][2])
    axes.tick_params(labelleft=kind == KINDS[0])
    if kind == KINDS[0]:
        axes.set_ylabel("held-out images within 1 pixel")
        if scaling.of(kind):  # its counts span the most, which leaves the corner free
            axes.legend(frameon=False, fontsize=7, loc="lower right", handlelength=1.2)


def _ticks(axes: Axes, sizes: list[int]) -> None:
    """Ticks at the sizes tried only."""
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
