"""The cures: held-out images of each run under the truth."""

from collections.abc import Mapping

import matplotlib
from matplotlib.figure import Figure

from composcope.figures.style import MARK, STYLE, figure, show_image
from composcope.paper.cures import Samples


def draw(groups: Mapping[str, Mapping[str, Samples]]) -> Figure:
    """A block a group, each with the truth on top and one row a run; a cross marks where the bump belongs."""
    rows = [1 + len(group) for group in groups.values()]
    columns = len(next(iter(next(iter(groups.values())).values())).latents)
    drawn = figure(0.62 * columns + 1.3, 0.68 * sum(rows))
    with matplotlib.rc_context(STYLE):
        blocks = drawn.subfigures(len(groups), 1, height_ratios=rows, squeeze=False)[:, 0]
        for block, group in zip(blocks, groups.values(), strict=True):
            axes = block.subplots(1 + len(group), columns, squeeze=False)
            shown = [
                ("truth", next(iter(group.values())).truth),
                *((name, runs.images) for name, runs in group.items()),
            ]
            latents = next(iter(group.values())).latents
            for row, (name, images) in zip(axes, shown, strict=True):
                row[0].set_ylabel(name, rotation=0, ha="right", va="center")
                for place, image, (x, y) in zip(row, images, latents[:, :2].tolist(), strict=True):
                    show_image(place, image)
                    if name != "truth":
                        place.plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
    return drawn
