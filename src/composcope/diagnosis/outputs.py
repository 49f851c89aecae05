"""What is measured of the images: error, superposition, kernels, complexity and the verdict."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.layers import Points
from composcope.factors import column
from composcope.measures.complexity import Complexity, pixel_complexity
from composcope.measures.error import (
    ByDistance,
    distance_to_seen,
    mean_by_distance,
    mse,
    placed,
    position_error,
    shape_correlation,
    ssim_error,
)
from composcope.measures.geometry import differentiable
from composcope.measures.grid import grid_sizes
from composcope.measures.kernel_fits import KernelFit, fit_outputs
from composcope.measures.kernel_structure import block_score, kernel_terms, schmidt
from composcope.measures.kernels import (
    binary_kernel,
    cosine_kernel,
    heldout_seen_slice,
    kernel_agreement,
    l2_distance,
    overlap_kernel,
    product_kernel,
    soft_overlap_kernel,
)
from composcope.measures.superposition import (
    GapBlend,
    Superposition,
    edge_blend,
    gap_blend,
    shared_value_means,
    superposition,
)
from composcope.tasks.base import Images, Task

Notes = dict[str, str]


@dataclass(frozen=True)
class Errors:
    """Every image's distance from the truth: means over seen and held-out points, maps, and by distance into the hole.

    - `map`: MSE over the grid, (x, y, ...), or over the points where they are no whole grid; `maps`: the other numbers
      likewise ("ssim_error", "position_error", "correlation", "blank_mse").
    - `blank_mse`: that of an empty image, over the held-out points if there are any. No MSE means anything without it.
    - `accuracy`: share of held-out images drawn within 1 pixel of their place.
    """

    map: Float[Tensor, "..."]
    maps: dict[str, Float[Tensor, "..."]]
    seen_mse: float | None
    heldout_mse: float | None
    blank_mse: float | None
    seen_blank_mse: float | None
    seen_ssim_error: float | None
    heldout_ssim_error: float | None
    seen_position_error: float | None
    heldout_position_error: float | None
    seen_accuracy: float | None
    accuracy: float | None
    seen_correlation: float | None
    heldout_correlation: float | None
    by_distance: dict[str, ByDistance]


def errors(task: Task, images: Images, truth: Images, points: Points, notes: Notes) -> Errors:
    """Compare every image with the truth in all the ways that apply."""
    each = {
        "mse": mse(images, truth).double(),
        "blank_mse": mse(task.blank(len(truth)), truth).double(),
        "correlation": shape_correlation(images, truth),
    }
    if min(truth.shape[-2:]) >= 3:
        each["ssim_error"] = ssim_error(images, truth)
    else:
        notes["ssim_error"] = f"images of {truth.shape[-2]} x {truth.shape[-1]} pixels are too small for it"
    if task.positions:
        columns = [column(task.factors, name) for name in task.positions]
        found = task.locate(images)
        each["position_error"] = position_error(found, points.latents[:, columns]).double()
        each["placed"] = placed(found, points.latents[:, columns]).double()
    else:
        notes["position"] = f"{task.kind} tells no position from an image"
    held, seen = points.heldout, ~points.heldout
    distances = distance_to_seen(points.latents, held, points.factors)[held]
    sizes = grid_sizes(points.factors) if points.full else (len(truth),)
    return Errors(
        map=each["mse"].reshape(sizes),
        maps={name: values.reshape(sizes) for name, values in each.items() if name not in ("mse", "placed")},
        seen_mse=_mean(each, "mse", seen),
        heldout_mse=_mean(each, "mse", held),
        blank_mse=_mean(each, "blank_mse", held if held.any() else seen),
        seen_blank_mse=_mean(each, "blank_mse", seen),
        seen_ssim_error=_mean(each, "ssim_error", seen),
        heldout_ssim_error=_mean(each, "ssim_error", held),
        seen_position_error=_mean(each, "position_error", seen),
        heldout_position_error=_mean(each, "position_error", held),
        seen_accuracy=_mean(each, "placed", seen),
        accuracy=_mean(each, "placed", held),
        seen_correlation=_mean(each, "correlation", seen),
        heldout_correlation=_mean(each, "correlation", held),
        by_distance={name: mean_by_distance(values[held], distances) for name, values in each.items()},
    )


def _mean(each: dict[str, Tensor], name: str, mask: Tensor) -> float | None:
    return each[name][mask].mean().item() if name in each and mask.any() else None


@dataclass(frozen=True)
class SuperpositionReport:
    """Whether held-out outputs are sums of what was seen; None where a number does not apply.

    - `parts`: correlation with the sum of the outputs for one factor's code and the others' mean code.
    - `means`: correlation with the sum, over factors, of the mean of seen outputs that share the factor's value.
    - `blend`: for a single factor with distances, how near the outputs are to the blend of the gap's edges.
    """

    parts: Superposition | None
    means: Superposition | None
    blend: GapBlend | None


def superposition_report(
    draw: Callable[[Tensor], Images],
    codes: Tensor,
    columns: list[Tensor] | None,
    outputs: Images,
    truth: Images,
    points: Points,
    generator: torch.Generator,
    notes: Notes,
) -> SuperpositionReport | None:
    """Compare the held-out outputs with sums and blends. `draw`: codes -> foreground; `columns`: each factor's code."""
    held = points.heldout
    if not held.any():
        notes["superposition"] = "no point is held out"
        return None
    parts = means = blend = None
    if len(points.factors) > 1:
        try:
            means = superposition(
                outputs[held], shared_value_means(outputs, points.latents, held, points.factors), generator
            )
        except ValueError as error:
            notes["superposition.means"] = str(error)
        if columns is None:
            notes["superposition.parts"] = "some code units tell several factors at once; there is no code of one alone"
        else:
            mean = codes[~held].mean(0)
            alone = [torch.where(own, codes[held], mean) for own in columns]
            parts = superposition(outputs[held], [draw(some) for some in alone], generator)
    along = differentiable(points.factors)
    if len(along) == 1:
        try:
            edges = edge_blend(truth, points.latents, held, points.factors, points.factors[along[0]].name)
            blend = gap_blend(outputs[held], edges, truth[held])
        except ValueError as error:
            notes["superposition.blend"] = str(error)
    return SuperpositionReport(parts, means, blend)


