"""Figures 1a to 1c and 5: the set-up, the failure of every code, a plane bent by a decoder."""

from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from composcope.papers.forced_rendering.drawing import add_scale, draw_dots, draw_share
from composcope.study.drawing import COLOURS, MARK, PAGE, figure, outline, show_image
from composcope.study.numbers import Numbers, Row, Rows

SEEN, X, Y = COLOURS[0], COLOURS[2], COLOURS[3]
LETTERS = "abcdefgh"


def draw_setup(numbers: Numbers) -> Figure:
    """From left to right: the plane, one point's codes, and true images."""
    page = figure(PAGE, 2.1)
    blocks: Any = page.subfigures(1, 3, width_ratios=[1.05, 1.15, 1.5])
    _draw_plane(blocks[0].subplots(), numbers)
    _draw_codes(blocks[1], numbers)
    _draw_samples(blocks[2], numbers)
    return page


def _draw_plane(axes: Any, numbers: Numbers) -> None:
    """Every combination; the held-out ones shaded."""
    heldout, points, inside = (numbers.common[name] for name in ("heldout", "points", "inside"))
    size = len(heldout)
    shade = np.ma.masked_equal(heldout.numpy().T.astype(float), 0)
    axes.imshow(shade, origin="lower", cmap=ListedColormap([MARK]), alpha=0.2)
    outline(axes, heldout)
    x, y = np.meshgrid(range(size), range(size))
    axes.plot(x.ravel(), y.ravel(), ".", color="#999999", markersize=1)
    for letter, (u, v), is_inside in zip(LETTERS, points.tolist(), inside.tolist(), strict=True):
        axes.plot(u, v, "o", color=MARK if is_inside else SEEN, markersize=8)
        axes.text(u, v, letter, color="white", fontsize=7, ha="center", va="center_baseline")
    axes.set(xlabel="x", ylabel="y", xlim=(-0.8, size - 0.2), ylim=(-0.8, size - 0.2), aspect="equal")
    axes.set_title("the plane of x and y")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)


def _draw_codes(block: Any, numbers: Numbers) -> None:
    """The decoder's input for the one point, in each code."""
    index = numbers.common["index"]
    x, y = numbers.common["points"][index].tolist()
    block.suptitle(f"codes of point {LETTERS[index]}: x = {x:g}, y = {y:g}", fontsize=8)
    grid = block.subplots(len(numbers.rows), 2)
    for row, code in zip(grid, numbers.rows, strict=True):
        parts = code["x"], code["y"]
        low = min(0.0, *(part.min().item() for part in parts))
        high = max(part.max().item() for part in parts)
        for axes, part, colour in zip(row, parts, (X, Y), strict=True):
            axes.bar(np.arange(len(part)), part.numpy(), color=colour, width=0.8 if len(part) > 1 else 1)
            axes.axhline(0, color="#888888", linewidth=0.5)
            # A rate code's single unit must not be as wide as a whole row of bump units.
            middle, half = (len(part) - 1) / 2, max(len(part), 8) / 2
            axes.set(xticks=[], yticks=[], ylim=(1.1 * low, 1.1 * high), xlim=(middle - half, middle + half))
            axes.spines[["left", "bottom"]].set_visible(False)
        row[0].set_ylabel(code["code"], rotation=0, ha="right", va="center")
    grid[-1, 0].set_xlabel("units for x", color=X)
    grid[-1, 1].set_xlabel("units for y", color=Y)


def _draw_samples(block: Any, numbers: Numbers) -> None:
    """True images: seen ones on the left, held-out ones on the right."""
    for side, inside, title in zip(block.subfigures(1, 2), (False, True), ("seen", "held out"), strict=True):
        colour = MARK if inside else SEEN
        side.suptitle(f"images {title}", fontsize=8, color=colour)
        chosen = [row for row, held in enumerate(numbers.common["inside"].tolist()) if held == inside]
        for axes, row in zip(side.subplots(2, 2).flat, chosen, strict=True):
            show_image(axes, numbers.common["images"][row])
            axes.set_title(LETTERS[row], color=colour, pad=2)
            for spine in axes.spines.values():
                spine.set(color=colour, linewidth=1)


