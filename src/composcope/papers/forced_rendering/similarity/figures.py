"""Figures 1d, 1e and 8: are held-out images sums of seen ones, and which images are alike?"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import max_pool2d

from composcope.diagnosis.structure import reference_kernels
from composcope.factors import Latents
from composcope.holdouts import Square
from composcope.measures.error import shape_correlation
from composcope.measures.kernel_structure import block_score
from composcope.measures.kernels import cosine_kernel, heldout_seen_slice, kernel_agreement, overlap_kernel
from composcope.papers.forced_rendering.base import all_codes, bump_alone, bump_and_rate, spread_rows
from composcope.papers.forced_rendering.similarity.drawing import (
    DARK,
    OVERLAP,
    RAW,
    draw_heldout_similarity,
    draw_matrices,
    draw_sums,
)
from composcope.runs.run import Run
from composcope.sampling import Draws, Sampling
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, of_preset, only, together
from composcope.tasks.base import Images
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What differs from the base run.

    - `inner`: the part of the hole in which held-out images are compared with sums.
    - `sums_sampling`, `sums_training`: of figure 1d; None for the base run's own.
    - `short_training`, `short_rate_training`: of figures 1e and 8.
    - `short_seeds`: seeds of figures 1e and 8, `sums_seeds`: of figure 1d; None for the base run's.
    """

    inner: Square
    sums_sampling: Sampling | None
    sums_training: Training | None
    short_training: Training
    short_rate_training: Training
    short_seeds: tuple[int, ...] | None = None
    sums_seeds: tuple[int, ...] | None = None


SIZES = {
    # The base run has seen every combination, as 20000 draws have. The authors' 15 of 50 epochs would be 450 steps,
    # after which two of the seeds 0 to 5 have not learned their training images; after 750 all have.
    "quick": Sizes(
        inner=Square(6, 9),
        sums_sampling=None,
        sums_training=None,
        short_training=Training(steps=750, batch=16),
        short_rate_training=Training(steps=1200, batch=16),
        short_seeds=tuple(range(25, 30)),  # the length was changed after a look at 20 to 24
    ),
    "paper": Sizes(
        inner=Square(10, 18),
        sums_sampling=Draws(20000),
        # The sign of the gap in volume changes with training: claim 33 follows it.
        sums_training=Training(epochs=20, snapshots=tuple(625 * epoch for epoch in (1, 2, 3, 4, 6, 8, 10, 13, 16, 20))),
        sums_seeds=tuple(range(20, 30)),
        short_training=Training(epochs=15),
        short_rate_training=Training(epochs=15),
    ),
    "tiny": Sizes(
        inner=Square(3, 4),
        sums_sampling=None,
        sums_training=None,
        short_training=Training(steps=3, batch=8),
        short_rate_training=Training(steps=3, batch=8),
    ),
}


def sums(preset: Preset) -> Plan:
    """The bump code with many draws."""
    sizes = of_preset(SIZES, preset)
    plain = bump_alone(replace(preset, seeds=sizes.sums_seeds))["bump"]
    changes = {"sampling": sizes.sums_sampling, "training": sizes.sums_training}
    changed: dict[str, Any] = {name: change for name, change in changes.items() if change is not None}
    return {"bump": tuple(replace(spec, **changed) for spec in plain)}


# The bump code with many draws and, for comparison, the base runs of the other codes.
all_sums = together(all_codes, sums)


def short(preset: Preset) -> Plan:
    """The paper's two codes, trained for less time."""
    sizes = of_preset(SIZES, preset)
    plain = bump_and_rate(replace(preset, seeds=sizes.short_seeds))
    lengths = {"bump": sizes.short_training, "rate": sizes.short_rate_training}
    return {code: tuple(replace(spec, training=lengths[code]) for spec in plain[code]) for code in lengths}


short_bump = only(short, "bump")


KINDS = (RAW, "cosine", "l2", OVERLAP)
"""The paper's three matrices."""

SHOWN = 3
"""How many points of the inner part of the hole are shown."""

MAX_POINTS = 400
"""How many points a drawn matrix has at most: larger grids show every second x and y, or every third."""


def inner_region(run: Run, inner: Square) -> Bool[Tensor, "heldout"]:
    """Which held-out points are in the inner part of the hole."""
    return inner.contains(run.split.latents[run.split.mask])


