"""The cures: held-out images of each run under the truth."""

from collections.abc import Mapping

import matplotlib
from matplotlib.figure import Figure

from composcope.figures.style import MARK, STYLE, figure, show_image
from composcope.paper.cures import Samples

GAP = 0.2  # between groups, in rows


def draw(groups: Mapping[str, Mapping[str, Samples]]) -> Figure:
    """A block of rows a group: the truth, then one row a run; a cross marks where the bump belongs."""
    first = [next(iter(group.values())) for group in groups.values()]
    columns = len(first[0].latents)
    heights = [height for group in groups.values() for height in [1.0] * (1 + len(group)) + [GAP]][:-1]
    drawn = figure(0.62 * columns + 1.5, 0.64 * sum(heights))
    with matplotlib.rc_context(STYLE):
        grid = drawn.add_gridspec(len(heights), columns, height_ratios=heights)
        row = 0
        for group, sample in zip(groups.values(), first, strict=True):
            lines = [("truth", sample.truth), *((name, run.images) for name, run in group.items())]
            for name, images in lines:
                for place, (image, (x, y)) in enumerate(zip(images, sample.latents[:, :2].tolist(), strict=True)):
                    axes = drawn.add_subplot(grid[row, place])
                    show_image(axes, image)
                    if place == 0:
                        axes.set_ylabel(name, rotation=0, ha="right", va="center")
                    if name != "truth":
                        axes.plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
                row += 1
            row += 1
    return drawn
