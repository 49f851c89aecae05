"""The error over the latent plane, and one dot per seed: what several figures show in the same way."""

from collections.abc import Sequence
from typing import Any

from matplotlib.colors import LogNorm
from torch import Tensor

from composcope.study.drawing import outline

LEAST, MOST = 1e-3, 3.0  # of a blank image's error: the range of colours


def draw_share(axes: Any, share: Tensor, region: Tensor, withheld: bool = True) -> Any:
    """Each combination's error as a share of a blank image's, over the plane; the region outlined, dotted if seen."""
    shown = share.clamp(LEAST, MOST).numpy().T
    picture = axes.imshow(shown, origin="lower", cmap="viridis", norm=LogNorm(LEAST, MOST), interpolation="nearest")
    outline(axes, region, seen=not withheld)
    axes.set(xlabel="x", ylabel="y")
    return picture


def add_scale(drawn: Any, picture: Any, axes: Any, shrink: float = 1.0) -> None:
    """The scale of the colours, with the blank image's error marked."""
    bar = drawn.colorbar(picture, ax=axes, label="MSE / blank MSE", extend="both", pad=0.02, shrink=shrink)
    bar.ax.axhline(1, color="white", linewidth=1.5)


def draw_dots(axes: Any, at: float, values: Sequence[float], colour: str, width: float = 0.3) -> None:
    """A line at the mean and a dot per seed."""
    if not values:
        return
    mean = sum(values) / len(values)
    axes.plot([at - width, at + width], [mean, mean], color=colour, linewidth=2)
    spread = [at + 0.45 * width * (i - (len(values) - 1) / 2) for i in range(len(values))]
    axes.plot(spread, values, "o", color=colour, markersize=3.5, markeredgecolor="white", markeredgewidth=0.4)
