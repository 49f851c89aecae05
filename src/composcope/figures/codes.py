"""Figures 1a to 1c and 5: the set-up, the failure of every code, a plane bent by a decoder; and the group's panels."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from composcope.figures.controls import draw_controls
from composcope.figures.plane import add_scale, draw_dots, draw_share
from composcope.figures.similarity import draw_alike, draw_matrices, draw_summed
from composcope.figures.style import COLOURS, MARK, PAGE, STYLE, figure, outline, show_image
from composcope.paper import codes, controls, similarity
from composcope.paper.codes import Bent, Failed, Failure, Setup, Sheet
from composcope.paper.panel import Panel

SEEN, X, Y = COLOURS[0], COLOURS[2], COLOURS[3]
LETTERS = "abcdefgh"


def draw_setup(numbers: Setup) -> Figure:
    """From left to right: the plane, one point's codes, and true images."""
    drawn = figure(PAGE, 2.1)
    with matplotlib.rc_context(STYLE):
        blocks: Any = drawn.subfigures(1, 3, width_ratios=[1.05, 1.15, 1.5])
        _draw_plane(blocks[0].subplots(), numbers)
        _draw_codes(blocks[1], numbers)
        _draw_samples(blocks[2], numbers)
    return drawn


def _draw_plane(axes: Any, numbers: Setup) -> None:
    """Every combination; those withheld shaded."""
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
    """What the decoder is told of the one point, by each code."""
    x, y = numbers.points[numbers.shown].tolist()
    block.suptitle(f"codes of point {LETTERS[numbers.shown]}: x = {x:g}, y = {y:g}", fontsize=8)
    grid = block.subplots(len(numbers.codes), 2)
    for row, (name, parts) in zip(grid, numbers.codes.items(), strict=True):
        low = min(0.0, *(part.min().item() for part in parts))
        high = max(part.max().item() for part in parts)
        for axes, part, colour in zip(row, parts, (X, Y), strict=True):
            axes.bar(np.arange(len(part)), part.numpy(), color=colour, width=0.8 if len(part) > 1 else 1)
            axes.axhline(0, color="#888888", linewidth=0.5)
            middle, half = (len(part) - 1) / 2, max(len(part), 8) / 2
            axes.set(xticks=[], yticks=[], ylim=(1.1 * low, 1.1 * high), xlim=(middle - half, middle + half))
            axes.spines[["left", "bottom"]].set_visible(False)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    grid[-1, 0].set_xlabel("tells x", color=X)
    grid[-1, 1].set_xlabel("tells y", color=Y)


def _draw_samples(block: Any, numbers: Setup) -> None:
    """True images: seen ones on the left, withheld ones on the right."""
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
    """A row a code: error over the plane, images in the hole, errors of every seed, and accuracy into the hole."""
    drawn = figure(PAGE, 1.9 * len(numbers.codes))
    with matplotlib.rc_context(STYLE):
        grid = drawn.subplots(len(numbers.codes), 4, squeeze=False, width_ratios=[1.35, 1.15, 0.75, 1])
        for (plane, images, errors, places), found in zip(grid, numbers.codes, strict=True):
            add_scale(drawn, draw_share(plane, found.share, found.heldout), plane, shrink=0.8)
            plane.plot(*found.points[:, :2].T.numpy(), "+", color="white", markersize=4, markeredgewidth=0.7)
            plane.set_title(f"{found.code} code", fontweight="bold")
            _draw_hole(images, found)
            _draw_errors(errors, found)
            _draw_places(places, found)
    return drawn


