"""The figures: withheld images that are fully right, by treatment and world, and right factor by factor."""

import textwrap

from matplotlib.figure import Figure

from composcope.papers.cures_beyond.numbers import Outcome, Outcomes
from composcope.study.drawing import COLOURS, PAGE, figure
from composcope.study.statistics import interval

LIGHT = 0.6  # below this share, text on a cell is white


def draw_cells(outcomes: Outcomes) -> Figure:
    """One cell per treatment and world, coloured by the mean share; below it, the 95 % interval over seeds."""
    worlds, treatments = outcomes.worlds, outcomes.treatments
    drawn = figure(PAGE, 0.9 + 0.33 * len(treatments))
    axes = drawn.subplots()
    for cell in outcomes.cells:
        column, row = worlds.index(cell.world), treatments.index(cell.treatment)
        mean = sum(cell.fully) / len(cell.fully)
        learned = sum(cell.learned) > len(cell.learned) / 2
        colour = _colour(mean) if learned else "#DDDDDD"
        axes.fill_between([column - 0.48, column + 0.48], row - 0.45, row + 0.45, color=colour, linewidth=0)
        dark = learned and mean < LIGHT
        axes.text(column, row, _text(cell), ha="center", va="center", fontsize=7, color="white" if dark else "black")
    axes.set_xlim(-0.5, len(worlds) - 0.5)
    axes.set_ylim(len(treatments) - 0.5, -0.5)
    axes.set_xticks(range(len(worlds)), [textwrap.fill(world, 14) for world in worlds])
    axes.set_yticks(range(len(treatments)), treatments)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return drawn


def draw_factors(outcomes: Outcomes) -> Figure:
    """For each world, one line per treatment: a dot per factor at the mean share, with its 95 % interval."""
    worlds, treatments = outcomes.worlds, outcomes.treatments
    drawn = figure(PAGE, 0.9 + 0.26 * len(treatments))
    panels = drawn.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
    for axes, world in zip(panels, worlds, strict=True):
        own = [cell for cell in outcomes.cells if cell.world == world]
        names = list(own[0].factors)
        for number, name in enumerate(names):
            for cell in own:
                height = treatments.index(cell.treatment) + 0.22 * (number - (len(names) - 1) / 2)
                mean, low, high = interval(cell.factors[name])
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
    drawn.suptitle("share of withheld images that show the factor's true value", fontsize=8)
    return drawn


def _colour(share: float) -> tuple[float, float, float, float]:
    from matplotlib import colormaps

    return tuple(colormaps["viridis"](share))  # type: ignore[return-value]


def _text(cell: Outcome) -> str:
    mean, low, high = interval(cell.fully)
    missing = len(cell.learned) - sum(cell.learned)
    note = f"\n{missing} of {len(cell.learned)} not learned" if missing else ""
    spread = "" if low is None or high is None else f" [{max(0.0, low):.2f}, {min(1.0, high):.2f}]"
    return f"{mean:.2f}{spread}{note}"
