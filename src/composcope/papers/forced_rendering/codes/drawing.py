"""Figures 1a to 1c and 5: the set-up, the failure of every code, a plane bent by a decoder."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from composcope.papers.forced_rendering.codes.numbers import BentPlane, CodeFailure, Failure, LayerPlane, Setup
from composcope.papers.forced_rendering.drawing_plane import add_scale, draw_dots, draw_share
from composcope.study.drawing import COLOURS, MARK, PAGE, figure, outline, show_image

SEEN, X, Y = COLOURS[0], COLOURS[2], COLOURS[3]
LETTERS = "abcdefgh"


def draw_setup(numbers: Setup) -> Figure:
    """From left to right: the plane, one point's codes, and true images."""
    drawn = figure(PAGE, 2.1)
    blocks: Any = drawn.subfigures(1, 3, width_ratios=[1.05, 1.15, 1.5])
    _draw_plane(blocks[0].subplots(), numbers)
    _draw_codes(blocks[1], numbers)
    _draw_samples(blocks[2], numbers)
    return drawn


def _draw_plane(axes: Any, numbers: Setup) -> None:
    """Every combination; the held-out ones shaded."""
    size = len(numbers.heldout)
    shade = np.ma.masked_equal(numbers.heldout.numpy().T.astype(float), 0)
    axes.imshow(shade, origin="lower", cmap=ListedColormap([MARK]), alpha=0.2)
    outline(axes, numbers.heldout)
    x, y = np.meshgrid(range(size), range(size))
    axes.plot(x.ravel(), y.ravel(), ".", color="#999999", markersize=1)
    for letter, (u, v), inside in zip(LETTERS, numbers.points.tolist(), numbers.inside.tolist(), strict=True):
        axes.plot(u, v, "o", color=MARK if inside else SEEN, markersize=8)
        axes.text(u, v, letter, color="white", fontsize=7, ha="center", va="center_baseline")
    axes.set(xlabel="x", ylabel="y", xlim=(-0.8, size - 0.2), ylim=(-0.8, size - 0.2), aspect="equal")
    axes.set_title("the plane of x and y")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)


def _draw_codes(block: Any, numbers: Setup) -> None:
    """The decoder's input for the one point, in each code."""
    x, y = numbers.points[numbers.shown].tolist()
    block.suptitle(f"codes of point {LETTERS[numbers.shown]}: x = {x:g}, y = {y:g}", fontsize=8)
    grid = block.subplots(len(numbers.codes), 2)
    for row, (name, parts) in zip(grid, numbers.codes.items(), strict=True):
        low = min(0.0, *(part.min().item() for part in parts))
        high = max(part.max().item() for part in parts)
        for axes, part, colour in zip(row, parts, (X, Y), strict=True):
            axes.bar(np.arange(len(part)), part.numpy(), color=colour, width=0.8 if len(part) > 1 else 1)
            axes.axhline(0, color="#888888", linewidth=0.5)
            # A rate code's single unit must not be as wide as a whole row of bump units.
            middle, half = (len(part) - 1) / 2, max(len(part), 8) / 2
            axes.set(xticks=[], yticks=[], ylim=(1.1 * low, 1.1 * high), xlim=(middle - half, middle + half))
            axes.spines[["left", "bottom"]].set_visible(False)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    grid[-1, 0].set_xlabel("units for x", color=X)
    grid[-1, 1].set_xlabel("units for y", color=Y)


def _draw_samples(block: Any, numbers: Setup) -> None:
    """True images: seen ones on the left, held-out ones on the right."""
    for side, inside, title in zip(block.subfigures(1, 2), (False, True), ("seen", "held out"), strict=True):
        colour = MARK if inside else SEEN
        side.suptitle(f"images {title}", fontsize=8, color=colour)
        chosen = [row for row, held in enumerate(numbers.inside.tolist()) if held == inside]
        for axes, row in zip(side.subplots(2, 2).flat, chosen, strict=True):
            show_image(axes, numbers.images[row])
            axes.set_title(LETTERS[row], color=colour, pad=2)
            for spine in axes.spines.values():
                spine.set(color=colour, linewidth=1)


def draw_failure(numbers: Failure) -> Figure:
    """A row per code: error over the plane, images in the hole, errors of every seed, and accuracy into the hole."""
    drawn = figure(PAGE, 1.9 * len(numbers.codes))
    grid = drawn.subplots(len(numbers.codes), 4, squeeze=False, width_ratios=[1.35, 1.15, 0.75, 1])
    for (plane, images, errors, accuracy), failure in zip(grid, numbers.codes, strict=True):
        add_scale(drawn, draw_share(plane, failure.share, failure.heldout), plane, shrink=0.8)
        plane.plot(*failure.points[:, :2].T.numpy(), "+", color="white", markersize=4, markeredgewidth=0.7)
        plane.set_title(f"{failure.code} code", fontweight="bold")
        _draw_hole(images, failure)
        _draw_errors(errors, failure)
        _draw_accuracy(accuracy, failure)
    return drawn


