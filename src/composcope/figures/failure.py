"""Figure 1, the failure: error over the latent plane, and what is drawn in the hole."""

from collections.abc import Sequence

import matplotlib
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from composcope.figures.style import MARK, STYLE, figure, outline, show_image
from composcope.paper.failure import Failure


def draw(runs: Sequence[Failure]) -> Figure:
    """One block a run: the error map on the left, truth above the decoder's image on the right."""
    samples = len(runs[0].latents)
    drawn = figure(6.75, 2.5 * len(runs))
    with matplotlib.rc_context(STYLE):
        for block, numbers in zip(drawn.subfigures(len(runs), 1, squeeze=False)[:, 0], runs, strict=True):
            left, right = block.subfigures(1, 2, width_ratios=[1, 1.45])
            _draw_map(left, numbers)
            axes = right.subplots(2, samples, squeeze=False)
            for column in range(samples):
                x, y = numbers.latents[column].tolist()[:2]
                show_image(axes[0, column], numbers.truth[column])
                show_image(axes[1, column], numbers.images[column])
                axes[1, column].plot(x, y, "+", color=MARK, markersize=7, markeredgewidth=1)
                axes[0, column].set_title(f"({x:g}, {y:g})")
            axes[0, 0].set_ylabel("truth")
            axes[1, 0].set_ylabel("decoder")
    return drawn


def _draw_map(block: Figure, numbers: Failure) -> None:
    axes = block.subplots()
    low, high = 1e-5, 1e-1
    shown = numbers.error_map.clamp(low, high).numpy().T
    picture = axes.imshow(shown, origin="lower", cmap="viridis", norm=LogNorm(low, high), interpolation="nearest")
    outline(axes, numbers.heldout_map)
    axes.set(xlabel="x", ylabel="y", title=f"{numbers.title}: error, outlined = withheld")
    bar = block.colorbar(picture, ax=axes, label="MSE", shrink=0.9)
    bar.ax.axhline(numbers.blank_mse, color="white", linewidth=1.5)
    bar.ax.annotate(
        "blank",
        (0.5, numbers.blank_mse),
        xycoords=("axes fraction", "data"),
        ha="center",
        va="bottom",
        fontsize=5.5,
        color="white",
    )
