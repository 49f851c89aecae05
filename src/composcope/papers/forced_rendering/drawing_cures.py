"""The overview of the cures drawn: held-out images of each kind of run below the truth."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.factors import Latents
from composcope.study.drawing import MARK, figure, show_image
from composcope.study.numbers import Numbers, Row
from composcope.tasks.base import Images

SPACE = 0.25  # between blocks, in rows
LABEL, NOTE, CELL = 1.45, 0.85, 0.62  # inches: names on the left, accuracies on the right, one image


def draw_cures(numbers: Numbers) -> Figure:
    """Each block of rows: the truth, then one row per kind of run; a plus marks the true position of the bump."""
    blocks = numbers.common["blocks"]
    columns = max(len(block["points"]) for block in blocks)
    rows = [1 + len(block["images"]) for block in blocks]
    heights = [height for count in rows for height in [*[1.0] * count, SPACE]][:-1]
    page = figure(CELL * columns + LABEL + NOTE, 1.04 * CELL * sum(heights) + 0.25)
    grid = page.add_gridspec(len(heights), columns, height_ratios=heights)
    row = 0
    for block in blocks:
        for label, images, note in _lines(numbers, block):
            panels = [page.add_subplot(grid[row, column]) for column in range(len(images))]
            _draw_images(panels, images, None if label == "truth" else block["points"])
            panels[0].set_ylabel(label, rotation=0, ha="right", va="center")
            panels[-1].annotate(note, (1.1, 0.5), xycoords="axes fraction", va="center")
            row += 1
        row += 1  # the space between blocks
    return page


def _lines(numbers: Numbers, block: Row) -> list[tuple[str, Images, str]]:
    """What each row of a block shows: its label, its images, and the mean accuracy over seeds."""
    lines = [("truth", block["truth"], "within\n1 pixel")]
    for kind, images in block["images"].items():
        accuracies = numbers.column("accuracy", kind)
        lines.append((kind, images, f"{sum(accuracies) / len(accuracies):.0%}"))
    return lines


def _draw_images(panels: list[Axes], images: Images, positions: Latents | None) -> None:
    """A row of images on one grey scale, with a plus at the positions if there are any."""
    low, high = grey_range(images)
    for axes, image in zip(panels, images, strict=True):
        show_image(axes, image, low, high)
    if positions is not None:
        for axes, (x, y) in zip(panels, positions[:, :2].tolist(), strict=True):
            axes.plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)


def grey_range(images: Images) -> tuple[float, float]:
    """Black and white: 0 and 1, or beyond if 2 % of the pixels are, so that a bright background hides nothing."""
    low, high = torch.quantile(images.flatten(), torch.tensor([0.02, 0.98])).tolist()
    return min(0.0, low), max(1.0, high)
