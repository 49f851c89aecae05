"""A ledger as a chart."""

from matplotlib.axes import Axes

from composcope.diagnosis.drawing import new_axes
from composcope.study.drawing import COLOURS, MARK
from composcope.study.ledger import Ledger

COLUMNS = {False: "does not hold", None: "undetermined", True: "holds"}
TONES = {False: MARK, None: "#888888", True: COLOURS[2]}


def draw_ledger(ledger: Ledger, ax: Axes | None = None) -> Axes:
    """One line per claim, with a point in the column of its outcome."""
    axes = ax or new_axes(4.0, 0.6 + 0.2 * max(len(ledger.judgements), 3))
    columns = list(COLUMNS)
    for row, judgement in enumerate(ledger.judgements):
        axes.axhline(row, color="#dddddd", linewidth=0.5, zorder=0)
        axes.plot(columns.index(judgement.holds), row, "o", color=TONES[judgement.holds])
    axes.set_xticks(range(len(columns)), list(COLUMNS.values()))
    axes.set_yticks(range(len(ledger.judgements)), [f"claim {j.number}" for j in ledger.judgements])
    axes.set(xlim=(-0.5, len(columns) - 0.5), title=ledger.summary())
    axes.title.set_wrap(True)
    axes.invert_yaxis()
    return axes
