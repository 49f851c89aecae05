"""Maps and images as bytes for the page: small, on a known scale, ready to be drawn by `page.js`."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.points import Samples
from composcope.pages.page import packed
from composcope.tasks.base import Images
from composcope.verdict import KINDS

MAX_SIDE = 64  # pixels per side of a map that is embedded
MAX_ROW = 512  # the same for the one row of a single factor
NOTHING = 255  # the level of a pixel without a value; the others are 0..254
Plane = Shaped[Tensor, "... x y"]
Picture = Shaped[Tensor, "... rows columns"]


def plane(values: Shaped[Tensor, "... points"], sizes: tuple[int, ...]) -> Plane:
    """Numbers over the points as a map of the first two factors, the mean over the others; one row if not a grid."""
    if len(sizes) < 2 or values.shape[-1] != math.prod(sizes):
        return values[..., None]
    grid = values.reshape(*values.shape[:-1], *sizes)
    return grid.flatten(values.ndim + 1).mean(-1) if len(sizes) > 2 else grid


def levels(values: Tensor, low: float, high: float) -> np.ndarray:
    """low..high as 0..254, clipped to that range; 255 where the value is not finite."""
    scaled = (values.double() - low) / (high - low if high > low else 1.0)
    whole = (scaled.clamp(0, 1) * 254).round()
    return torch.where(values.isfinite(), whole, NOTHING).to(torch.uint8).numpy()


def upright(maps: Plane) -> Picture:
    """(x, y) maps as pictures: rows from the top, columns from the left; averaged where they are large."""
    turned = maps.transpose(-1, -2).flip(-2)
    height, width = turned.shape[-2:]
    most = MAX_SIDE if height > 1 else MAX_ROW
    if max(height, width) <= most:
        return turned
    flat = turned.reshape(-1, 1, height, width).double()
    small = adaptive_avg_pool2d(flat, (min(height, most), min(width, most)))
    return small.reshape(*turned.shape[:-2], *small.shape[-2:])


def packed_map(maps: Plane, low: float, high: float) -> dict[str, Any]:
    """Maps over the plane, packed, with the values of the first and last level."""
    return {**packed(levels(upright(maps), low, high)), "low": low, "high": high}


def outline(mask: Bool[Tensor, "x y"]) -> str:
    """The line around the true cells as an SVG path over a picture of one unit per cell.

    >>> outline(torch.tensor([[False, True], [False, False]]))
    'M0 0H1M0 1H1M0 0V1M1 0V1'
    """
    rows = np.pad(mask.T.flip(0).numpy().astype(np.int8), 1)
    across = [f"M{start} {line}H{end}" for line, start, end in _runs(np.diff(rows, axis=0)[:, 1:-1])]
    down = [f"M{line} {start}V{end}" for line, start, end in _runs(np.diff(rows, axis=1)[1:-1].T)]
    return "".join(across + down)


def _runs(edges: np.ndarray) -> list[tuple[int, int, int]]:
    """Line number, start and end of every unbroken run of edges."""
    runs = []
    for line, row in enumerate(edges):
        turns = np.flatnonzero(np.diff(np.pad((row != 0).astype(np.int8), 1)))
        runs += [(line, int(start), int(end)) for start, end in zip(turns[::2], turns[1::2], strict=True)]
    return runs


def packed_images(samples: Samples, expected: Images | None = None) -> dict[str, Any]:
    """Truth, drawn and, if given, expected images, (2 or 3, images, height, width, channels), as 0..254.

    They are averaged where they are large.

    Black and white are 0 and 1, or the least and the greatest pixel of the truth where these go beyond.
    """
    rows = torch.stack([samples.truth, samples.images, *([] if expected is None else [expected])]).flip(-2)
    height, width = rows.shape[-2:]
    if max(height, width) > MAX_SIDE:
        rows = torch.stack(
            [adaptive_avg_pool2d(images, (min(height, MAX_SIDE), min(width, MAX_SIDE))) for images in rows]
        )
    if rows.shape[2] not in (1, 3):
        rows = rows.mean(2, keepdim=True)
    low, high = min(0.0, samples.truth.min().item()), max(1.0, samples.truth.max().item())
    return packed(levels(rows.movedim(2, -1), low, high))


MIN_SHARE = 1e-4  # of the largest error; smaller errors look the same
MAX_SLICED = (
    8192  # combinations of three or more factors whose maps can be cut along any two; of more, the mean is shown
)
UNITS = 4  # whose tuning is shown in each layer
MIN_LIMIT = 0.3  # of the scale of log10 volumes, so that noise does not look like structure


def diagnosis_maps(diagnosis: Diagnosis, expected: Images | None = None) -> dict[str, Any]:
    """Every map, by the name under which the page draws it; `expected`: images forecast at the samples."""
    samples = diagnosis.samples
    data: dict[str, Any] = {"error": _error(diagnosis)}
    if sliced(diagnosis):
        data["grid"] = {"factors": _factors(diagnosis)}
    if len(diagnosis.kernels.rows):
        data["kernel"] = _kernel(diagnosis, samples)
    if samples is not None:
        data["samples"] = packed_images(samples, expected)
        if len(samples.heldout) == diagnosis.points and sliced(diagnosis):
            data["grid"]["heldout"] = packed(samples.heldout.numpy().astype("uint8"))
            data["classes"] = _classes(diagnosis, samples)
        elif len(samples.heldout) == diagnosis.points:
            held = plane(samples.heldout.double(), diagnosis.sizes) >= 0.5
            data["outline"] = "" if held.shape[-1] == 1 else outline(held)
            data["classes"] = _classes(diagnosis, samples)
    if diagnosis.layers:
        data["volumes"] = _volumes(diagnosis)
        data["tuning"] = _tuning(diagnosis)
    return {name: value for name, value in data.items() if value}


def sliced(diagnosis: Diagnosis) -> bool:
    """Whether maps are kept over the whole grid, so that the reader can choose two of three or more factors."""
    points = diagnosis.error.map.numel()
    return len(diagnosis.sizes) > 2 and points == math.prod(diagnosis.sizes) and points <= MAX_SLICED


def _factors(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The factors' names and values, by name where they have one."""
    verdict = diagnosis.verdict
    factors = []
    for name, size in zip(diagnosis.factors, diagnosis.sizes, strict=True):
        labels = [] if verdict is None else verdict.names.get(name) or [f"{v:g}" for v in verdict.values.get(name, ())]
        factors.append({"name": name, "values": list(labels) if len(labels) == size else list(range(size))})
    return factors


