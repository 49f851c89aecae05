"""Figures 1d, 1e and 8: sums of seen images, and which images are alike."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from composcope.papers.forced_rendering.drawing import draw_dots
from composcope.study.drawing import COLOURS, MARK, PAGE, figure, show_image
from composcope.study.numbers import Numbers

DARK = 0.7
OVERLAP = f"overlap above {DARK}"
RAW = "cosine of raw images"

SCORES = {
    "sum of parts, inner": ("with their sum, inner part", COLOURS[0]),
    "sum of parts": ("with their sum, whole hole", COLOURS[4]),
    "sum of parts, control": ("with sums of shuffled positions", "#888888"),
    "truth": ("with the truth", COLOURS[2]),
}


def draw_sums(numbers: Numbers) -> Figure:
    """Left: held-out images beside the sum of their parts. Right: the correlation for every code, and its control."""
    page = figure(PAGE, 2.9)
    blocks: Any = page.subfigures(1, 2, width_ratios=[1.9, 1])
    left, right = blocks
    _draw_parts(left, numbers)
    _draw_scores(right.subplots(), numbers)
    return page


def _draw_parts(block: Any, numbers: Numbers) -> None:
    """A row per point: the truth, the decoder's image, its images for x alone and y alone, and their sum."""
    shown = numbers.first["bump"]
    stacks = {
        "truth": shown["truth"],
        "decoder\nD(x, y)": shown["images"],
        "x alone\nD(x, mean y)": shown["x part"],
        "y alone\nD(mean x, y)": shown["y part"],
        "their sum": shown["x part"] + shown["y part"],
    }
    top = max(stack.max().item() for name, stack in stacks.items() if name != "truth")
    grid = block.subplots(len(shown["points"]), len(stacks), squeeze=False)
    for column, (title, stack) in enumerate(stacks.items()):
        for row, point in enumerate(shown["points"]):
            axes = grid[row, column]
            show_image(axes, -stack[row], -1.0 if title == "truth" else -top, 0.0)
            axes.plot(point[0], point[1], "+", color=MARK, markersize=6, markeredgewidth=0.8)
        grid[0, column].set_title(title)
    for row, (point, score) in enumerate(zip(shown["points"], shown["correlations"].tolist(), strict=True)):
        grid[row, 0].set_ylabel(f"x = {point[0]:g}\ny = {point[1]:g}", rotation=0, ha="right", va="center")
        grid[row, -1].set_xlabel(f"correlation {score:.2f}", labelpad=2, fontsize=7)
    scale = f"bump code, inner part of the hole (black is {top:.2f}, in the truth 1)"
    block.suptitle(scale, x=0.01, ha="left", fontsize=8)


def _draw_scores(axes: Any, numbers: Numbers) -> None:
    """One group per code: correlation with the sum, with sums of shuffled positions, and with the truth."""
    lowest = 0.0
    for at, code in enumerate(numbers.kinds):
        for index, (key, (_, colour)) in enumerate(SCORES.items()):
            values = [value for value in numbers.column(key, code) if isinstance(value, float)]
            draw_dots(axes, at + 0.21 * (index - 1.5), values, colour, 0.08)
            lowest = min([lowest, *values])
    axes.set_xticks(range(len(numbers.kinds)), numbers.kinds, rotation=20)
    axes.set(ylabel="correlation of held-out images", ylim=(lowest - 0.05, 1.02), xlim=(-0.5, len(numbers.kinds) - 0.5))
    handles = [
        matplotlib.lines.Line2D([], [], color=colour, linewidth=2, label=label) for label, colour in SCORES.values()
    ]
    axes.figure.legend(handles=handles, loc="outside upper center", frameon=False, fontsize=7)