def draw_failure(numbers: Numbers) -> Figure:
    """A row per code: error over the plane, images in the hole, errors of every seed, and accuracy into the hole."""
    page = figure(PAGE, 1.9 * len(numbers.kinds))
    grid = page.subplots(len(numbers.kinds), 4, squeeze=False, width_ratios=[1.35, 1.15, 0.75, 1])
    points = numbers.common["points"][:, :2]
    for (plane, hole, errors, accuracy), code in zip(grid, numbers.kinds, strict=True):
        shown = numbers.first[code]
        add_scale(page, draw_share(plane, shown["share"], numbers.common["heldout"]), plane, shrink=0.8)
        plane.plot(*points.T.numpy(), "+", color="white", markersize=4, markeredgewidth=0.7)
        plane.set_title(f"{code} code", fontweight="bold")
        _draw_hole(hole, shown["images"], points)
        _draw_errors(errors, numbers.of(code))
        _draw_accuracy(accuracy, numbers, code)
    return page


def _draw_hole(axes: Any, images: Tensor, points: Tensor) -> None:
    """The decoder's images of points spread over the hole, arranged as the points are, from the top."""
    across, size, gap = round(len(points) ** 0.5), images.shape[-1], 1
    step = size + gap
    mosaic = np.full((across * step - gap, across * step - gap), np.nan)
    for index, (image, (x, y)) in enumerate(zip(images, points.tolist(), strict=True)):
        left, bottom = step * (index % across), step * (across - 1 - index // across)
        mosaic[bottom : bottom + size, left : left + size] = image[0].numpy()
        axes.plot(left + x, bottom + y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
    top = max(images.max().item(), 0.01)
    shades = matplotlib.colormaps["gray_r"].with_extremes(bad="#999999")
    axes.imshow(mosaic, origin="lower", cmap=shades, vmin=0, vmax=top, interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=f"in the hole (black: {top:.2f})")
    axes.spines[:].set_visible(False)


def _draw_errors(axes: Any, rows: Rows) -> None:
    """MSE of every seed, beside that of a blank image."""
    for place, (name, colour) in enumerate((("seen MSE", SEEN), ("held-out MSE", MARK))):
        draw_dots(axes, place, [row[name] for row in rows if row[name] is not None], colour)
    blank = rows[0]["blank MSE"]
    if blank is not None:
        axes.axhline(blank, color="black", linestyle=":", linewidth=0.8)
        axes.text(-0.55, blank * 1.2, "blank image", fontsize=6, va="bottom")
        axes.set_ylim(blank * 1e-3, blank * 4)
    axes.set(yscale="log", xlim=(-0.6, 1.6), ylabel="MSE")
    axes.set_xticks([0, 1], ["seen", "held out"])


def _draw_accuracy(axes: Any, numbers: Numbers, code: str) -> None:
    """The accuracy at each distance into the hole: the mean over seeds, and every seed."""
    distances = numbers.common["distances"].numpy()
    seen = [value for value in numbers.column("seen within 1 pixel", code) if value is not None]
    curves = numbers.stack("within 1 pixel by distance", code)
    for curve in curves.numpy():
        axes.plot(distances, curve, color=MARK, linewidth=0.6, alpha=0.6)
    axes.plot(distances, curves.mean(0).numpy(), "o-", color=MARK, markersize=3.5, linewidth=1.5)
    draw_dots(axes, 0, seen, SEEN)
    axes.set(xlabel="steps into the hole", ylabel="share within 1 pixel", ylim=(-0.05, 1.05))
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw_bent_plane(numbers: Numbers) -> Figure:
    """A row per code, the one of the fewest units first: the plane at the input, in a middle layer and in the image."""
    codes = sorted(numbers.kinds, key=lambda code: numbers.of(code)[0]["units"])
    page = figure(PAGE, 2.0 * len(codes) + 0.1)
    columns = max(len(numbers.of(code)) for code in codes)
    for index, code in enumerate(codes):
        for column, plane in enumerate(numbers.of(code)):
            axes = page.add_subplot(len(codes), columns, index * columns + column + 1, projection="3d")
            _draw_layer_plane(axes, plane, numbers.common["heldout"])
    handles = [
        matplotlib.patches.Patch(color=SEEN, label="seen"),
        matplotlib.patches.Patch(color=MARK, label="held out"),
    ]
    title = "each layer in its first three principal components"
    page.legend(handles=handles, title=title, loc="outside lower center", ncols=2, frameon=False, title_fontsize=7)
    return page


def _draw_layer_plane(axes: Any, plane: Row, heldout: Tensor) -> None:
    """The mesh of the grid in three principal components; a cell is held out if any of its corners is."""
    x, y, z = plane["coordinates"].numpy().transpose(2, 0, 1)
    held = heldout.numpy().astype(bool)
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
    layer = {"code": "input", "image": "image"}.get(plane["layer"], f"layer {plane['layer']}")
    explained = torch.tensor([plane[f"share of component {number}"] for number in (1, 2, 3)]).sum()
    axes.set_title(f"{plane['code']} code: {layer}\n{explained:.0%} of the variance shown", pad=0)
