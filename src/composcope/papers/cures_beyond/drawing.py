"""The figures drawn: what is right by treatment, world and factor, and how many combinations are needed."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from composcope.study.drawing import COLOURS, PAGE, figure
from composcope.study.numbers import Numbers, Rows
from composcope.study.statistics import interval

ENOUGH = 0.9
LIGHT = 0.6  # below this share, text on a cell is white


def draw_cells(numbers: Numbers) -> Figure:
    """One cell per treatment and world, coloured by the mean share; below it, the 95 % interval over seeds."""
    worlds, treatments = (list(dict.fromkeys(numbers.column(name))) for name in ("world", "treatment"))
    page = figure(PAGE, 0.9 + 0.33 * len(treatments))
    axes = page.subplots()
    for kind in numbers.kinds:
        runs, shares = numbers.of(kind), numbers.column("fully right", kind)
        column, row = worlds.index(runs[0]["world"]), treatments.index(runs[0]["treatment"])
        mean = sum(shares) / len(shares)
        unlearned = sum(not run["learned"] for run in runs)
        learned = unlearned < len(runs) / 2
        colour = _colour(mean) if learned else "#DDDDDD"
        axes.fill_between([column - 0.48, column + 0.48], row - 0.45, row + 0.45, color=colour, linewidth=0)
        dark = learned and mean < LIGHT
        axes.text(
            column,
            row,
            _text(shares, unlearned),
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else "black",
        )
    axes.set_xlim(-0.5, len(worlds) - 0.5)
    axes.set_ylim(len(treatments) - 0.5, -0.5)
    axes.set_xticks(range(len(worlds)), [textwrap.fill(world, 14) for world in worlds])
    axes.set_yticks(range(len(treatments)), treatments)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return page


def draw_factors(numbers: Numbers) -> Figure:
    """For each world, one line per treatment: a dot per factor at the mean share, with its 95 % interval."""
    worlds, treatments = (list(dict.fromkeys(numbers.column(name))) for name in ("world", "treatment"))
    page = figure(PAGE, 0.9 + 0.26 * len(treatments))
    panels = page.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
    for axes, world in zip(panels, worlds, strict=True):
        cells = [runs for runs in map(numbers.of, numbers.kinds) if runs[0]["world"] == world]
        names = list(cells[0][0]["factors"])
        for number, name in enumerate(names):
            for runs in cells:
                height = treatments.index(runs[0]["treatment"]) + 0.22 * (number - (len(names) - 1) / 2)
                mean, low, high = interval([run["factors"][name] for run in runs])
                axes.plot([max(0, low or 0.0), min(1, high or 0.0)], [height] * 2, color=COLOURS[number], linewidth=0.8)
                axes.plot([mean], [height], "o", color=COLOURS[number], markersize=3)
            axes.plot([], [], "o", color=COLOURS[number], markersize=3, label=name)
        axes.set_title(textwrap.fill(world, 14))
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 1])
        axes.grid(axis="y", color="#EEEEEE")
        axes.set_axisbelow(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), fontsize=6, frameon=False, handletextpad=0.1)
    panels[0].set_ylim(len(treatments) - 0.5, -0.5)
    panels[0].set_yticks(range(len(treatments)), treatments)
    page.suptitle("share of withheld images that show the factor's true value", fontsize=8)
    return page


def _colour(share: float) -> tuple[float, float, float, float]:
    from matplotlib import colormaps

    return tuple(colormaps["viridis"](share))  # type: ignore[return-value]


def _text(shares: Sequence[float], unlearned: int) -> str:
    mean, low, high = interval(shares)
    note = f"\n{unlearned} of {len(shares)} not learned" if unlearned else ""
    spread = "" if low is None or high is None else f" [{max(0.0, low):.2f}, {min(1.0, high):.2f}]"
    return f"{mean:.2f}{spread}{note}"


KINDS = {False: ("combinations alone", COLOURS[0], "o"), True: ("with single factors", COLOURS[1], "s")}
GREY = "#999999"


def curve(numbers: Numbers, factors: int, single: bool) -> list[Rows]:
    """The runs of the training sets of one kind, the smallest first."""
    sets = [numbers.of(kind) for kind in numbers.kinds]
    own = [runs for runs in sets if (runs[0]["number of factors"], runs[0]["single"]) == (factors, single)]
    return sorted(own, key=lambda runs: runs[0]["combinations"])


def needed(sets: Sequence[Rows]) -> list[float]:
    """For each seed the smallest tried number of combinations with `ENOUGH` right; infinite if there is none."""
    return [
        min((float(run["combinations"]) for run in runs if run["fully right"] >= ENOUGH), default=math.inf)
        for runs in zip(*sets, strict=False)
    ]


def draw_data_need(numbers: Numbers) -> Figure:
    """One curve per kind of training set and number of factors, then the number needed."""
    factors = sorted(set(numbers.column("number of factors")))
    alone = {count: curve(numbers, count, False) for count in factors}
    page = figure(PAGE, 2.3)
    *curves, last = page.subplots(1, len(factors) + 1)
    smallest = min(numbers.column("combinations"))
    ticks = [smallest, *(sets[-1][0]["combinations"] for sets in alone.values())]
    for axes, count in zip(curves, factors, strict=True):
        first = alone[count][0][0]
        axes.axhline(ENOUGH, color=GREY, linewidth=0.6, linestyle=":")
        axes.axvline(first["of"], color=GREY, linewidth=0.8, linestyle="--")
        for single in KINDS:
            _curve(axes, curve(numbers, count, single), single)
        axes.set_title(f"{count} factors\n{first['world']}")
        axes.set_xscale("log")
        axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("combinations shown")
        axes.set_ylim(-0.04, 1.04)
        axes.set_yticks([0, 0.5, ENOUGH, 1], ["0", "0.5", f"{ENOUGH:g}", "1"] if axes is curves[0] else [""] * 4)
    curves[0].set_ylabel("withheld images fully right")
    _needed(last, numbers, {count: sets[0][0]["of"] for count, sets in alone.items()}, smallest)
    page.legend(*curves[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return page


def _curve(axes: Axes, sets: Sequence[Rows], single: bool) -> None:
    """The mean over seeds, open where most seeds have not learned what they were shown, and a dot per seed."""
    label, colour, marker = KINDS[single]
    counts = [runs[0]["combinations"] for runs in sets]
    shares = [[run["fully right"] for run in runs] for runs in sets]
    means = [sum(each) / len(each) for each in shares]
    axes.plot(counts, means, color=colour, linewidth=1.2, marker=marker, markersize=4, label=label)
    for runs, count, each, mean in zip(sets, counts, shares, means, strict=True):
        axes.plot([count] * len(each), each, ".", color=colour, markersize=3, alpha=0.5)
        if 2 * sum(run["learned"] for run in runs) <= len(runs):
            axes.plot([count], [mean], marker, color=colour, markerfacecolor="white", markersize=4)


def _needed(axes: Axes, numbers: Numbers, seen: Mapping[int, int], smallest: int) -> None:
    """A mark per seed at the smallest number that was enough, a triangle where all were not; lines at the medians.

    - `seen`: how many combinations are not held out, by the number of factors.
    """
    factors = list(seen)
    for single, (_, colour, marker) in KINDS.items():
        middles = []
        for count in factors:
            sets = curve(numbers, count, single)
            counts, highest = needed(sets), sets[-1][0]["combinations"]
            place = count + (0.16 if single else -0.16)
            for seed, number in enumerate(sorted(counts)):
                spot = place + 0.08 * (seed - (len(counts) - 1) / 2)
                reached = math.isfinite(number)
                mark = marker if reached else "^"
                axes.plot([spot], [number if reached else highest], mark, color=colour, markersize=3)
            middles.append((place, median(counts)))
        finite = [(place, number) for place, number in middles if math.isfinite(number)]
        axes.plot([place for place, _ in finite], [number for _, number in finite], color=colour, linewidth=1)
    axes.plot(factors, list(seen.values()), color=GREY, linestyle="--", linewidth=0.8)
    first = (factors[0], seen[factors[0]])
    axes.annotate("all seen", first, (0, 7), textcoords="offset points", ha="center", fontsize=7)
    axes.set_yscale("log", base=2)
    ticks = [smallest, *seen.values()]
    axes.set_ylim(ticks[0] / 1.2, ticks[-1] * 1.3)
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(factors)
    axes.set_xlim(factors[0] - 0.5, factors[-1] + 0.5)
    axes.set_xlabel("factors")
    axes.set_title(f"combinations needed\nfor {ENOUGH:g}")