def _over(diagnosis: Diagnosis, values: Shaped[Tensor, "... points"]) -> Tensor:
    """Values over the points as pictures, or over the whole grid where it is to be sliced."""
    if sliced(diagnosis):
        return values.reshape(*values.shape[:-1], *diagnosis.sizes)
    return upright(plane(values, diagnosis.sizes))


def _error(diagnosis: Diagnosis) -> dict[str, Any]:
    """The logarithm of the MSE, down to a ten-thousandth of the largest or of a blank image's."""
    flat = diagnosis.error.map.flatten()
    each = (flat if sliced(diagnosis) else plane(flat, diagnosis.sizes)).double()
    top = max(each.max().item(), diagnosis.error.blank_mse or 0.0) or 1.0
    low = max(each.min().item(), MIN_SHARE * top)
    ends = math.log10(low), math.log10(top)
    if sliced(diagnosis):
        logs = levels(_over(diagnosis, each.clamp(min=low).log10()), *ends)
        return {**packed(logs), "low": ends[0], "high": ends[1], "log": True}
    return {**packed_map(each.clamp(min=low).log10(), *ends), "log": True}


def _classes(diagnosis: Diagnosis, samples: Samples) -> dict[str, Any] | None:
    """The class of every held-out image by its index in the palette; no value where it is seen."""
    if diagnosis.verdict is None or len(diagnosis.verdict.classes) != int(samples.heldout.sum()):
        return None
    names = list(KINDS)
    over = torch.full((diagnosis.points,), NOTHING, dtype=torch.uint8)
    over[samples.heldout] = torch.tensor(
        [names.index(name) if name else NOTHING for name in diagnosis.verdict.classes], dtype=torch.uint8
    )
    if not sliced(diagnosis) and (len(diagnosis.sizes) > 2 or max(diagnosis.sizes) > MAX_SIDE):
        return None  # classes have no mean
    return packed(_over(diagnosis, over).numpy())


