"""Figures 1d, 1e and 8: are held-out images sums of seen ones, and which images are alike?"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.experiments.run import outputs
from composcope.factors import Latents
from composcope.measures.error import distance_to_seen, shape_correlation
from composcope.measures.kernel_structure import block_score
from composcope.measures.kernels import (
    binary_kernel,
    cosine_kernel,
    heldout_seen_slice,
    kernel_agreement,
    overlap_kernel,
    product_kernel,
)
from composcope.paper.codes import spread_rows
from composcope.paper.evidence import Evidence, Rows, Run
from composcope.tasks.base import Images

KINDS = ("cosine", "l2", "overlap")


def parts_alone(run: Run, rows: list[int]) -> list[Images]:
    """D(x_super) and D(y_super) as foregrounds: one factor's code, and for the other the mean code of seen points."""
    task, encoding = run.spec.task, run.spec.encoding
    codes = encoding.encode(run.parts.latents, task.factors)
    sizes = encoding.code_sizes(task.factors)
    mean = codes[~run.parts.mask].mean(0).split(sizes)
    own = codes[rows].split(sizes, 1)
    drawer = run.spec.decoder.drawer(run.result.module)
    assert drawer is not None, "only what draws is compared"
    alone = []
    for kept in range(len(sizes)):
        pieces = [own[axis] if axis == kept else mean[axis].expand(len(rows), -1) for axis in range(len(sizes))]
        alone.append(task.foreground(outputs(drawer, torch.cat(pieces, 1))))
    return alone


@dataclass(frozen=True)
class Summed:
    """Some held-out images of the first seed beside the sum of their parts, as foregrounds, and every code's scores.

    - `scores`: a row a run; "sum of parts" is the paper's, also for points more than 2 steps from the edge of the hole;
      "sum of means" is of seen outputs sharing x and sharing y.
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

    def table(self) -> Rows:
        return self.scores


def summed(evidence: Evidence) -> Summed:
    """Figure 1d."""
    run = evidence.first("bump")
    task = run.spec.task
    lattice = spread_rows(run.parts.latents, run.parts.mask)
    rows = lattice[:: max(1, len(lattice) // 2)][:3]  # a diagonal of the hole: corner, middle, corner
    x_part, y_part = parts_alone(run, rows)
    drawn = task.foreground(run.images[rows])
    return Summed(
        code="bump",
        points=run.parts.latents[rows],
        truth=task.foreground(run.truth[rows]),
        drawn=drawn,
        x_part=x_part,
        y_part=y_part,
        correlations=shape_correlation(drawn, x_part + y_part),
        scores=[_scores(code, run) for code, runs in evidence.items() for run in runs],
    )


def _scores(code: str, run: Run) -> dict[str, object]:
    found = run.diagnosis.superposition
    parts, means = (found.parts, found.means) if found else (None, None)
    away = distance_to_seen(run.parts.latents, run.parts.mask, run.spec.task.factors)[run.parts.mask] > 2
    return {
        "code": code,
        "seed": run.spec.seed,
        "sum of parts": parts.correlation if parts else None,
        "beyond 2 steps": parts.correlations[away].mean().item() if parts and away.any() else None,
        "its control": parts.control if parts else None,
        "sum of means": means.correlation if means else None,
        "its control (means)": means.control if means else None,
        "truth": run.diagnosis.error.heldout_correlation,
    }


def theory(run: Run) -> dict[str, Float[Tensor, "n n"]]:
    """The factorized kernels over the points of the run's matrices: by Kronecker deltas, and with the bump's width."""
    latents, factors = run.parts.latents[run.diagnosis.kernels.rows], run.spec.task.factors
    width = float(getattr(run.spec.task, "sigma", 1.0))
    return {
        "binary": binary_kernel(latents, factors),
        "binary smoothed": binary_kernel(latents, factors, width),
        "product smoothed": product_kernel(latents, factors, width),
    }


def true_agreement(run: Run) -> dict[str, float]:
    """What a decoder that draws the truth would have: agreement of true images' cosines with each kernel."""
    rows = run.diagnosis.kernels.rows
    held = run.parts.mask[rows]
    cosines = heldout_seen_slice(cosine_kernel(run.spec.task.foreground(run.truth[rows])), held)
    return {name: kernel_agreement(cosines, heldout_seen_slice(kernel, held)) for name, kernel in theory(run).items()}