def inner_correlation(run: Run, inner: Square) -> float | None:
    """Correlation of held-out images with the sum of their parts in the inner part of the hole."""
    superposition = run.diagnosis.superposition
    if superposition is None or superposition.parts is None:
        return None
    return float(superposition.parts.correlations[inner_region(run, inner)].mean())


PEAK = 0.5
"""A bump counts if it is at least this share of the image's maximum: half as dark as the darkest."""


@dataclass(frozen=True)
class Peaks:
    """Bumps in some images: how many each has, and which share of all of them lie at the true x or y.

    - `chance`: the share of all pixels that lie within 1 pixel of the true x or y.
    """

    counts: Int[Tensor, "images"]
    aligned: float
    chance: float

    @property
    def several(self) -> float:
        """Share of images with at least two bumps."""
        return (self.counts >= 2).double().mean().item()


def peaks(foregrounds: Images, points: Latents) -> Peaks:
    """Local maxima of at least `PEAK` of the image's maximum, by their place: within 1 pixel of the true x or y?"""
    images = foregrounds[:, 0]
    highest = max_pool2d(images[:, None], 3, stride=1, padding=1)[:, 0]
    threshold = PEAK * images.amax((1, 2), keepdim=True).clamp(min=1e-6)
    bumps = (images == highest) & (images >= threshold)
    rows, columns = torch.arange(images.shape[1]), torch.arange(images.shape[2])
    near_x = (columns[None, :] - points[:, :1]).abs() <= 1
    near_y = (rows[None, :] - points[:, 1:2]).abs() <= 1
    near = near_y[:, :, None] | near_x[:, None, :]
    aligned = (bumps & near).sum() / bumps.sum().clamp(min=1)
    return Peaks(bumps.sum((1, 2)), aligned.item(), near.double().mean().item())


def inner_peaks(run: Run, inner: Square) -> Peaks:
    """The bumps of images in the inner part of the hole."""
    latents = run.split.latents
    inside = inner.contains(latents) & run.split.mask
    return peaks(run.spec.task.foreground(run.draw()[inside]), latents[inside])


def sum_scores(evidence: Evidence) -> Numbers:
    """Correlations of held-out images with sums; some images of the bump code beside the sum of their parts.

    "sum of parts" is the paper's, in the inner part of the hole, which is where the authors show it, and in the whole
    hole; "sum of means" is of the means of seen outputs that share x and of those that share y.
    """
    inner = of_preset(SIZES, evidence.preset).inner
    numbers = evidence.numbers("code", lambda run: _sum_scores(run, inner))
    return replace(numbers, first={"bump": _parts(evidence.first("bump"), inner)})


def _parts(run: Run, inner: Square) -> Row:
    """Foregrounds at a diagonal of the inner part of the hole: true, by the decoder, and of x and y alone."""
    spread = spread_rows(run.split.latents, inner.contains(run.split.latents), SHOWN)
    rows = spread[:: SHOWN + 1]
    x_part, y_part = run.parts_alone(rows)
    images = run.spec.task.foreground(run.draw()[rows])
    return {
        "points": run.split.latents[rows],
        "truth": run.spec.task.foreground(run.truth[rows]),
        "images": images,
        "x part": x_part,
        "y part": y_part,
        "correlations": shape_correlation(images, x_part + y_part),
    }


def _sum_scores(run: Run, inner: Square) -> Row:
    superposition, bumps = run.diagnosis.superposition, inner_peaks(run, inner)
    parts, means = (superposition.parts, superposition.means) if superposition else (None, None)
    return {
        "sum of parts, inner": inner_correlation(run, inner),
        "sum of parts": parts.correlation if parts else None,
        "sum of parts, control": parts.control if parts else None,
        "sum of means": means.correlation if means else None,
        "sum of means, control": means.control if means else None,
        "truth": run.diagnosis.error.heldout_correlation,
        "images with several bumps, inner": bumps.several,
        "bumps at the true x or y, inner": bumps.aligned,
        "the same by chance": bumps.chance,
    }


def run_kernels(run: Run) -> dict[str, Float[Tensor, "n n"]]:
    """The factorized kernels over the points of the run's matrices."""
    return reference_kernels(run.spec.task, run.split.latents[run.diagnosis.kernels.rows])