@dataclass(frozen=True)
class KernelReport:
    """How alike the images are, between all points, and which kernel explains it.

    - `cosine`, `l2`, `overlap`: Gram matrices over the points `rows`; overlap is the soft one.
    - `agreement`: correlation of the held-out x seen part of the cosines ("binary", "binary smoothed", "product",
      "product smoothed") and of the hard overlaps ("overlap binary") with factorized kernels.
    - `schmidt_values`: the cosine kernel's Schmidt spectrum; `schmidt_rank`: terms to 5 % of its norm.
    - `terms`: sizes of its single-factor, pairwise, ... terms, by "x", "x*y"; `mixed`: what fits none; `pf_coeff`: the
      share of single-factor terms.
    - `block`: share of the kernel's variance told by which values are shared.
    - `fits`: Gaussian kernels fitted to the outputs, scored on held-out points.
    """

    rows: Tensor
    cosine: Float[Tensor, "n n"]
    l2: Float[Tensor, "n n"]
    overlap: Float[Tensor, "n n"]
    agreement: dict[str, float]
    schmidt_values: Float[Tensor, "terms"] | None
    schmidt_rank: int | None
    effective_rank: float | None
    terms: dict[str, float] | None
    mixed: float | None
    pf_coeff: float | None
    block: float | None
    fits: dict[str, KernelFit]


def kernel_report(
    task: Task, outputs: Images, points: Points, generator: torch.Generator, notes: Notes
) -> KernelReport:
    """Gram matrices of the outputs' foregrounds and what they are made of."""
    rows, factors = points.sample, points.factors
    shown, latents, held = outputs[rows], points.latents[rows], points.heldout[rows]
    cosine = cosine_kernel(shown)
    spectrum = terms = None
    if points.full and points.whole:
        terms = kernel_terms(cosine, factors)
        spectrum = schmidt(cosine, factors) if len(factors) == 2 else None
    else:
        notes["kernels.terms"] = "the points are not a whole grid, or too many to compare in pairs"
    return KernelReport(
        rows=rows,
        cosine=cosine.float(),
        l2=l2_distance(shown).float(),
        overlap=soft_overlap_kernel(shown).float(),
        agreement=_agreement(task, cosine, shown, points) if held.any() else {},
        schmidt_values=None if spectrum is None else spectrum.values[:64].clone(),
        schmidt_rank=None if spectrum is None or not spectrum.values[0] > 0 else spectrum.rank_to(0.05),
        effective_rank=None if spectrum is None or not spectrum.values[0] > 0 else spectrum.effective_rank,
        terms=None if terms is None else {"*".join(term): size for term, size in terms.theta.items()},
        mixed=None if terms is None else terms.mixed,
        pf_coeff=None if terms is None else terms.pf_coeff(),
        block=block_score(cosine, latents, factors),
        fits=_fits(shown, latents, held, points, generator, notes),
    )


def _agreement(task: Task, cosine: Tensor, shown: Images, points: Points) -> dict[str, float]:
    latents, held, factors = points.latents[points.sample], points.heldout[points.sample], points.factors
    sigma = getattr(task, "sigma", None)
    widths = {f.name: float(sigma) if sigma and f.name in task.positions else f.step for f in factors}
    kernels = {
        "binary": binary_kernel(latents, factors),
        "binary smoothed": binary_kernel(latents, factors, widths),
        "product smoothed": product_kernel(latents, factors, widths),
    }
    part = heldout_seen_slice(cosine, held)
    found = {name: kernel_agreement(part, heldout_seen_slice(kernel, held)) for name, kernel in kernels.items()}
    hard = heldout_seen_slice(overlap_kernel(shown), held)
    return {**found, "overlap binary": kernel_agreement(hard, heldout_seen_slice(kernels["binary"], held))}


def _fits(
    shown: Images, latents: Tensor, held: Tensor, points: Points, generator: torch.Generator, notes: Notes
) -> dict[str, KernelFit]:
    try:
        return {
            "factorized": fit_outputs(shown, latents, held, points.factors, "factorized", generator),
            "radial": fit_outputs(shown, latents, held, points.factors, "radial", generator),
        }
    except (ValueError, RuntimeError) as error:
        notes["kernels.fits"] = str(error).splitlines()[0]
        return {}


def complexities(outputs: Images, truth: Images, points: Points, notes: Notes) -> dict[str, Complexity] | None:
    """Product terms a pixel, of targets and outputs."""
    if not points.full or len(points.factors) != 2:
        notes["complexity"] = "it is of two factors over their whole grid"
        return None
    return {
        name: pixel_complexity(images, points.factors) for name, images in (("targets", truth), ("outputs", outputs))
    }


def additive_cross(task: Task, latents: Tensor) -> Images | None:
    """The sum of the task's stripes, one factor of a place at a time; None if the task cannot draw any."""
    names = task.positions or tuple(factor.name for factor in task.factors)
    columns = [column(task.factors, name) for name in names]
    if len(columns) < 2:
        return None
    stripes = []
    for kept in columns:
        alone = latents.clone()
        alone[:, [other for other in columns if other != kept]] = torch.nan
        try:
            stripes.append(task.foreground(task.render(alone)))
        except ValueError:
            return None
    return torch.stack(stripes).sum(0)