@dataclass(frozen=True)
class Alike:
    """How held-out images resemble seen ones: matrices of the first seed, held-out x seen, and every seed's agreement.

    - `theory`: kernels by name; `found`: likeness of the decoder's images by name. `scores`: a row a run.
    """

    theory: dict[str, Float[Tensor, "heldout seen"]]
    found: dict[str, Float[Tensor, "heldout seen"]]
    agreement: dict[tuple[str, str], float]
    scores: Rows

    def table(self) -> Rows:
        return self.scores


def alike(evidence: Evidence) -> Alike:
    """Figure 1e."""
    run = evidence.first("bump")
    kernels = run.diagnosis.kernels
    held = run.parts.mask[kernels.rows]
    hard = overlap_kernel(run.spec.task.foreground(run.images[kernels.rows]))
    grams = {"cosine": kernels.cosine, "soft overlap": kernels.overlap, "overlap above 0.3": hard}
    found = {name: heldout_seen_slice(gram, held) for name, gram in grams.items()}
    kernel = {name: heldout_seen_slice(gram, held) for name, gram in theory(run).items()}
    return Alike(
        theory=kernel,
        found=found,
        agreement={(a, b): kernel_agreement(found[a], kernel[b]) for a in found for b in kernel},
        scores=[_agreement(code, run) for code, runs in evidence.items() for run in runs],
    )


def _agreement(code: str, run: Run) -> dict[str, object]:
    """Agreement of the cosines with each kernel; in brackets that of true images."""
    found, true = run.diagnosis.kernels.agreement, true_agreement(run)
    row: dict[str, object] = {"code": code, "seed": run.spec.seed}
    for name in true:
        row |= {name: found.get(name), f"{name} (true images)": true[name]}
    return row | {"overlap above 0.3, binary": found.get("overlap binary")}


@dataclass(frozen=True)
class Matrices:
    """Full matrices of the first seed, by code and kind, with seen points first; and every seed's block scores."""

    seen: int
    grams: dict[str, dict[str, Float[Tensor, "n n"]]]
    scores: Rows

    def table(self) -> Rows:
        return self.scores


def matrices(evidence: Evidence) -> Matrices:
    """Figure 8."""
    first = evidence.first("bump")
    held = first.parts.mask[first.diagnosis.kernels.rows]
    return Matrices(
        seen=int((~held).sum()),
        grams={code: {kind: ordered(evidence.first(code), kind) for kind in KINDS} for code in evidence},
        scores=[_blocks(code, run) for code, runs in evidence.items() for run in runs],
    )


def ordered(run: Run, kind: str) -> Float[Tensor, "n n"]:
    """A matrix of the run with seen points before held-out ones, each in the grid's order."""
    kernels = run.diagnosis.kernels
    gram: Tensor = getattr(kernels, kind)
    held: Bool[Tensor, "n"] = run.parts.mask[kernels.rows]
    order = held.long().argsort(stable=True)
    return gram[order][:, order]


def blocks(run: Run, kind: str) -> float | None:
    """Share of a matrix's variance told by which values two points share."""
    kernels = run.diagnosis.kernels
    return block_score(getattr(kernels, kind), run.parts.latents[kernels.rows], run.spec.task.factors)


def _blocks(code: str, run: Run) -> dict[str, object]:
    return {"code": code, "seed": run.spec.seed, **{f"blocks, {kind}": blocks(run, kind) for kind in KINDS}}
