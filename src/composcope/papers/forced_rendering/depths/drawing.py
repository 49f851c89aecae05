"""Figure 10, held-out images by depth; the curves and maps of figures 2 and 11 to 14 are in ../drawing.py."""

import math
from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.papers.forced_rendering.drawing import Sheet
from composcope.papers.forced_rendering.layers import OTHERS
from composcope.study.drawing import MARK, PAGE, show_image
from composcope.study.numbers import Numbers

CODES = ("bump", "rate")


def draw_gallery(numbers: Numbers) -> Figure:
    """The two codes side by side, a row per depth; below them the other decoders. Rings are at the true positions."""
    groups = {kind: numbers.of(kind)[0]["group"] for kind in numbers.kinds}
    columns = [[kind for kind, group in groups.items() if group == code] for code in CODES]
    rest = [kind for kind, group in groups.items() if group == OTHERS]
    count, tall = len(numbers.common["points"]), max(map(len, columns))
    label, words, gap, above = 0.65, 0.7, 0.06, 0.32
    side = (PAGE / 2 - label - words) / count - gap
    tops = [above + index * (side + gap) for index in range(1 + tall)]
    tops += [tops[-1] + 0.15 + index * (side + gap) for index in range(1, 1 + math.ceil(len(rest) / 2))]
    sheet = Sheet(PAGE, tops[-1] + side + 0.2)
    for half, (code, kinds) in enumerate(zip(CODES, columns, strict=True)):
        lefts = [half * PAGE / 2 + label + place * (side + gap) for place in range(count)]
        _draw_truth([sheet.square(left, tops[0], side) for left in lefts], numbers, code)
        # The other decoders fill the rows below, alternating between the two halves.
        rows = [*zip(tops[1:], kinds, strict=False), *zip(tops[1 + tall :], rest[half::2], strict=False)]
        for top, kind in rows:
            _draw_network([sheet.square(left, top, side) for left in lefts], numbers, kind)
    return sheet.page


def _draw_truth(row: Sequence[Axes], numbers: Numbers, code: str) -> None:
    for axes, image, (x, y) in zip(row, numbers.common["truth"], numbers.common["points"].tolist(), strict=True):
        show_image(axes, image)
        axes.set_title(f"({x:g}, {y:g})", fontsize=6.5, pad=2)
    row[0].annotate(f"{code} code", (0, 1), (0, 13), "axes fraction", "offset points", fontweight="bold")
    blank = numbers.common["blank MSE"]
    _write_beside(row, "truth\nat (x, y)", f"within 1 px\nMSE\nseen MSE\nblank: {blank:.2g}")


def _draw_network(row: Sequence[Axes], numbers: Numbers, kind: str) -> None:
    images, points = numbers.first[kind]["images"], numbers.common["points"].tolist()
    for axes, image, (x, y) in zip(row, images, points, strict=True):
        show_image(axes, image)
        axes.plot(x, y, "o", color=MARK, markersize=8, markeredgewidth=0.7, fillstyle="none")
    errors = [f"{fmean(numbers.column(name, kind)):.2g}" for name in ("heldout_mse", "seen_mse")]
    text = "\n".join([f"{fmean(numbers.column('accuracy', kind)):.0%}", *errors])
    _write_beside(row, numbers.of(kind)[0]["label"].replace(" (", "\n("), text)


def _write_beside(row: Sequence[Axes], left: str, right: str) -> None:
    """Text on either side of a row of images."""
    row[0].text(-0.1, 0.5, left, transform=row[0].transAxes, ha="right", va="center", fontsize=6.5)
    row[-1].text(1.1, 0.5, right, transform=row[-1].transAxes, ha="left", va="center", fontsize=6)