def _draw_hole(axes: Any, failure: CodeFailure) -> None:
    """The decoder's images of points spread over the hole, arranged as the points are, from the top."""
    across, size, gap = round(len(failure.points) ** 0.5), failure.drawn.shape[-1], 1
    step = size + gap
    mosaic = np.full((across * step - gap, across * step - gap), np.nan)
    for index, (image, (x, y)) in enumerate(zip(failure.drawn, failure.points[:, :2].tolist(), strict=True)):
        left, bottom = step * (index % across), step * (across - 1 - index // across)
        mosaic[bottom : bottom + size, left : left + size] = image[0].numpy()
        axes.plot(left + x, bottom + y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
    top = max(failure.drawn.max().item(), 0.01)
    shades = matplotlib.colormaps["gray_r"].with_extremes(bad="#999999")
    axes.imshow(mosaic, origin="lower", cmap=shades, vmin=0, vmax=top, interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=f"in the hole (black: {top:.2f})")
    axes.spines[:].set_visible(False)


def _draw_errors(axes: Any, failure: CodeFailure) -> None:
    """MSE of every seed, beside that of a blank image."""
    seen = [error.seen_mse for error in failure.errors if error.seen_mse is not None]
    held = [error.heldout_mse for error in failure.errors if error.heldout_mse is not None]
    draw_dots(axes, 0, seen, SEEN)
    draw_dots(axes, 1, held, MARK)
    blank = failure.errors[0].blank_mse
    if blank is not None:
        axes.axhline(blank, color="black", linestyle=":", linewidth=0.8)
        axes.text(-0.55, blank * 1.2, "blank image", fontsize=6, va="bottom")
        axes.set_ylim(blank * 1e-3, blank * 4)
    axes.set(yscale="log", xlim=(-0.6, 1.6), ylabel="MSE")
    axes.set_xticks([0, 1], ["seen", "held out"])


def _draw_accuracy(axes: Any, failure: CodeFailure) -> None:
    """The accuracy at each distance into the hole: the mean over seeds, and every seed."""
    distances = failure.distances.numpy()
    seen = [error.seen_accuracy for error in failure.errors if error.seen_accuracy is not None]
    for curve in failure.accuracy.numpy():
        axes.plot(distances, curve, color=MARK, linewidth=0.6, alpha=0.6)
    axes.plot(distances, failure.accuracy.mean(0).numpy(), "o-", color=MARK, markersize=3.5, linewidth=1.5)
    draw_dots(axes, 0, seen, SEEN)
    axes.set(xlabel="steps into the hole", ylabel="share within 1 pixel", ylim=(-0.05, 1.05))
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw_bent_plane(numbers: BentPlane) -> Figure:
    """A row per code: the plane at the input, in a middle layer and in the image."""
    drawn = figure(PAGE, 2.0 * len(numbers.rows) + 0.1)
    columns = max(len(row) for row in numbers.rows)
    for index, row in enumerate(numbers.rows):
        for column, plane in enumerate(row):
            axes = drawn.add_subplot(len(numbers.rows), columns, index * columns + column + 1, projection="3d")
            _draw_layer_plane(axes, plane, numbers)
    handles = [
        matplotlib.patches.Patch(color=SEEN, label="seen"),
        matplotlib.patches.Patch(color=MARK, label="held out"),
    ]
    title = "each layer in its first three principal components"
    drawn.legend(handles=handles, title=title, loc="outside lower center", ncols=2, frameon=False, title_fontsize=7)
    return drawn


def _draw_layer_plane(axes: Any, plane: LayerPlane, numbers: BentPlane) -> None:
    """The mesh of the grid in three principal components; a cell is held out if any of its corners is."""
    x, y, z = plane.coordinates.numpy().transpose(2, 0, 1)
    held = numbers.heldout.numpy().astype(bool)
    cells = held[:-1, :-1] | held[1:, :-1] | held[:-1, 1:] | held[1:, 1:]
    colours = np.where(cells[..., None], matplotlib.colors.to_rgba(MARK), matplotlib.colors.to_rgba(SEEN))
    axes.plot_surface(
        x, y, z, facecolors=colours, rstride=1, cstride=1, linewidth=0.2, edgecolor="white", shade=False, alpha=0.85
    ).set_clip_on(False)
    # The same scale on all three axes: otherwise a flat plane would look as bent as any other.
    span = max(np.ptp(part) for part in (x, y, z)) / 2 or 1.0
    middles = [(part.min() + part.max()) / 2 for part in (x, y, z)]
    axes.set(**{f"{a}lim": (m - span, m + span) for a, m in zip("xyz", middles, strict=True)})
    axes.set_axis_off()
    axes.set_box_aspect(None, zoom=1.4)
    layer = {"code": "input", "image": "image"}.get(plane.layer, f"layer {plane.layer}")
    axes.set_title(f"{plane.code} code: {layer}\n{plane.explained.sum():.0%} of the variance shown", pad=0)