def _draw_hole(axes: Any, found: Failed) -> None:
    """The decoder's images of points spread over the hole, arranged as the points are, from the top."""
    across, size, gap = round(len(found.points) ** 0.5), found.drawn.shape[-1], 1
    step = size + gap
    sheet = np.full((across * step - gap, across * step - gap), np.nan)
    for place, (image, (x, y)) in enumerate(zip(found.drawn, found.points[:, :2].tolist(), strict=True)):
        left, bottom = step * (place % across), step * (across - 1 - place // across)
        sheet[bottom : bottom + size, left : left + size] = image[0].numpy()
        axes.plot(left + x, bottom + y, "+", color=MARK, markersize=5, markeredgewidth=0.8)
    top = max(found.drawn.max().item(), 0.01)
    shades = matplotlib.colormaps["gray_r"].with_extremes(bad="#999999")
    axes.imshow(sheet, origin="lower", cmap=shades, vmin=0, vmax=top, interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=f"in the hole (black: {top:.2f})")
    axes.spines[:].set_visible(False)


def _draw_errors(axes: Any, found: Failed) -> None:
    """MSE of every seed, beside that of a blank image."""
    seen = [error.seen_mse for error in found.errors if error.seen_mse is not None]
    held = [error.heldout_mse for error in found.errors if error.heldout_mse is not None]
    draw_dots(axes, 0, seen, SEEN)
    draw_dots(axes, 1, held, MARK)
    blank = found.errors[0].blank_mse
    if blank is not None:
        axes.axhline(blank, color="black", linestyle=":", linewidth=0.8)
        axes.text(-0.55, blank * 1.2, "blank image", fontsize=6, va="bottom")
        axes.set_ylim(blank * 1e-3, blank * 4)
    axes.set(yscale="log", xlim=(-0.6, 1.6), ylabel="MSE")
    axes.set_xticks([0, 1], ["seen", "held out"])


def _draw_places(axes: Any, found: Failed) -> None:
    """The share of images in place at each distance into the hole: the mean over seeds, and every seed."""
    distances = found.distances.numpy()
    seen = [error.seen_accuracy for error in found.errors if error.seen_accuracy is not None]
    for row in found.placed.numpy():
        axes.plot(distances, row, color=MARK, linewidth=0.6, alpha=0.6)
    axes.plot(distances, found.placed.mean(0).numpy(), "o-", color=MARK, markersize=3.5, linewidth=1.5)
    draw_dots(axes, 0, seen, SEEN)
    axes.set(xlabel="steps into the hole", ylabel="share in place", ylim=(-0.05, 1.05))
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw_bent(numbers: Bent) -> Figure:
    """A row a code: the plane as the input, a middle layer and the image have it."""
    drawn = figure(PAGE, 2.0 * len(numbers.sheets) + 0.1)
    columns = max(len(row) for row in numbers.sheets)
    with matplotlib.rc_context(STYLE):
        for place, row in enumerate(numbers.sheets):
            for column, sheet in enumerate(row):
                axes = drawn.add_subplot(len(numbers.sheets), columns, place * columns + column + 1, projection="3d")
                _draw_sheet(axes, sheet, numbers)
        handles = [
            matplotlib.patches.Patch(color=SEEN, label="seen"),
            matplotlib.patches.Patch(color=MARK, label="held out"),
        ]
        title = "each layer in its first three principal components"
        drawn.legend(handles=handles, title=title, loc="outside lower center", ncols=2, frameon=False, title_fontsize=7)
    return drawn


def _draw_sheet(axes: Any, sheet: Sheet, numbers: Bent) -> None:
    """The mesh of the grid in three principal components; a cell is held out if any of its corners is."""
    x, y, z = sheet.coordinates.numpy().transpose(2, 0, 1)
    held = numbers.heldout.numpy().astype(bool)
    cells = held[:-1, :-1] | held[1:, :-1] | held[:-1, 1:] | held[1:, 1:]
    colours = np.where(cells[..., None], matplotlib.colors.to_rgba(MARK), matplotlib.colors.to_rgba(SEEN))
    axes.plot_surface(
        x, y, z, facecolors=colours, rstride=1, cstride=1, linewidth=0.2, edgecolor="white", shade=False, alpha=0.85
    ).set_clip_on(False)
    span = max(np.ptp(part) for part in (x, y, z)) / 2 or 1.0
    middles = [(part.min() + part.max()) / 2 for part in (x, y, z)]
    axes.set(**{f"{a}lim": (m - span, m + span) for a, m in zip("xyz", middles, strict=True)})
    axes.set_axis_off()
    axes.set_box_aspect(None, zoom=1.4)
    layer = {"code": "input", "image": "image"}.get(sheet.layer, f"layer {sheet.layer}")
    axes.set_title(f"{sheet.code} code: {layer}\n{sheet.explained.sum():.0%} of the variance shown", pad=0)


PANELS = (
    Panel(
        "1a",
        "The set-up",
        "Every x and every y is seen, but not the combinations in the square; x and y are coded by separate numbers.",
        codes.nothing,
        codes.setup,
        draw_setup,
        no_claim="it shows what is asked, not what comes out",
    ),
    Panel(
        "1b",
        "Bump and one-hot codes",
        "The error over the plane, the held-out square outlined; what is drawn there, a cross where the bump belongs; "
        "how far in from the edge of the hole bumps are still in place.",
        codes.local,
        codes.failure,
        draw_failure,
    ),
    Panel(
        "1c",
        "Rate and positional codes",
        "The same with codes in which every number changes with the value; look at the seen error before judging.",
        codes.broad,
        codes.failure,
        draw_failure,
    ),
    Panel(
        "1d",
        "Held-out images as sums",
        "The decoder's image beside the sum of its images for x alone and y alone; grey: sums at other places.",
        codes.every,
        similarity.summed,
        draw_summed,
    ),
    Panel(
        "1e",
        "Likeness of held-out to seen images",
        "Whether the decoder's matrices look more like the kernel of x or y shared, or like that of x and y shared.",
        codes.one,
        similarity.alike,
        draw_alike,
    ),
    Panel(
        "5",
        "The latent plane, bent into a layer",
        "The grid of (x, y) in three principal components of a layer: how it folds, and what becomes of the hole.",
        codes.both,
        codes.bent,
        draw_bent,
        no_claim="a sketch in the paper; the claims about geometry rest on figures 2, 11 and 13",
    ),
    Panel(
        "8",
        "Likeness of all images",
        "Blocks are sets of images that share x or y; the lower right part is of held-out images among themselves.",
        codes.both,
        similarity.matrices,
        draw_matrices,
    ),
    Panel(
        "controls",
        "Another hole, no hole, the reverse map",
        "Whether the failure follows the hole: in the middle, in a corner, nowhere; and the map from images to codes.",
        codes.controls,
        controls.controls,
        draw_controls,
    ),
)
