"""The verdict over training as a figure."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.monitor.monitor import Moment
from composcope.study.drawing import COLOURS, PAGE, figure

# The colours that the page of a diagnosis has for them.
CLASS_COLOURS = {
    "composer": "#009E73",
    "wrong combination": "#0072B2",
    "superposer": "#D55E00",
    "nearest seen": "#56B4E9",
    "additive": "#B8A000",
    "additive cross": "#E69F00",
    "other": "#CC79A7",
    "blank": "#9A9A9A",
}


def drawn(moments: Sequence[Moment], title: str = "") -> Figure:
    """Three panels over training: shares of what held-out images show, score and controls, and each factor."""
    page = figure(PAGE, 2.9)
    if title:
        page.suptitle(title)
    shares, score, factors = page.subplots(1, 3)
    _shares(shares, moments)
    _score(score, moments)
    _factors(factors, moments)
    for axes in (shares, score, factors):
        axes.set(xlabel="step", ylim=(-0.02, 1.02))
        axes.margins(x=0)
    return page


def _shares(axes: Axes, moments: Sequence[Moment]) -> None:
    """Stacked shares of every class that occurs."""
    steps = [moment.step for moment in moments]
    names = [name for name in CLASS_COLOURS if any(moment.verdict.shares[name] > 0 for moment in moments)]
    rows = [[moment.verdict.shares[name] for moment in moments] for name in names]
    axes.stackplot(steps, rows, labels=names, colors=[CLASS_COLOURS[name] for name in names], step=None)
    axes.set(title="held-out images", ylabel="share")
    axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, frameon=False)


def _score(axes: Axes, moments: Sequence[Moment]) -> None:
    """The score with its interval, and the share of seen images that are right; no score before it has learned."""
    steps = [moment.step for moment in moments]
    seen = [moment.verdict.seen_shares.get("composer", math.nan) for moment in moments]
    axes.plot(steps, seen, "--", color="#666666", lw=1, label="seen images")
    learned = [moment for moment in moments if moment.verdict.score is not None]
    scores = [moment.verdict.shares["composer"] for moment in learned]
    axes.plot(
        [m.step for m in learned], scores, color=CLASS_COLOURS["composer"], label="held-out images, 95 % interval"
    )
    intervals = [(moment.step, moment.verdict.interval) for moment in learned if moment.verdict.interval is not None]
    if intervals:
        low, high = zip(*(interval for _, interval in intervals), strict=True)
        axes.fill_between([step for step, _ in intervals], low, high, color=CLASS_COLOURS["composer"], alpha=0.2, lw=0)
    waiting = [moment.step for moment in moments if moment.verdict.score is None]
    if waiting:
        end = min((moment.step for moment in learned), default=waiting[-1])
        axes.axvspan(waiting[0], end, color="#F0F0F0", lw=0, zorder=0)
        axes.text(waiting[0], 0.5, " has not\n learned", fontsize=6, va="center", color="#666666")
    axes.set(title="composed")
    axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.22), frameon=False)


def _factors(axes: Axes, moments: Sequence[Moment]) -> None:
    """The share of held-out images in which each factor is right."""
    names = list(moments[0].verdict.factors)
    # Lines of factors that agree would hide each other: the later ones are dashed.
    for number, name in enumerate(names):
        axes.plot(
            [moment.step for moment in moments],
            [moment.verdict.factors[name] for moment in moments],
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", ":")[number % 3],
            label=name,
        )
    axes.set(title="factor is right, held-out")
    axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, frameon=False)
