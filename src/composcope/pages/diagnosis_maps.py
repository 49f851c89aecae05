"""The maps of a diagnosis as compact data, drawn by `page.js` when the diagnosis is opened."""

import math
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.pages.maps import MOST, NOTHING, levels, outline, packed_map, plane, upright
from composcope.pages.page import packed
from composcope.pages.samples import Samples, packed_images
from composcope.tasks.base import Images
from composcope.verdict import KINDS

SMALLEST_SHARE = 1e-4  # of the largest error; smaller errors look the same
MOST_SLICED = (
    8192  # combinations of three or more factors whose maps can be cut along any two; of more, the mean is shown
)
UNITS = 4  # whose tuning is shown in each layer
LEAST_LIMIT = 0.3  # of the scale of log10 volumes, so that noise does not look like structure


def diagnosis_maps(diagnosis: Diagnosis, samples: Samples | None, expected: Images | None = None) -> dict[str, Any]:
    """Every map, by the name under which the page draws it; `expected`: images forecast at the samples."""
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
    return len(diagnosis.sizes) > 2 and points == math.prod(diagnosis.sizes) and points <= MOST_SLICED


def _factors(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The factors' names and values, by name where they have one."""
    verdict = diagnosis.verdict
    factors = []
    for name, size in zip(diagnosis.factors, diagnosis.sizes, strict=True):
        known = [] if verdict is None else verdict.names.get(name) or [f"{v:g}" for v in verdict.values.get(name, ())]
        factors.append({"name": name, "values": list(known) if len(known) == size else list(range(size))})
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
    low = max(each.min().item(), SMALLEST_SHARE * top)
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
    if not sliced(diagnosis) and (len(diagnosis.sizes) > 2 or max(diagnosis.sizes) > MOST):
        return None  # classes have no mean
    return packed(_over(diagnosis, over).numpy())


def _volumes(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """log10 dv of every layer minus its mean over seen points, all layers on one scale that is symmetric about 0."""
    over = torch.stack([_volume(layer, diagnosis.points) for layer in diagnosis.layers.values()])
    known = over[over.isfinite()].abs()
    if not len(known):
        return None
    limit = max(LEAST_LIMIT, known.quantile(0.98).item())
    return {**packed(levels(_over(diagnosis, over), -limit, limit)), "low": -limit, "high": limit}


def _volume(layer: LayerDiagnosis, points: int) -> Float[Tensor, "points"]:
    shape = layer.geometry
    if shape is None or shape.volumes.seen is None or len(shape.volume) != points:
        return torch.full((points,), math.nan, dtype=torch.float64)
    return shape.volume.double().clamp(min=shape.volumes.floor).log10() - shape.volumes.seen


def _tuning(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """The most variable units of every layer, (layers, units, y, x), each on its own scale."""
    shape = _over(diagnosis, torch.zeros(diagnosis.points)).shape
    shown = torch.full((len(diagnosis.layers), UNITS, *shape), NOTHING, dtype=torch.uint8)
    numbers: list[list[int]] = []
    for index, layer in enumerate(diagnosis.layers.values()):
        tuned = layer.tuning
        if tuned is None:
            numbers.append([])
            continue
        flat = tuned.maps.flatten(1)
        best = flat.nan_to_num(0).var(1).topk(min(UNITS, len(flat))).indices
        for row, unit in enumerate(best.tolist()):
            drawn = _over(diagnosis, flat[unit])
            shown[index, row] = torch.from_numpy(levels(drawn, drawn.min().item(), drawn.max().item()))
        numbers.append(tuned.shown[best].tolist())
    return {**packed(shown.numpy()), "units": numbers} if any(numbers) else None


def _kernel(diagnosis: Diagnosis, samples: Samples | None) -> dict[str, Any]:
    """Cosines between the images of some points, at most 64 x 64, and which of these are held out."""
    rows = _kernel_rows(diagnosis)
    part = diagnosis.kernels.cosine[rows][:, rows].double()
    low = min(0.0, part.nan_to_num(0).min().item())
    known = samples is not None and len(samples.heldout) == diagnosis.points
    held = samples.heldout[diagnosis.kernels.rows[rows]].int().tolist() if samples is not None and known else []
    return {**packed(levels(part, low, 1.0)), "low": low, "high": 1.0, "heldout": held}


def _kernel_rows(diagnosis: Diagnosis) -> Tensor:
    """Evenly spaced values of each of two factors where all combinations were compared, else evenly spaced points."""
    count = len(diagnosis.kernels.rows)
    if count <= MOST:
        return torch.arange(count)
    if len(diagnosis.sizes) != 2 or count != math.prod(diagnosis.sizes):
        return torch.linspace(0, count - 1, MOST).round().long()
    side = math.isqrt(MOST)
    first, second = (torch.linspace(0, size - 1, min(size, side)).round().long() for size in diagnosis.sizes)
    return (first[:, None] * diagnosis.sizes[1] + second).flatten()


def kernel_points(diagnosis: Diagnosis) -> str:
    """Which points the map of the kernel compares, in words."""
    count = len(_kernel_rows(diagnosis))
    if count == len(diagnosis.kernels.rows):
        return "all combinations" if count == diagnosis.points else f"{count} combinations"
    if len(diagnosis.sizes) == 2 and len(diagnosis.kernels.rows) == math.prod(diagnosis.sizes):
        first, second = (min(size, math.isqrt(MOST)) for size in diagnosis.sizes)
        return f"{first} x {second} evenly spaced combinations, {diagnosis.factors[0]} slowest"
    return f"{count} evenly spaced combinations"
