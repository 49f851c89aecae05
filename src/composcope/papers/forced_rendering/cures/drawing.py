"""The overview of the cures: held-out images of each run under the truth."""

import matplotlib
import torch
from matplotlib.figure import Figure

from composcope.figures.style import MARK, STYLE, figure, show_image
from composcope.paper.cures import Block, Cures, cures, plan
from composcope.paper.panel import Panel
from composcope.tasks.base import Images

GAP = 0.25  # between blocks, in rows
LABEL, NOTE, CELL = 1.45, 0.85, 0.62  # inches: names on the left, accuracies on the right, one image


def draw(numbers: Cures) -> Figure:
    """A block of rows a group: the truth, then one row a run; a cross marks where the bump belongs."""
    columns = max(len(block.latents) for block in numbers.blocks)
    rows = [1 + len(block.images) for block in numbers.blocks]
    heights = [height for count in rows for height in [*[1.0] * count, GAP]][:-1]
    drawn = figure(CELL * columns + LABEL + NOTE, 1.04 * CELL * sum(heights) + 0.25)
    with matplotlib.rc_context(STYLE):
        grid = drawn.add_gridspec(len(heights), columns, height_ratios=heights)
        row = 0
        for block in numbers.blocks:
            for name, images in {"truth": block.truth, **block.images}.items():
                low, high = _greys(images)
                panels = [drawn.add_subplot(grid[row, place]) for place in range(len(images))]
                for axes, image, (x, y) in zip(panels, images, block.latents[:, :2].tolist(), strict=True):
                    show_image(axes, image, low, high)
                    if name != "truth":
                        axes.plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
                panels[0].set_ylabel(name, rotation=0, ha="right", va="center")
                panels[-1].annotate(_in_place(block, name), (1.1, 0.5), xycoords="axes fraction", va="center")
                row += 1
            row += 1
    return drawn


def _greys(images: Images) -> tuple[float, float]:
    """Black and white: 0 and 1, or where 98 % of the pixels are, lest a background above 1 hide what is drawn on it."""
    low, high = torch.quantile(images.flatten(), torch.tensor([0.02, 0.98])).tolist()
    return min(0.0, low), max(1.0, high)


def _in_place(block: Block, name: str) -> str:
    """How much of the whole hole is in place: the mean over seeds."""
    if name == "truth":
        return "in place"
    accuracies = block.accuracies[name]
    return f"{sum(accuracies) / len(accuracies):.0%}"


PANELS = (
    Panel(
        name="cures",
        title="The failure and its cures",
        see=(
            "Held-out images under the truth; a cross marks where the bump belongs. On the right, the share of all"
            " held-out bumps drawn within one pixel of their place, the mean over seeds. Each row's greys span its own"
            " values."
        ),
        plan=plan,
        numbers=cures,
        draw=draw,
        no_claim="An overview of our own; the claims rest on figures 3 and 4, which show the same runs.",
    ),
)
