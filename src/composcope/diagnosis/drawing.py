"""A diagnosis as a chart."""

from matplotlib.axes import Axes as Axes

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.wording import headline

HELDOUT, SEEN = "#D55E00", "#0072B2"


def draw_shares(diagnosis: Diagnosis, ax: Axes | None = None) -> Axes:
    """What the held-out images are, class by class, beside the same classification of seen images."""
    axes = ax or new_axes(4.5, 2.6)
    verdict = diagnosis.verdict
    if verdict is None:
        raise ValueError("nothing is held out, so there is no verdict to plot")
    kinds = [kind for kind in verdict.shares if verdict.shares[kind] or verdict.seen_shares.get(kind)]
    for offset, shares, colour, label in (
        (-0.2, verdict.shares, HELDOUT, "held-out"),
        (0.2, verdict.seen_shares, SEEN, "seen"),
    ):
        rows = [index + offset for index in range(len(kinds))]
        axes.barh(rows, [100 * shares.get(kind, 0.0) for kind in kinds], 0.4, color=colour, label=label)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="% of images", title=headline(verdict))
    axes.legend()
    return axes


def new_axes(width: float, height: float) -> Axes:
    """Axes in a new figure of pyplot's, which notebooks show by themselves."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
