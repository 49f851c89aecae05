"""The numbers behind figures 1d, 1e and 8: are held-out images sums of seen ones, and which images are alike?"""

from collections import Counter
from dataclasses import dataclass, replace

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
from composcope.papers.forced_rendering.base import CODES, spread_rows
from composcope.papers.forced_rendering.similarity.plan import sizes_of
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import label_of
from composcope.tasks.base import Images

DARK = 0.7
OVERLAP = f"overlap above {DARK}"
RAW = "cosine of raw images"
KINDS = (RAW, "cosine", "l2", OVERLAP)
"""The paper's three matrices."""

SHOWN = 3
"""How many points of the inner part of the hole are shown."""

MOST_POINTS = 400
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
    found = (images == highest) & (images >= threshold)
    rows, columns = torch.arange(images.shape[1]), torch.arange(images.shape[2])
    near_x = (columns[None, :] - points[:, :1]).abs() <= 1
    near_y = (rows[None, :] - points[:, 1:2]).abs() <= 1
    near = near_y[:, :, None] | near_x[:, None, :]
    aligned = (found & near).sum() / found.sum().clamp(min=1)
    return Peaks(found.sum((1, 2)), aligned.item(), near.double().mean().item())


def inner_peaks(run: Run, inner: Square) -> Peaks:
    """The bumps of images in the inner part of the hole."""
    latents = run.split.latents
    where = inner.contains(latents) & run.split.mask
    return peaks(run.spec.task.foreground(run.draw()[where]), latents[where])


@dataclass(frozen=True)
class Sums:
    """Some held-out images of the smallest seed beside the sum of their parts, as foregrounds, and all scores.

    - `scores`: one row per run; "sum of parts" is the paper's, in the inner part of the hole, which is where the
      authors show it, and in the whole hole; "sum of means" is of the means of seen outputs that share x and of those
      that share y.
    """

    code: str
    points: Latents
    truth: Images
    drawn: Images
    x_part: Images
    y_part: Images
    correlations: Float[Tensor, "points"]
    scores: Rows

    @property
    def total(self) -> Images:
        return self.x_part + self.y_part

    def joined(self, other: "Sums") -> "Sums":
        """The scores of both, and the images of the smallest seed."""
        rows = {_place(row): row for row in (*other.scores, *self.scores)}
        shown = min((self, other), key=lambda sums: min(map(_place, sums.scores)))  # the bump code's come first
        return replace(shown, scores=[rows[place] for place in sorted(rows)])

    def seed_counts(self) -> list[int]:
        return list(Counter(row["code"] for row in self.scores).values())

    def table(self) -> Rows:
        return self.scores


def _place(row: dict[str, object]) -> tuple[int, int]:
    """The order of rows: by code, then by seed."""
    code, seed = row["code"], row["seed"]
    assert isinstance(code, str)
    assert isinstance(seed, int)
    return list(CODES).index(code), seed


def sums(evidence: Evidence) -> Sums:
    """Figure 1d."""
    run = evidence.first("bump")
    task, inner = run.spec.task, sizes_of(evidence.preset).inner
    spread = spread_rows(run.split.latents, inner.contains(run.split.latents), SHOWN)
    rows = spread[:: SHOWN + 1]  # a diagonal of the inner part of the hole
    x_part, y_part = run.parts_alone(rows)
    drawn = task.foreground(run.draw()[rows])
    return Sums(
        code="bump",
        points=run.split.latents[rows],
        truth=task.foreground(run.truth[rows]),
        drawn=drawn,
        x_part=x_part,
        y_part=y_part,
        correlations=shape_correlation(drawn, x_part + y_part),
        scores=[_sum_scores(label_of(key), run, inner) for key, runs in evidence.items() for run in runs],
    )


