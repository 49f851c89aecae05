"""Figure 9 page: error by angle, pace and embedding of each layer, and the images page in the gap."""

from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from composcope.measures.error import mse
from composcope.study.drawing import COLOURS, MARK, PAGE, figure, frame, show_image
from composcope.study.numbers import Numbers, Row
from composcope.study.statistics import interval

KIND = "rotation"
MAX_ANGLES = 7  # of the gap
EMBEDDED = {
    "umap": "UMAP of each layer (2 dimensions; distances are not to scale)",
    "pca": "first two principal components of each layer, with their share of its variance",
}


def draw_rotation(numbers: Numbers) -> Figure:
    """Three rows: curves over the angle, each layer in two dimensions, images in the gap."""
    page = figure(PAGE, 6.3)
    top, middle, bottom = page.subfigures(3, 1, squeeze=False, height_ratios=[1.9, 1.65, 2.75])[:, 0]
    left, right = top.subplots(1, 2)
    _draw_errors(left, numbers)
    _draw_paces(right, numbers)
    _draw_embeddings(middle, numbers)
    _draw_images(bottom, numbers)
    return page


def _draw_errors(axes: Axes, numbers: Numbers) -> None:
    """MSE by angle: the geometric mean over seeds with its interval, a blank image's and the blend's."""
    angles = numbers.common["angles"].numpy()
    _shade(axes, numbers)
    _band(axes, angles, numbers.stack("errors", KIND), COLOURS[0], "decoder", logarithmic=True)
    axes.plot(angles, numbers.common["blank"], color="#888888", linewidth=1, linestyle=(0, (4, 2)), label="blank image")
    shown = numbers.first[KIND]
    between = mse(shown["images"]["blend"], shown["images"]["truth"])
    axes.plot(shown["angles in the gap"], between, color=COLOURS[1], linewidth=1.2, label="blend of the edges")
    axes.set(yscale="log", xlabel="angle, degrees", ylabel="MSE to the truth")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.25)
    axes.legend(frameon=False, fontsize=7, loc="upper left", ncols=3, columnspacing=1, handlelength=1.5)


def _draw_paces(axes: Axes, numbers: Numbers) -> None:
    """How fast each layer changes with the angle; grey: the last hidden layer before training."""
    angles = numbers.common["angles"].numpy()
    _shade(axes, numbers)
    before = [row["pace before training"] for row in numbers.rows if "pace before training" in row]
    if before:
        dashed: Any = {"color": "#888888", "linewidth": 1, "linestyle": (0, (4, 2)), "label": "untrained"}
        axes.plot(angles, torch.stack(before).mean(0), **dashed)
    layers = numbers.common["layers"]
    for shade, name in zip(_shades(len(layers)), layers, strict=True):
        _band(axes, angles, numbers.stack(f"pace, {name}", KIND), shade, name)
    axes.set(xlabel="angle, degrees", ylabel="pace (seen median = 1)", ylim=(0, None))
    axes.legend(frameon=False, fontsize=7, loc="lower left", ncols=3, columnspacing=1, handlelength=1.5)


def _shade(axes: Axes, numbers: Numbers) -> None:
    """The held-out angles, in the colour of everything held out."""
    inside = numbers.first[KIND]["angles in the gap"]
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


def _draw_embeddings(block: Any, numbers: Numbers) -> None:
    """Each layer in two dimensions, coloured by angle, the held-out angles ringed."""
    embeddings = numbers.first[KIND]["embeddings"]
    method = next((embedding["method"] for embedding in embeddings.values()), "pca")
    block.suptitle(EMBEDDED[method], fontsize=8)
    panels = block.subplots(1, len(embeddings), squeeze=False)[0]
    heldout = numbers.common["heldout"].numpy()
    points = None
    for axes, (name, embedding) in zip(panels, embeddings.items(), strict=True):
        x, y = embedding["coordinates"][:, :2].numpy().T
        axes.scatter(x[heldout], y[heldout], s=28, color=MARK, linewidths=0)
        points = axes.scatter(x, y, c=numbers.common["angles"], cmap="twilight", vmin=0, vmax=360, s=6, linewidths=0)
        frame(axes)
        axes.set(title=_title(name, embedding), aspect="equal")
        # A square frame of the same scale in both directions, so that a circle looks like one.
        half = 1.12 * max(np.ptp(x), np.ptp(y), 1e-9) / 2
        centre_x, centre_y = (x.min() + x.max()) / 2, (y.min() + y.max()) / 2
        axes.set(xlim=(centre_x - half, centre_x + half), ylim=(centre_y - half, centre_y + half))
    unit = "dimension" if method == "umap" else "component"
    panels[0].set(xlabel=f"1st {unit}", ylabel=f"2nd {unit}")
    if points is not None:
        block.colorbar(points, ax=panels, label="angle", ticks=[0, 180, 360], aspect=12)


def _title(layer: str, embedding: Row) -> str:
    if embedding["explained"] is None:
        return layer
    return f"{layer} ({embedding['explained'][:2].sum().item():.0%})"


def shown_angles(count: int) -> list[int]:
    """Indices in the gap that are drawn, evenly spread from edge to edge."""
    indices: list[int] = torch.linspace(0, count - 1, min(MAX_ANGLES, count)).round().long().tolist()
    return indices


def _draw_images(block: Any, numbers: Numbers) -> None:
    """Truth, decoder and blend at angles of the gap, with the decoder's MSE to the truth and to the blend below."""
    angles, images = numbers.first[KIND]["angles in the gap"], numbers.first[KIND]["images"]
    indices = shown_angles(len(angles))
    panels = block.subplots(3, len(indices), squeeze=False)
    for line, (name, each) in zip(panels, images.items(), strict=True):
        line[0].set_ylabel(name)
        for axes, index in zip(line, indices, strict=True):
            show_image(axes, each[index])
    for axes, index in zip(panels[0], indices, strict=True):
        axes.set_title(f"{float(angles[index]):.1f}°")
    for row, name in ((1, "truth"), (2, "blend")):
        errors = mse(images["decoder"], images[name])
        for axes, index in zip(panels[row], indices, strict=True):
            axes.set_xlabel(f"{errors[index].item():.4f}", fontsize=7, labelpad=2)
        panels[row][0].annotate(
            f"MSE to {name}",
            (0, 0),
            (-4, -3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
        )
