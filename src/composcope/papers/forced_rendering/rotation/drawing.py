"""Figure 9 drawn: error by angle, pace and embedding of each layer, and the images drawn in the gap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from composcope.measures.manifold import Embedding
from composcope.papers.forced_rendering.rotation.numbers import InGap, Rotation
from composcope.study.drawing import COLOURS, MARK, PAGE, figure, show_image
from composcope.study.statistics import interval

EMBEDDED = {
    "umap": "UMAP of each layer (2 dimensions; distances are not to scale)",
    "pca": "first two principal components of each layer, with their share of its variance",
}


def draw_rotation(numbers: Rotation) -> Figure:
    """Three rows: curves over the angle, each layer in two dimensions, images in the gap."""
    drawn = figure(PAGE, 6.3)
    top, middle, bottom = drawn.subfigures(3, 1, squeeze=False, height_ratios=[1.9, 1.65, 2.75])[:, 0]
    left, right = top.subplots(1, 2)
    _draw_errors(left, numbers)
    _draw_paces(right, numbers)
    _draw_embeddings(middle, numbers)
    _draw_images(bottom, numbers)
    return drawn


def _draw_errors(axes: Axes, numbers: Rotation) -> None:
    """MSE by angle: the geometric mean over seeds with its interval, a blank image's and the blend's."""
    angles = numbers.angles.numpy()
    _shade(axes, numbers)
    _band(axes, angles, numbers.errors, COLOURS[0], "decoder", logarithmic=True)
    axes.plot(angles, numbers.blank, color="#888888", linewidth=1, linestyle=(0, (4, 2)), label="blank image")
    inside = numbers.gap.angles
    axes.plot(inside, numbers.between, color=COLOURS[1], linewidth=1.2, label="blend of the edges")
    axes.set(yscale="log", xlabel="angle, degrees", ylabel="MSE to the truth")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.25)
    axes.legend(frameon=False, fontsize=7, loc="upper left", ncols=3, columnspacing=1, handlelength=1.5)


def _draw_paces(axes: Axes, numbers: Rotation) -> None:
    """How fast each layer changes with the angle; grey: the last hidden layer before training."""
    angles = numbers.angles.numpy()
    _shade(axes, numbers)
    if len(numbers.untrained):
        axes.plot(
            angles, numbers.untrained.mean(0), color="#888888", linewidth=1, linestyle=(0, (4, 2)), label="untrained"
        )
    for shade, (name, paces) in zip(_shades(len(numbers.paces)), numbers.paces.items(), strict=True):
        _band(axes, angles, paces, shade, name)
    axes.set(xlabel="angle, degrees", ylabel="pace (seen median = 1)", ylim=(0, None))
    axes.legend(frameon=False, fontsize=7, loc="lower left", ncols=3, columnspacing=1, handlelength=1.5)


def _shade(axes: Axes, numbers: Rotation) -> None:
    """The held-out angles, in the colour of everything held out."""
    inside = numbers.gap.angles
    axes.axvspan(float(inside[0]), float(inside[-1]), color=MARK, alpha=0.15, linewidth=0)
    axes.set(xlim=(0, 360), xticks=range(0, 361, 60))


def _band(axes: Axes, angles: Any, values: Tensor, colour: Any, label: str, logarithmic: bool = False) -> None:
    """The mean over seeds as a line, and its interval as a band.

    - `logarithmic`: both of the logarithms, for a log axis: the interval of the values themselves can reach below 0.
    """
    columns = (values.double().log() if logarithmic else values.double()).T.tolist()
    band = np.array([interval(column) for column in columns], dtype=float).T
    mean, low, high = np.exp(band) if logarithmic else band
    axes.plot(angles, mean, color=colour, linewidth=1.2, label=label)
    axes.fill_between(angles, low, high, color=colour, alpha=0.25, linewidth=0)


def _shades(count: int) -> Any:
    return colormaps["viridis"](np.linspace(0.9, 0.0, count))


def _draw_embeddings(block: Any, numbers: Rotation) -> None:
    """Each layer in two dimensions, coloured by angle, the held-out angles ringed."""
    method = next((embedding.method for embedding in numbers.embeddings.values()), "pca")
    block.suptitle(EMBEDDED[method], fontsize=8)
    panels = block.subplots(1, len(numbers.embeddings), squeeze=False)[0]
    heldout = numbers.heldout.numpy()
    points = None
    for axes, (name, embedding) in zip(panels, numbers.embeddings.items(), strict=True):
        x, y = embedding.coordinates[:, 0].numpy(), embedding.coordinates[:, 1].numpy()
        axes.scatter(x[heldout], y[heldout], s=28, color=MARK, linewidths=0)
        points = axes.scatter(x, y, c=numbers.angles, cmap="twilight", vmin=0, vmax=360, s=6, linewidths=0)
        axes.set(xticks=[], yticks=[], title=_title(name, embedding), aspect="equal")
        # A square frame of the same scale in both directions, so that a circle looks like one.
        half = 1.12 * max(np.ptp(x), np.ptp(y), 1e-9) / 2
        centre_x, centre_y = (x.min() + x.max()) / 2, (y.min() + y.max()) / 2
        axes.set(xlim=(centre_x - half, centre_x + half), ylim=(centre_y - half, centre_y + half))
        for spine in axes.spines.values():
            spine.set(visible=True, linewidth=0.5, color="#888888")
    unit = "dimension" if method == "umap" else "component"
    panels[0].set(xlabel=f"1st {unit}", ylabel=f"2nd {unit}")
    if points is not None:
        block.colorbar(points, ax=panels, label="angle", ticks=[0, 180, 360], aspect=12)


def _title(layer: str, embedding: Embedding) -> str:
    if embedding.explained is None:
        return layer
    return f"{layer} ({embedding.explained[:2].sum().item():.0%})"


def _draw_images(block: Any, numbers: Rotation) -> None:
    """Truth, decoder and blend at angles of the gap, with the decoder's MSE to both."""
    shown, indices = numbers.gap, numbers.shown.tolist()
    rows = {"truth": shown.truth, "decoder": shown.outputs, "blend": shown.blend}
    panels = block.subplots(3, len(indices), squeeze=False)
    for line, (name, images) in zip(panels, rows.items(), strict=True):
        line[0].set_ylabel(name)
        for axes, index in zip(line, indices, strict=True):
            show_image(axes, images[index])
    for axes, index in zip(panels[0], indices, strict=True):
        axes.set_title(f"{float(shown.angles[index]):.1f}°")
    _draw_captions(panels, shown, indices)


def _draw_captions(panels: Any, shown: InGap, indices: Sequence[int]) -> None:
    """The decoder's MSE to the truth below its images, and its MSE to the blend below the blends."""
    comparison = shown.comparison
    for row, values in ((1, comparison.mse_to_truth), (2, comparison.mse_to_blend)):
        for axes, index in zip(panels[row], indices, strict=True):
            axes.set_xlabel(f"{values[index].item():.4f}", fontsize=7, labelpad=2)
        panels[row][0].annotate(
            "MSE to truth" if row == 1 else "MSE to blend",
            (0, 0),
            (-4, -3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
        )
