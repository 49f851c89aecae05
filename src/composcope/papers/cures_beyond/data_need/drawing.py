"""The figure: withheld images that are right by the number of combinations shown, and how many are needed."""

import math
from collections.abc import Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from composcope.papers.cures_beyond.data_need.numbers import ENOUGH, DataNeed, Point
from composcope.study.drawing import COLOURS, PAGE, figure

KINDS = {False: ("combinations alone", COLOURS[0], "o"), True: ("with single factors", COLOURS[1], "s")}
GREY = "#999999"


def draw_data_need(need: DataNeed) -> Figure:
    """One curve per kind of training set and number of factors, then the number needed."""
    drawn = figure(PAGE, 2.3)
    *curves, last = drawn.subplots(1, len(need.factors) + 1)
    largest = [need.curve(factors, False)[-1].combinations for factors in need.factors]
    ticks = [min(point.combinations for point in need.points), *largest]
    for axes, factors in zip(curves, need.factors, strict=True):
        axes.axhline(ENOUGH, color=GREY, linewidth=0.6, linestyle=":")
        points = need.curve(factors, False)
        axes.axvline(points[0].seen, color=GREY, linewidth=0.8, linestyle="--")
        for single in KINDS:
            _curve(axes, need.curve(factors, single), single)
        axes.set_title(f"{factors} factors\n{points[0].world}")
        axes.set_xscale("log")
        axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
        axes.set_xticks(ticks, [str(count) for count in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("combinations shown")
        axes.set_ylim(-0.04, 1.04)
        axes.set_yticks([0, 0.5, ENOUGH, 1], ["0", "0.5", f"{ENOUGH:g}", "1"] if axes is curves[0] else [""] * 4)
    curves[0].set_ylabel("withheld images fully right")
    _needed(last, need)
    drawn.legend(*curves[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return drawn


def _curve(axes: Axes, points: Sequence[Point], single: bool) -> None:
    """The mean over seeds, open where most seeds have not learned what they were shown, and a dot per seed."""
    label, colour, marker = KINDS[single]
    counts, means = [p.combinations for p in points], [sum(p.fully) / len(p.fully) for p in points]
    axes.plot(counts, means, color=colour, linewidth=1.2, marker=marker, markersize=4, label=label)
    for point, mean in zip(points, means, strict=True):
        axes.plot([point.combinations] * len(point.fully), point.fully, ".", color=colour, markersize=3, alpha=0.5)
        if 2 * sum(point.learned) <= len(point.learned):
            axes.plot([point.combinations], [mean], marker, color=colour, markerfacecolor="white", markersize=4)


def _needed(axes: Axes, need: DataNeed) -> None:
    """A mark per seed at the smallest number that was enough, a triangle where all were not; lines at the medians."""
    for single, (_, colour, marker) in KINDS.items():
        middles = []
        for factors in need.factors:
            numbers = need.needed(factors, single)
            most = need.curve(factors, single)[-1].combinations
            place = factors + (0.16 if single else -0.16)
            for seed, number in enumerate(sorted(numbers)):
                spot = place + 0.08 * (seed - (len(numbers) - 1) / 2)
                reached = math.isfinite(number)
                axes.plot([spot], [number if reached else most], marker if reached else "^", color=colour, markersize=3)
            middles.append((place, median(numbers)))
        known = [(place, number) for place, number in middles if math.isfinite(number)]
        axes.plot([place for place, _ in known], [number for _, number in known], color=colour, linewidth=1)
    seen = [need.curve(factors, False)[0].seen for factors in need.factors]
    axes.plot(need.factors, seen, color=GREY, linestyle="--", linewidth=0.8)
    axes.annotate("all seen", (need.factors[0], seen[0]), (0, 7), textcoords="offset points", ha="center", fontsize=7)
    axes.set_yscale("log", base=2)
    ticks = [min(point.combinations for point in need.points), *seen]
    axes.set_ylim(ticks[0] / 1.2, ticks[-1] * 1.3)
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(need.factors)
    axes.set_xlim(need.factors[0] - 0.5, need.factors[-1] + 0.5)
    axes.set_xlabel("factors")
    axes.set_title(f"combinations needed\nfor {ENOUGH:g}")