def true_agreement(run: Run) -> dict[str, float]:
    """The agreement of the true images' cosines with each kernel: what a perfect decoder would have."""
    rows = run.diagnosis.kernels.rows
    held = run.split.mask[rows]
    cosines = heldout_seen_slice(cosine_kernel(run.spec.task.foreground(run.truth[rows])), held)
    return {
        name: kernel_agreement(cosines, heldout_seen_slice(kernel, held)) for name, kernel in run_kernels(run).items()
    }


def heldout_similarity(evidence: Evidence) -> Numbers:
    """How similar held-out images are to seen ones: matrices of the first seed, and every seed's agreement.

    Reference kernels and similarities of the decoder's images are of held-out x seen images, by name.
    """

    def shown(run: Run) -> Row:
        measured = run.diagnosis.kernels
        held = run.split.mask[measured.rows]
        grams = {OVERLAP: authors_overlap(run), "cosine": measured.cosine, "soft overlap": measured.overlap}
        similarities = {name: heldout_seen_slice(gram, held) for name, gram in grams.items()}
        kernels = {name: heldout_seen_slice(kernel, held) for name, kernel in run_kernels(run).items()}
        agreement = {
            name: [kernel_agreement(similarity, kernel) for kernel in kernels.values()]
            for name, similarity in similarities.items()
        }
        return {"kernels": kernels, "similarities": similarities, "agreement": agreement}

    return evidence.numbers("code", _agreement_scores, shown)


def authors_overlap(run: Run) -> Float[Tensor, "n n"]:
    """Share of pixels that are dark in both images: below 0.3 in the raw image, that is, foregrounds above 0.7."""
    return overlap_kernel(run.spec.task.foreground(run.draw()[run.diagnosis.kernels.rows]), DARK)


def overlap_agreement(run: Run) -> dict[str, float] | None:
    """Correlation of the authors' overlap with each kernel; None if no held-out image has a pixel that dark."""
    held = run.split.mask[run.diagnosis.kernels.rows]
    overlap = heldout_seen_slice(authors_overlap(run), held)
    if not overlap.any():
        return None
    return {
        name: kernel_agreement(overlap, heldout_seen_slice(kernel, held)) for name, kernel in run_kernels(run).items()
    }


def _agreement_scores(run: Run) -> Row:
    """Agreement of the cosines with each kernel, that of true images, and that of the authors' overlap."""
    agreement, true, overlap = run.diagnosis.kernels.agreement, true_agreement(run), overlap_agreement(run) or {}
    row: Row = {}
    for name in true:
        row |= {name: agreement.get(name), f"{name} (true images)": true[name], f"{name} (overlap)": overlap.get(name)}
    return row


def matrices(evidence: Evidence) -> Numbers:
    """Matrices of the first seed, seen points first, and every seed's contrasts of blocks, which are of all points."""
    run = evidence.any_run
    rows = run.diagnosis.kernels.rows
    seen = int((~run.split.mask[rows][drawn_points(run.split.latents[rows])]).sum())
    return evidence.numbers(
        "code", _block_scores, lambda run: {kind: seen_first(run, kind) for kind in KINDS}, {"seen": seen}
    )


def _block_scores(run: Run) -> Row:
    row: Row = {f"variance explained by blocks, {kind}": block_share(run, kind) for kind in KINDS}
    row |= {f"contrast of blocks, {kind}": contrast(run, kind) for kind in KINDS}
    return row | {"variance explained by a shared x or y, cosine": blocks(run, "cosine")}


def gram_of(run: Run, kind: str) -> Float[Tensor, "n n"]:
    """A matrix of the run: cosine or distance of foregrounds, or the authors' cosine of raw images or overlap.

    With dark bumps the background of an image is 1, so that the cosines of images are all near 1.
    """
    if kind == RAW:
        return cosine_kernel(run.draw()[run.diagnosis.kernels.rows])
    return authors_overlap(run) if kind == OVERLAP else getattr(run.diagnosis.kernels, kind)


def seen_first(run: Run, kind: str) -> Float[Tensor, "n n"]:
    """A matrix of the run over the drawn points, seen ones before held-out ones, each in the grid's order."""
    rows = run.diagnosis.kernels.rows
    points = drawn_points(run.split.latents[rows])
    order = points[run.split.mask[rows][points].long().argsort(stable=True)]
    return gram_of(run, kind)[order][:, order]