def _volumes(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """log10 dv of every layer minus its mean over seen points, all layers on one scale that is symmetric about 0."""
    over = torch.stack([_volume(layer, diagnosis.points) for layer in diagnosis.layers.values()])
    finite = over[over.isfinite()].abs()
    if not len(finite):
        return None
    limit = max(MIN_LIMIT, finite.quantile(0.98).item())
    return {**packed(levels(_over(diagnosis, over), -limit, limit)), "low": -limit, "high": limit}


def _volume(layer: LayerDiagnosis, points: int) -> Float[Tensor, "points"]:
    shape = layer.geometry
    if shape is None or shape.volumes.seen is None or len(shape.volume) != points:
        return torch.full((points,), math.nan, dtype=torch.float64)
    return shape.volume.double().clamp(min=shape.volumes.floor).log10() - shape.volumes.seen


def _tuning(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """The most variable units of every layer, (layers, units, y, x), each on its own scale."""
    shape = _over(diagnosis, torch.zeros(diagnosis.points)).shape
    pictures = torch.full((len(diagnosis.layers), UNITS, *shape), NOTHING, dtype=torch.uint8)
    numbers: list[list[int]] = []
    for index, layer in enumerate(diagnosis.layers.values()):
        tuned = layer.tuning
        if tuned is None:
            numbers.append([])
            continue
        flat = tuned.maps.flatten(1)
        best = flat.nan_to_num(0).var(1).topk(min(UNITS, len(flat))).indices
        for row, unit in enumerate(best.tolist()):
            picture = _over(diagnosis, flat[unit])
            pictures[index, row] = torch.from_numpy(levels(picture, picture.min().item(), picture.max().item()))
        numbers.append(tuned.shown[best].tolist())
    return {**packed(pictures.numpy()), "units": numbers} if any(numbers) else None


def _kernel(diagnosis: Diagnosis, samples: Samples | None) -> dict[str, Any]:
    """Cosines between the images of some points, at most 64 x 64, and which of these are held out."""
    rows = _kernel_rows(diagnosis)
    part = diagnosis.kernels.cosine[rows][:, rows].double()
    low = min(0.0, part.nan_to_num(0).min().item())
    over_grid = samples is not None and len(samples.heldout) == diagnosis.points
    held = samples.heldout[diagnosis.kernels.rows[rows]].int().tolist() if samples is not None and over_grid else []
    return {**packed(levels(part, low, 1.0)), "low": low, "high": 1.0, "heldout": held}


def _kernel_rows(diagnosis: Diagnosis) -> Tensor:
    """Evenly spaced values of each of two factors where all combinations were compared, else evenly spaced points."""
    count = len(diagnosis.kernels.rows)
    if count <= MAX_SIDE:
        return torch.arange(count)
    if len(diagnosis.sizes) != 2 or count != math.prod(diagnosis.sizes):
        return torch.linspace(0, count - 1, MAX_SIDE).round().long()
    side = math.isqrt(MAX_SIDE)
    first, second = (torch.linspace(0, size - 1, min(size, side)).round().long() for size in diagnosis.sizes)
    return (first[:, None] * diagnosis.sizes[1] + second).flatten()


def kernel_points(diagnosis: Diagnosis) -> str:
    """Which points the map of the kernel compares, in words."""
    count = len(_kernel_rows(diagnosis))
    if count == len(diagnosis.kernels.rows):
        return "all combinations" if count == diagnosis.points else f"{count} combinations"
    if len(diagnosis.sizes) == 2 and len(diagnosis.kernels.rows) == math.prod(diagnosis.sizes):
        first, second = (min(size, math.isqrt(MAX_SIDE)) for size in diagnosis.sizes)
        return f"{first} x {second} evenly spaced combinations, {diagnosis.factors[0]} slowest"
    return f"{count} evenly spaced combinations"
