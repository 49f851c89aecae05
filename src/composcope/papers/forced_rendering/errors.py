"""Errors of a run as shares of a blank image's, and reasons for thresholds."""

from composcope.runs.run import Run

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