def draw_heldout_similarity(numbers: Numbers) -> Figure:
    """Above, the kernels; below, the similarity of the decoder's images: held-out rows, seen columns."""
    (shown,) = numbers.first.values()
    page = figure(PAGE, 3.6)
    grid = page.subplots(2, 3)
    titles = {
        "binary": "binary kernel: same x or same y",
        "binary smoothed": "the same, smoothed to bump width",
        "product smoothed": "product kernel: x and y near",
    }
    for axes, (name, kernel) in zip(grid[0], shown["kernels"].items(), strict=True):
        picture = _draw_slice(axes, kernel, 1.0)
        axes.set_title(titles[name])
    page.colorbar(picture, ax=grid[0], label="kernel", pad=0.01)
    for axes, (name, similarity) in zip(grid[1], shown["similarities"].items(), strict=True):
        # Without the largest values, which would leave the rest of the matrix black.
        top = float(np.quantile(similarity.numpy(), 0.995)) or similarity.max().item() or 1.0
        picture = _draw_slice(axes, similarity, top)
        axes.set_title(f"decoder: {name}")
        if not similarity.any():
            _say_empty(axes)
            continue
        bar = page.colorbar(picture, ax=axes, pad=0.02)
        bar.ax.tick_params(labelsize=6)
        binary, smoothed, product = shown["agreement"][name]
        scores = f"correlation: binary {binary:.2f},\nsmoothed {smoothed:.2f}, product {product:.2f}"
        axes.set_xlabel(f"seen images (by x, then y)\n{scores}", linespacing=1.3)
    return page


def _draw_slice(axes: Any, part: Tensor, top: float) -> Any:
    axes.set(xticks=[], yticks=[], xlabel="seen images (by x, then y)", ylabel="held-out images")
    return axes.imshow(part.numpy(), cmap="cividis", vmin=0, vmax=top, aspect="auto")


def draw_matrices(numbers: Numbers) -> Figure:
    """A row per code: cosines, distance and overlap of all images, seen ones first."""
    page = figure(PAGE, 1.9 * len(numbers.first))
    titles = {RAW: RAW, "cosine": "cosine of foregrounds", "l2": "L2 distance", OVERLAP: OVERLAP}
    grid = page.subplots(len(numbers.first), len(titles), squeeze=False)
    for axes, title in zip(grid[0], titles.values(), strict=True):
        axes.set_title(title, fontsize=7.5)
    for row, (code, grams) in zip(grid, numbers.first.items(), strict=True):
        row[0].set_ylabel(f"{code} code", fontweight="bold")
        for axes, (kind, gram) in zip(row, grams.items(), strict=True):
            tops = [other[kind].max().item() for other in numbers.first.values()]
            top = 1.0 if "cosine" in kind else max(tops) or 1.0
            # Those of dark images are all near 1.
            bottom = min(other[kind].min().item() for other in numbers.first.values()) if kind == RAW else 0.0
            shades = "cividis_r" if kind == "l2" else "cividis"  # bright is alike, in distances too
            picture = axes.imshow(gram.numpy(), cmap=shades, vmin=bottom, vmax=top, aspect="auto")
            share = numbers.of(code)[0][f"variance explained by blocks, {kind}"]
            _mark_blocks(axes, numbers.common["seen"], len(gram))
            if not gram.any():
                middle = numbers.common["seen"] / len(gram) / 2
                _say_empty(axes, (middle, 1 - middle))  # inside the block of seen images, beside its outline
                continue
            page.colorbar(picture, ax=axes, pad=0.02).ax.tick_params(labelsize=6)
            if share is not None:
                axes.set_xlabel(f"blocks explain {share:.0%}", fontsize=7)
    return page


def _say_empty(axes: Any, at: tuple[float, float] = (0.5, 0.5)) -> None:
    """In a matrix of zeros, by default in its middle, why it is one."""
    words = f"empty:\nno two\nimages share\na foreground\nabove {DARK:g}"
    axes.text(*at, words, transform=axes.transAxes, ha="center", va="center", color="white", fontsize=6)


def _mark_blocks(axes: Any, seen: int, points: int) -> None:
    """The blocks of seen and of held-out images outlined, and their names."""
    for start, size in ((0, seen), (seen, points - seen)):
        axes.add_patch(Rectangle((start - 0.5, start - 0.5), size, size, fill=False, edgecolor=MARK, linestyle="--"))
    middles = [seen / 2, (seen + points) / 2]
    axes.set_xticks(middles, ["seen", "held out"])
    axes.set_yticks(middles, ["seen", "held out"], rotation=90, va="center")
    axes.tick_params(length=0)
