"""How outputs depend on several factors at once: kernels, products per pixel, and which factors act together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.points import Notes, Points
from composcope.factors import Latents
from composcope.measures.complexity import Complexity, independent_blocks, pixel_complexity
from composcope.measures.kernel_fits import Family, KernelFit, fit_outputs
from composcope.measures.kernel_structure import KernelRank, block_score, cp_rank, kernel_terms, schmidt
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
from composcope.measures.linear_factorization import VarianceShares, additive_blocks
from composcope.tasks.base import Images, Task
from composcope.verdict.references import Pictures, whole

# Of a search for products that takes seconds beside a diagnosis.
MAX_TERMS, MAX_STEPS = 5, 60

Gram = Float[Tensor, "n n"]


@dataclass(frozen=True)
class KernelReport:
    """How alike the images are, between all points, and which kernel explains it.

    - `cosine`, `l2`, `overlap`: Gram matrices over the points `rows`; `overlap` is the soft overlap.
    - `agreement`: correlation of the held-out x seen part of the cosines with the kernels of `reference_kernels`, and
      of the hard overlaps with the binary kernel ("overlap binary").
    - `schmidt_values`: the cosine kernel's Schmidt spectrum; `schmidt_rank`: terms to 5 % of its norm.
    - `terms`: sizes of its single-factor, pairwise, ... terms, by "x", "x*y"; `mixed`: the norm of what fits no term;
      `pf_coeff`: the share of single-factor terms.
    - `block`: share of the kernel's variance explained by which values two points share.
    - `pf_by_order`: the share of the terms of at most 1, 2, ... factors, up to 1; `rank`: of more than two factors, how
      many products of single-factor kernels it takes.
    - `fits`: Gaussian kernels fitted to the outputs, scored on held-out points.
    """

    rows: Tensor
    cosine: Gram
    l2: Gram
    overlap: Gram
    agreement: dict[str, float]
    schmidt_values: Float[Tensor, "terms"] | None
    schmidt_rank: int | None
    effective_rank: float | None
    terms: dict[str, float] | None
    mixed: float | None
    pf_coeff: float | None
    block: float | None
    fits: dict[str, KernelFit]
    pf_by_order: tuple[float, ...] | None = None
    rank: KernelRank | None = None


def no_kernels() -> KernelReport:
    """The report where kernels are not measured."""
    none = torch.zeros(0, 0)
    return KernelReport(
        torch.zeros(0, dtype=torch.long), none, none, none, {}, None, None, None, None, None, None, None, {}
    )


def reference_kernels(task: Task, latents: Latents) -> dict[str, Gram]:
    """The factorized kernels between these points: "binary", "binary smoothed" and "product smoothed".

    The smoothed ones have the width of what the task draws: sigma along the factors that are positions in the image
    (two bumps overlap by exp(-d^2 / (4 sigma^2))), one grid step along other factors, which have no width in the image.
    """
    sigma = getattr(task, "sigma", None)
    widths = {
        factor.name: float(sigma) if sigma and factor.name in task.positions else factor.step for factor in task.factors
    }
    return {
        "binary": binary_kernel(latents, task.factors),
        "binary smoothed": binary_kernel(latents, task.factors, widths),
        "product smoothed": product_kernel(latents, task.factors, widths),
    }


def kernel_report(
    task: Task, outputs: Images, points: Points, generator: torch.Generator
) -> tuple[KernelReport, Notes]:
    """Gram matrices of the outputs' foregrounds and their structure; `outputs`: those at `points.sample`."""
    notes: Notes = {}
    rows, factors = points.sample, points.factors
    latents, held = points.latents[rows], points.heldout[rows]
    cosine = cosine_kernel(outputs)
    spectrum = terms = None
    if points.full and points.whole:
        terms = kernel_terms(cosine, factors)
        spectrum = schmidt(cosine, factors) if len(factors) == 2 else None
        if spectrum is not None and not spectrum.values[0] > 0:
            spectrum = None  # images of zeros have no kernel, and so no spectrum
    else:
        notes["kernels.terms"] = "the points are not a whole grid, or too many to compare in pairs"
    fits, fit_notes = _fits(outputs, latents, held, points, generator)
    report = KernelReport(
        rows=rows,
        cosine=cosine.float(),
        l2=l2_distance(outputs).float(),
        overlap=soft_overlap_kernel(outputs).float(),
        agreement=_agreement(task, cosine, outputs, points) if held.any() else {},
        schmidt_values=None if spectrum is None else spectrum.values[:64].clone(),
        schmidt_rank=None if spectrum is None else spectrum.rank_to(0.05),
        effective_rank=None if spectrum is None else spectrum.effective_rank,
        terms=None if terms is None else {"*".join(term): size for term, size in terms.theta.items()},
        mixed=None if terms is None else terms.mixed,
        pf_coeff=None if terms is None else terms.pf_coeff(),
        block=block_score(cosine, latents, factors),
        fits=fits,
        pf_by_order=None if terms is None else terms.cumulative(),
        rank=None if terms is None or len(factors) < 3 else cp_rank(cosine, factors, most=MAX_TERMS, steps=MAX_STEPS),
    )
    return report, notes | fit_notes