def _sum_scores(code: str, run: Run, inner: Square) -> dict[str, object]:
    superposition, bumps = run.diagnosis.superposition, inner_peaks(run, inner)
    parts, means = (superposition.parts, superposition.means) if superposition else (None, None)
    return {
        "code": code,
        "seed": run.spec.seed,
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


@dataclass(frozen=True)
class HeldoutSimilarity:
    """How similar held-out images are to seen ones: matrices of the smallest seed, and every seed's agreement.

    - `kernels`: the reference kernels by name; `similarities`: of the decoder's images by name; held-out x seen.
    - `agreement`: correlation of a similarity with a kernel, by both names. `scores`: one row per run.
    """

    kernels: dict[str, Float[Tensor, "heldout seen"]]
    similarities: dict[str, Float[Tensor, "heldout seen"]]
    agreement: dict[tuple[str, str], float]
    scores: Rows

    def table(self) -> Rows:
        return self.scores


def heldout_similarity(evidence: Evidence) -> HeldoutSimilarity:
    """Figure 1e."""
    run = evidence.first("bump")
    measured = run.diagnosis.kernels
    held = run.split.mask[measured.rows]
    grams = {OVERLAP: authors_overlap(run), "cosine": measured.cosine, "soft overlap": measured.overlap}
    similarities = {name: heldout_seen_slice(gram, held) for name, gram in grams.items()}
    kernels = {name: heldout_seen_slice(kernel, held) for name, kernel in run_kernels(run).items()}
    return HeldoutSimilarity(
        kernels=kernels,
        similarities=similarities,
        agreement={(a, b): kernel_agreement(similarities[a], kernels[b]) for a in similarities for b in kernels},
        scores=[_agreement_scores(label_of(key), run) for key, runs in evidence.items() for run in runs],
    )


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


def _agreement_scores(code: str, run: Run) -> dict[str, object]:
    """Agreement of the cosines with each kernel, that of true images, and that of the authors' overlap."""
    agreement, true, overlap = run.diagnosis.kernels.agreement, true_agreement(run), overlap_agreement(run) or {}
    row: dict[str, object] = {"code": code, "seed": run.spec.seed}
    for name in true:
        row |= {name: agreement.get(name), f"{name} (true images)": true[name], f"{name} (overlap)": overlap.get(name)}
    return row


@dataclass(frozen=True)
class Matrices:
    """Matrices of the smallest seed, by code and kind, seen points first; and every seed's contrasts of blocks.

    - `seen`: how many of the points are seen. `grams`: over `drawn_points`; `scores`: from all points.
    """

    seen: int
    grams: dict[str, dict[str, Float[Tensor, "n n"]]]
    scores: Rows

    def table(self) -> Rows:
        return self.scores


def matrices(evidence: Evidence) -> Matrices:
    """Figure 8."""
    first = evidence.any_run
    rows = first.diagnosis.kernels.rows
    return Matrices(
        seen=int((~first.split.mask[rows][drawn_points(first.split.latents[rows])]).sum()),
        grams={label_of(key): {kind: seen_first(evidence.first(key), kind) for kind in KINDS} for key in evidence},
        scores=[_block_scores(label_of(key), run) for key, runs in evidence.items() for run in runs],
    )


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
    drawn = drawn_points(run.split.latents[rows])
    order = drawn[run.split.mask[rows][drawn].long().argsort(stable=True)]
    return gram_of(run, kind)[order][:, order]


def drawn_points(latents: Latents) -> Int[Tensor, "drawn"]:
    """The rows of at most `MOST_POINTS` points: those whose x and y are multiples of the smallest step that does it.

    >>> drawn_points(torch.cartesian_prod(torch.arange(21.0), torch.arange(21.0)))[:12].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 42]
    """
    step, drawn = 1, torch.arange(len(latents))
    while len(drawn) > MOST_POINTS:
        step += 1
        drawn = (latents % step == 0).all(1).nonzero()[:, 0]
    return drawn


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
    found = block_contrast(gram_of(run, kind), run.split.mask[run.diagnosis.kernels.rows])
    return -found if found is not None and kind == "l2" else found


def blocks(run: Run, kind: str) -> float | None:
    """Share of a matrix's variance explained by which values two points share."""
    kernels = run.diagnosis.kernels
    return block_score(getattr(kernels, kind), run.split.latents[kernels.rows], run.spec.task.factors)


def _block_scores(code: str, run: Run) -> dict[str, object]:
    row: dict[str, object] = {"code": code, "seed": run.spec.seed}
    row |= {f"variance explained by blocks, {kind}": block_share(run, kind) for kind in KINDS}
    row |= {f"contrast of blocks, {kind}": contrast(run, kind) for kind in KINDS}
    return row | {"variance explained by a shared x or y, cosine": blocks(run, "cosine")}
