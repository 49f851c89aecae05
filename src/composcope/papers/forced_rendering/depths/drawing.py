"""Figure 10, held-out images by depth; the curves and maps of figures 2 and 11 to 14 are in drawing_layers.py."""

import math
from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.papers.forced_rendering.depths.numbers import Gallery, NetworkImages
from composcope.papers.forced_rendering.depths.plan import PAIR
from composcope.papers.forced_rendering.drawing_layers import Sheet
from composcope.papers.forced_rendering.layers import OTHERS
from composcope.study.drawing import MARK, PAGE, show_image


def draw_gallery(gallery: Gallery) -> Figure:
    """The two codes side by side, a row per depth; below them the other decoders. Rings are at the true positions."""
    columns = [[network for network in gallery.networks if network.group == code] for code in PAIR]
    rest = [network for network in gallery.networks if network.group == OTHERS]
    shown, tall = len(gallery.latents), max(map(len, columns))
    label, words, gap, above = 0.65, 0.7, 0.06, 0.32
    side = (PAGE / 2 - label - words) / shown - gap
    tops = [above + index * (side + gap) for index in range(1 + tall)]
    tops += [tops[-1] + 0.15 + index * (side + gap) for index in range(1, 1 + math.ceil(len(rest) / 2))]
    drawn = Sheet(PAGE, tops[-1] + side + 0.2)
    for half, (code, networks) in enumerate(zip(PAIR, columns, strict=True)):
        lefts = [half * PAGE / 2 + label + number * (side + gap) for number in range(shown)]
        _draw_truth([drawn.square(left, tops[0], side) for left in lefts], gallery, code)
        # The other decoders fill the rows below, alternating between the two halves.
        rows = [*zip(tops[1:], networks, strict=False), *zip(tops[1 + tall :], rest[half::2], strict=False)]
        for top, network in rows:
            _draw_network([drawn.square(left, top, side) for left in lefts], network, gallery)
    return drawn.paper


def _draw_truth(row: Sequence[Axes], gallery: Gallery, code: str) -> None:
    for axes, image, (x, y) in zip(row, gallery.truth, gallery.latents.tolist(), strict=True):
        show_image(axes, image)
        axes.set_title(f"({x:g}, {y:g})", fontsize=6.5, pad=2)
    row[0].annotate(f"{code} code", (0, 1), (0, 13), "axes fraction", "offset points", fontweight="bold")
    _write_beside(row, "truth\nat (x, y)", f"within 1 px\nMSE\nseen MSE\nblank: {gallery.blank_mse:.2g}")


def _draw_network(row: Sequence[Axes], network: NetworkImages, gallery: Gallery) -> None:
    for axes, image, (x, y) in zip(row, network.images, gallery.latents.tolist(), strict=True):
        show_image(axes, image)
        axes.plot(x, y, "o", color=MARK, markersize=8, markeredgewidth=0.7, fillstyle="none")
    means = (fmean(values) for values in (network.heldout_mse, network.seen_mse))
    numbers = "\n".join([f"{fmean(network.accuracy):.0%}", *(f"{mean:.2g}" for mean in means)])
    _write_beside(row, network.label.replace(" (", "\n("), numbers)


def _write_beside(row: Sequence[Axes], left: str, right: str) -> None:
    """Text on either side of a row of images."""
    row[0].text(-0.1, 0.5, left, transform=row[0].transAxes, ha="right", va="center", fontsize=6.5)
    row[-1].text(1.1, 0.5, right, transform=row[-1].transAxes, ha="left", va="center", fontsize=6)
