"""Errors of a run as shares of a blank image's, when a run has learned what it saw, and reasons for thresholds."""

from collections.abc import Callable

from composcope.experiments.run import Run
from composcope.measures.error import LEARNED
from composcope.study.claim import Excluded
from composcope.study.effects import Number

EQUAL = "0 is no difference"
SMALL = "a tenth of a blank image's error: nine tenths of the bump's energy are drawn"
LARGE = "half of a blank image's error; a decoder that composes has as small an error there as on seen images"
FEW = "fewer than half of the images within 1 pixel of the true position; a decoder that composes has all of them"


def seen_share(run: Run) -> float:
    """Seen MSE / blank MSE."""
    return run.error["seen_mse"] / run.error["blank_mse"]


def heldout_share(run: Run) -> float:
    """Held-out MSE / blank MSE."""
    return run.error["heldout_mse"] / run.error["blank_mse"]


def accuracy(run: Run) -> float:
    """Share of held-out images within 1 pixel of the true position."""
    return run.error["accuracy"]


def learned(run: Run) -> bool:
    """Whether the run draws what it saw; otherwise a failure on held-out images says nothing about composition."""
    return seen_share(run) < LEARNED


def once_learned(number: Number) -> Callable[[Run], float | Excluded | None]:
    """The number of a run that has learned what it saw; any other run is excluded, with the reason."""

    def value(run: Run) -> float | Excluded | None:
        if learned(run):
            return number(run)
        return Excluded(f"seen MSE is {seen_share(run):.2f} of a blank image's, at most {LEARNED} counts as learned")

    return value
