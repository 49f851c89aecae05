"""Figure 1, the failure: error over the latent plane, and what is drawn in the hole."""

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from composcope.figures.style import MARK, STYLE, figure, outline, show_image
from composcope.paper.failure import Failure


def draw(runs: Sequence[Failure]) -> Figure:
    """One block a run: the error map on the left, truth above the decoder's image on the right."""
    samples = len(runs[0].latents)
    drawn = figure(6.75, 2.15 * len(runs))
    with matplotlib.rc_context(STYLE):
        for block, numbers in zip(drawn.subfigures(len(runs), 1, squeeze=False)[:, 0], runs, strict=True):
            block.suptitle(numbers.title, x=0.01, ha="left", fontsize=9, fontweight="bold")
            left, right = block.subfigures(1, 2, width_ratios=[1, 1.6])
            _draw_map(left, numbers)
            axes = right.subplots(2, samples, squeeze=False)
            for column in range(samples):
                x, y = numbers.latents[column].tolist()[:2]
                show_image(axes[0, column], numbers.truth[column])
                show_image(axes[1, column], numbers.images[column])
                axes[1, column].plot(x, y, "+", color=MARK, markersize=7, markeredgewidth=1)
                axes[0, column].set_title(f"x = {x:g}, y = {y:g}")
            axes[0, 0].set_ylabel("truth")
            axes[1, 0].set_ylabel("decoder")
    return drawn


def _draw_map(block: Any, numbers: Failure) -> None:
    """The error of every combination, the withheld ones outlined, with the blank image's error on the scale."""
    axes = block.subplots()
    low, high = 1e-5, 1e-2
    shown = numbers.error_map.clamp(low, high).numpy().T
    picture = axes.imshow(shown, origin="lower", cmap="viridis", norm=LogNorm(low, high), interpolation="nearest")
    outline(axes, numbers.heldout_map)
    axes.set(xlabel="x", ylabel="y")
    bar = block.colorbar(picture, ax=axes, label="MSE")
    bar.ax.axhline(numbers.blank_mse, color="white", linewidth=1.5)
    bar.ax.text(
        -0.3, numbers.blank_mse, "blank", ha="right", va="center", fontsize=6, transform=bar.ax.get_yaxis_transform()
    )
