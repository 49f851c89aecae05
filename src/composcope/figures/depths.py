"""Figures 2 and 10 to 14: held-out images by depth, and the list of pictures; curves and maps are in layers.py."""

import math
from collections.abc import Sequence
from statistics import fmean

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.figures.layers import Sheet, draw_profiles, draw_relative, draw_volumes
from composcope.figures.style import MARK, PAGE, STYLE, show_image
from composcope.paper import depths, layers
from composcope.paper.depths import Drawn, Gallery
from composcope.paper.layers import OTHERS
from composcope.paper.panel import Panel


def draw_gallery(gallery: Gallery) -> Figure:
    """The two codes side by side, a row a depth; below them the other decoders. Rings are at the true places."""
    columns = [[network for network in gallery.networks if network.group == code] for code in depths.PAIR]
    rest = [network for network in gallery.networks if network.group == OTHERS]
    shown, tall = len(gallery.latents), max(map(len, columns))
    label, words, gap, above = 0.65, 0.7, 0.06, 0.32
    side = (PAGE / 2 - label - words) / shown - gap
    tops = [above + place * (side + gap) for place in range(1 + tall)]
    tops += [tops[-1] + 0.15 + place * (side + gap) for place in range(1, 1 + math.ceil(len(rest) / 2))]
    drawn = Sheet(PAGE, tops[-1] + side + 0.2)
    with matplotlib.rc_context(STYLE):
        for half, (code, networks) in enumerate(zip(depths.PAIR, columns, strict=True)):
            lefts = [half * PAGE / 2 + label + number * (side + gap) for number in range(shown)]
            _draw_truth([drawn.square(left, tops[0], side) for left in lefts], gallery, code)
            placed = [*zip(tops[1:], networks, strict=False), *zip(tops[1 + tall :], rest[half::2], strict=False)]
            for top, network in placed:
                _draw_network([drawn.square(left, top, side) for left in lefts], network, gallery)
    return drawn.paper


def _draw_truth(row: Sequence[Axes], gallery: Gallery, code: str) -> None:
    for axes, image, (x, y) in zip(row, gallery.truth, gallery.latents.tolist(), strict=True):
        show_image(axes, image)
        axes.set_title(f"({x:g}, {y:g})", fontsize=6.5, pad=2)
    row[0].annotate(f"{code} code", (0, 1), (0, 13), "axes fraction", "offset points", fontweight="bold")
    _tell(row, "truth\nat (x, y)", f"within 1 px\nMSE\nseen MSE\nblank: {gallery.blank_mse:.2g}")


def _draw_network(row: Sequence[Axes], network: Drawn, gallery: Gallery) -> None:
    for axes, image, (x, y) in zip(row, network.images, gallery.latents.tolist(), strict=True):
        show_image(axes, image)
        axes.plot(x, y, "o", color=MARK, markersize=8, markeredgewidth=0.7, fillstyle="none")
    means = (fmean(values) for values in (network.heldout_mse, network.seen_mse))
    numbers = "\n".join([f"{fmean(network.accuracy):.0%}", *(f"{mean:.2g}" for mean in means)])
    _tell(row, network.label.replace(" (", "\n("), numbers)


def _tell(row: Sequence[Axes], left: str, right: str) -> None:
    """Words on either side of a row of images."""
    row[0].text(-0.1, 0.5, left, transform=row[0].transAxes, ha="right", va="center", fontsize=6.5)
    row[-1].text(1.1, 0.5, right, transform=row[-1].transAxes, ha="left", va="center", fontsize=6)


PANELS = (
    Panel(
        "2a",
        "Linear probes by layer, bump code",
        "How well a linear readout tells x and y from each layer, beside networks before training and true images.",
        depths.bump_cnns,
        layers.probes,
        draw_relative,
    ),
    Panel(
        "2b",
        "Linear probes by layer, rate code",
        "The same for the rate code, whose two numbers have to be expanded most.",
        depths.rate_cnns,
        layers.probes,
        draw_relative,
    ),
    Panel(
        "2c",
        "Factorization by layer, bump code",
        "How near x and y stay to right angles in each layer; grey lines are the same networks before training.",
        depths.bump_cnns,
        layers.factorizations,
        draw_relative,
    ),
    Panel(
        "2d",
        "Factorization by layer, rate code",
        "Where along the layers the score falls, and by how much at once, for shallow and for deep networks.",
        depths.rate_cnns,
        layers.factorizations,
        draw_relative,
    ),
    Panel(
        "2e",
        "Volume by layer, bump code",
        "Whether the held-out square (outlined) gets less volume (purple) or more (green) than what was seen.",
        depths.bump_cnn,
        layers.volumes,
        draw_volumes,
    ),
    Panel(
        "2f",
        "Volume by layer, rate code",
        "The same for the rate code, whose volume is even at the input.",
        depths.rate_cnn,
        layers.volumes,
        draw_volumes,
    ),
    Panel(
        "10",
        "Held-out images by depth",
        "What networks of every depth draw at four held-out points; rings mark where the bump belongs.",
        depths.with_others,
        depths.gallery,
        draw_gallery,
        no_claim="The paper shows it as an illustration; that every code fails is claim 1.",
    ),
    Panel(
        "11",
        "Volume by layer, CNNs of all depths and other decoders",
        "In which layers the held-out square begins to differ from what was seen, and whether depth changes that.",
        depths.with_others,
        layers.volumes,
        draw_volumes,
    ),
    Panel(
        "12",
        "Probes and factorization, CNNs of all depths and other decoders",
        "Whether the scores fall at a fixed layer or towards the image; grey lines are the networks before training.",
        depths.with_others,
        layers.profiles,
        draw_profiles,
    ),
    Panel(
        "13",
        "Volume by layer, MLPs of all depths",
        "Whether MLPs give the held-out square less volume or more, beside the CNNs of figure 11.",
        depths.mlps,
        layers.volumes,
        draw_volumes,
    ),
    Panel(
        "14",
        "Probes and factorization, MLPs of all depths",
        "How evenly and how far the scores fall, beside the CNNs of figure 12.",
        depths.mlps,
        layers.profiles,
        draw_profiles,
    ),
)