def _agreement(task: Task, cosine: Gram, outputs: Images, points: Points) -> dict[str, float]:
    held = points.heldout[points.sample]
    references = {
        name: heldout_seen_slice(kernel, held)
        for name, kernel in reference_kernels(task, points.latents[points.sample]).items()
    }
    cosines, overlaps = heldout_seen_slice(cosine, held), heldout_seen_slice(overlap_kernel(outputs), held)
    agreement = {name: kernel_agreement(cosines, reference) for name, reference in references.items()}
    return {**agreement, "overlap binary": kernel_agreement(overlaps, references["binary"])}


def _fits(
    outputs: Images, latents: Tensor, held: Tensor, points: Points, generator: torch.Generator
) -> tuple[dict[str, KernelFit], Notes]:
    families: tuple[Family, ...] = ("factorized", "radial")
    try:
        return {
            family: fit_outputs(outputs, latents, held, points.factors, family, generator) for family in families
        }, {}
    except (ValueError, RuntimeError) as error:
        return {}, {"kernels.fits": str(error).splitlines()[0]}


# The blocks of three or more factors are found from the strongest pixels, so that their cost stays bounded.
MAX_PIXELS = 64
MAX_VALUES = 2**20
# The share of the norm that a split into blocks may miss: a trained decoder is never exact.
BLOCK_TOLERANCE = 0.05
CHUNK = 256  # images at a time


def complexities(outputs: Images, truth: Pictures, points: Points) -> tuple[dict[str, Complexity] | None, Notes]:
    """Product terms per pixel, of the targets and of the outputs."""
    if not points.full or len(points.factors) != 2:
        return None, {"complexity": "it is defined for two factors over their whole grid"}
    both = {"targets": whole(truth), "outputs": outputs}
    return {name: pixel_complexity(images, points.factors) for name, images in both.items()}, {}


def shared_blocks(foreground: Pictures, points: Points) -> str | None:
    """Which of three or more factors act together, as "x, y | brightness"; None for fewer, or without a whole grid.

    Factors in different blocks enter every pixel as a product, up to 5 % of the norm: partial factorization.
    """
    if not points.full or len(points.factors) < 3:
        return None
    count = max(1, min(MAX_PIXELS, MAX_VALUES // len(foreground), foreground.shape[1:].numel()))
    chunks = torch.arange(len(foreground)).split(CHUNK)
    # Sums and tables are made beforehand: what stays of each chunk would break up the memory of the images.
    energy = torch.zeros(foreground.shape[1:].numel(), dtype=torch.float64)
    for rows in chunks:
        energy += foreground[rows].flatten(1).double().square().sum(0)
    best = energy.topk(count).indices
    strongest = torch.empty(len(foreground), count, dtype=torch.float64)
    for rows in chunks:
        strongest[rows] = foreground[rows].flatten(1)[:, best].double()
    blocks = independent_blocks(strongest, points.factors, BLOCK_TOLERANCE)
    return blocks_text(blocks)


def layer_blocks(shares: VarianceShares | None) -> str | None:
    """Which of three or more factors a layer mixes, as "x, y | brightness"; up to 5 % of its variance (eq. 28)."""
    if shares is None or len(shares.by_order) < 3:
        return None
    return blocks_text(additive_blocks(shares, BLOCK_TOLERANCE))


def blocks_text(blocks: Sequence[Sequence[str]]) -> str:
    return " | ".join(", ".join(block) for block in blocks)