def drawn_points(latents: Latents) -> Int[Tensor, "rows"]:
    """The rows of at most `MAX_POINTS` points: those whose x and y are multiples of the smallest step that does it.

    >>> drawn_points(torch.cartesian_prod(torch.arange(21.0), torch.arange(21.0)))[:12].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 42]
    """
    step, rows = 1, torch.arange(len(latents))
    while len(rows) > MAX_POINTS:
        step += 1
        rows = (latents % step == 0).all(1).nonzero()[:, 0]
    return rows


def block_contrast(gram: Float[Tensor, "n n"], held: Bool[Tensor, "n"]) -> float | None:
    """(within - between) / (within + between): mean entries of the blocks seen x seen and held-out x held-out, which
    count equally and without their diagonals, and of held-out x seen; None for a matrix of zeros.

    >>> block_contrast(torch.tensor([[9.0, 3.0, 1.0], [3.0, 9.0, 1.0], [1.0, 1.0, 9.0]]), torch.tensor([0, 0, 1]) > 0)
    0.5
    """
    between = gram[held][:, ~held].double().mean().item()
    blocks = [_without_diagonal(gram[part][:, part]) for part in (held, ~held) if part.sum() > 1]
    within = sum(block.double().mean().item() for block in blocks) / len(blocks)
    return (within - between) / (within + between) if within + between > 0 else None


def _without_diagonal(block: Shaped[Tensor, "n n"]) -> Shaped[Tensor, "entries"]:
    return block[~torch.eye(len(block), dtype=torch.bool)]


def variance_of_blocks(gram: Float[Tensor, "n n"], held: Bool[Tensor, "n"]) -> float | None:
    """Share of the variance of a matrix's entries off the diagonal that lies between seen x seen, held-out x held-out
    and the rest; None for a matrix without variance.

    >>> gram = torch.tensor([[9.0, 3.0, 1.0, 1.0], [3.0, 9.0, 1.0, 1.0], [1.0, 1.0, 9.0, 2.0], [1.0, 1.0, 2.0, 9.0]])
    >>> variance_of_blocks(gram, torch.tensor([False, False, True, True]))
    1.0
    """
    entries = _without_diagonal(gram).double()
    total = entries.var(correction=0).item()
    if total == 0:
        return None
    kinds = _without_diagonal(held[:, None].long() + held[None, :].long())
    means = torch.stack([entries[kinds == kind].mean() for kind in range(3)])
    return means[kinds].var(correction=0).item() / total


def block_share(run: Run, kind: str) -> float | None:
    """The share of a matrix's variance that its blocks explain."""
    return variance_of_blocks(gram_of(run, kind), run.split.mask[run.diagnosis.kernels.rows])


def contrast(run: Run, kind: str) -> float | None:
    """The contrast of a matrix's blocks; of distances, which are small between similar images, with its sign turned."""
    value = block_contrast(gram_of(run, kind), run.split.mask[run.diagnosis.kernels.rows])
    return -value if value is not None and kind == "l2" else value


def blocks(run: Run, kind: str) -> float | None:
    """Share of a matrix's variance explained by which values two points share."""
    kernels = run.diagnosis.kernels
    return block_score(getattr(kernels, kind), run.split.latents[kernels.rows], run.spec.task.factors)


PANELS = (
    Panel(
        "1d",
        "Held-out images as sums",
        "The decoder's image beside the sum of its images for x alone and y alone, in the inner part of the hole; "
        "grey: sums of shuffled positions.",
        all_sums,
        sum_scores,
        draw_sums,
        partial=True,
        essential=("bump",),
        first_seed="images",
    ),
    Panel(
        "1e",
        "Similarity of held-out to seen images",
        "Whether the decoder's matrices look more like the kernel of a shared x or y, or like that of x and y shared.",
        short_bump,
        heldout_similarity,
        draw_heldout_similarity,
        first_seed="matrices",
    ),
    Panel(
        "8",
        "Similarity of all images",
        "Whether images of the outlined blocks, seen with seen and held-out with held-out, are more alike than images "
        "across; of grids with more than 400 points, every second x and y.",
        short,
        matrices,
        draw_matrices,
        first_seed="matrices",
    ),
)
