"""Figure 4c: images needed against the image's side, and the accuracies from which they were found."""

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

from composcope.figures.style import COLOURS, PAGE, STYLE, figure
from composcope.paper.panel import Panel
from composcope.paper.scaling import ENOUGH, KINDS, LAWS, Scaling, Summary, cells, needed, over_seeds, scaling

LOOK = {"bumps": (COLOURS[0], "o", "bumps alone"), "stripes": (COLOURS[1], "s", "stripes")}


def draw(numbers: Scaling) -> Figure:
    """Thresholds on the left, accuracy against the number of images on the right."""
    drawn = figure(PAGE, 2.5)
    with matplotlib.rc_context(STYLE):
        grid = drawn.add_gridspec(1, 3, width_ratios=[1.35, 1, 1])
        _thresholds(drawn.add_subplot(grid[0, 0]), numbers)
        left = None
        for place, kind in enumerate(KINDS):
            left = drawn.add_subplot(grid[0, 1 + place], sharey=left)
            _accuracies(left, numbers, kind)
    return drawn


def _thresholds(axes: Axes, numbers: Scaling) -> None:
    """Mean and interval over seeds, every seed as a small mark, and the paper's power laws through the first mean.

    A size where some seeds have only a bound has no mean.
    """
    for kind in KINDS:
        colour, marker, label = LOOK[kind]
        shown = {size: numbers.needed(kind, size) for size in numbers.sizes}
        known = {size: one for size, one in shown.items() if one.sign != "?"}
        _seeds(axes, numbers, kind)
        if not known:
            continue
        power = over_seeds(list(numbers.exponents(kind).values()))
        exact = {size: one for size, one in known.items() if not one.sign}
        sizes, means = list(exact), np.array([2**one.mean for one in exact.values()])
        ends = np.array([[2**one.low, 2**one.high] for one in exact.values()]).reshape(-1, 2).T
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
        first = min(known)
        guide = np.array([first, max(numbers.sizes)])
        law = 2 ** known[first].mean * (guide / first) ** LAWS[kind]
        axes.plot(guide, law, color=colour, linestyle=(0, (2, 2)), linewidth=0.9)
        name = "N" if LAWS[kind] == 1 else f"N$^{LAWS[kind]}$"
        axes.annotate(name, (guide[1], law[1]), (3, 0), textcoords="offset points", color=colour, va="center")
    axes.set(xscale="log", xlabel="image side N, pixels", ylabel=f"training images for {ENOUGH:.0%} in place")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    _ticks(axes, numbers.sizes)
    axes.margins(0.12)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7, loc="upper left")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.28)  # room for the legend


def _seeds(axes: Axes, numbers: Scaling, kind: str) -> None:
    """One faint mark a seed; an arrow up from the cap where it was not enough, down where the least count was."""
    colour, marker, _ = LOOK[kind]
    for search in numbers.of(kind):
        if search.finished:
            unreached = search.threshold is None
            count = search.counts[-1] if search.threshold is None else search.threshold
            sign = "$\\uparrow$" if unreached else "$\\downarrow$" if count == search.counts[0] else marker
            size = 8 if sign != marker else 3.5
            axes.plot(search.size, count, marker=sign, color=colour, markersize=size, alpha=0.55, markeredgewidth=0)


def _power(found: Summary) -> str:
    """The fitted power of N with its interval."""
    if found.sign == "?":
        return "no exponent"
    if found.sign:
        return f"exponent {'≥' if found.sign == '>=' else '≤'} {found.mean:.1f}"
    return f"exponent {found.mean:.1f} [{found.low:.1f}, {found.high:.1f}]"


def _accuracies(axes: Axes, numbers: Scaling, kind: str) -> None:
    """A line a seed, darker for larger images, as far as the search went."""
    shades = colormaps["viridis"](np.linspace(0.85, 0.0, max(2, len(numbers.sizes))))
    for shade, size in zip(shades, numbers.sizes, strict=False):
        for place, search in enumerate(numbers.of(kind, size)):
            tried = search.counts[: len(search.accuracies)]
            named = f"N = {size}" if place == 0 else None
            axes.plot(tried, search.accuracies, marker=".", markersize=4, linewidth=0.8, color=shade, label=named)
    axes.axhline(ENOUGH, color="#888888", linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    axes.set(xlabel="training images", ylim=(-0.03, 1.05), title=LOOK[kind][2])
    axes.tick_params(labelleft=kind == KINDS[0])
    if kind == KINDS[0]:
        axes.set_ylabel("held-out images in place")
    elif numbers.of(kind):
        axes.legend(frameon=False, fontsize=7, loc="lower right", handlelength=1.2)


def _ticks(axes: Axes, sizes: list[int]) -> None:
    """The sizes tried, and no others."""
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


PANELS = (
    Panel(
        name="4c",
        title="Images needed against image size",
        see=(
            "How steeply each line rises: bumps alone against the dashed cube, stripes against the dashed straight"
            " line. Right: the accuracies behind it, one line a seed."
        ),
        plan=cells,
        numbers=scaling,
        draw=draw,
        needed=needed,
        diagnosed=False,
    ),
)
