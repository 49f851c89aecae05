"""The numbers behind figures 1d, 1e and 8: are held-out images sums of seen ones, and which images are alike?"""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.kernels import reference_kernels
from composcope.experiments.run import Run
from composcope.factors import Latents
from composcope.measures.error import distance_to_seen, shape_correlation
from composcope.measures.kernel_structure import block_score
from composcope.measures.kernels import cosine_kernel, heldout_seen_slice, kernel_agreement, overlap_kernel
from composcope.papers.forced_rendering.base import spread_rows
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import label_of
from composcope.tasks.base import Images

KINDS = ("cosine", "l2", "overlap")


@dataclass(frozen=True)
class Sums:
    """Some held-out images of the smallest seed beside the sum of their parts, as foregrounds, and all scores.

    - `scores`: one row per run; "sum of parts" is the paper's, also for points more than 2 steps from the edge of the
      hole; "sum of means" is of the means of seen outputs that share x and of those that share y.
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


def sums(evidence: Evidence) -> Sums:
    """Figure 1d."""
    run = evidence.first("bump")
    task = run.spec.task
    spread = spread_rows(run.split.latents, run.split.mask)
    rows = spread[:: max(1, len(spread) // 2)][:3]  # a diagonal of the hole: corner, middle, corner
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
        scores=[_sum_scores(label_of(key), run) for key, runs in evidence.items() for run in runs],
    )


def _sum_scores(code: str, run: Run) -> dict[str, object]:
    superposition = run.diagnosis.superposition
    parts, means = (superposition.parts, superposition.means) if superposition else (None, None)
    heldout = run.split.mask
    far = distance_to_seen(run.split.latents, heldout, run.spec.task.factors)[heldout] > 2
    return {
        "code": code,
        "seed": run.spec.seed,
        "sum of parts": parts.correlation if parts else None,
        "sum of parts, beyond 2 steps": parts.correlations[far].mean().item() if parts and far.any() else None,
        "sum of parts, control": parts.control if parts else None,
        "sum of means": means.correlation if means else None,
        "sum of means, control": means.control if means else None,
        "truth": run.diagnosis.error.heldout_correlation,
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
    hard = overlap_kernel(run.spec.task.foreground(run.draw()[measured.rows]))
    grams = {"cosine": measured.cosine, "soft overlap": measured.overlap, "overlap above 0.3": hard}
    similarities = {name: heldout_seen_slice(gram, held) for name, gram in grams.items()}
    kernels = {name: heldout_seen_slice(kernel, held) for name, kernel in run_kernels(run).items()}
    return HeldoutSimilarity(
        kernels=kernels,
        similarities=similarities,
        agreement={(a, b): kernel_agreement(similarities[a], kernels[b]) for a in similarities for b in kernels},
        scores=[_agreement_scores(label_of(key), run) for key, runs in evidence.items() for run in runs],
    )


def _agreement_scores(code: str, run: Run) -> dict[str, object]:
    """Agreement of the cosines with each kernel, and that of true images."""
    agreement, true = run.diagnosis.kernels.agreement, true_agreement(run)
    row: dict[str, object] = {"code": code, "seed": run.spec.seed}
    for name in true:
        row |= {name: agreement.get(name), f"{name} (true images)": true[name]}
    return row | {"overlap above 0.3, binary": agreement.get("overlap binary")}


@dataclass(frozen=True)
class Matrices:
    """Full matrices of the smallest seed, by code and kind, seen points first; and every seed's block scores."""

    seen: int
    grams: dict[str, dict[str, Float[Tensor, "n n"]]]
    scores: Rows

    def table(self) -> Rows:
        return self.scores


def matrices(evidence: Evidence) -> Matrices:
    """Figure 8."""
    first = evidence.any_run
    held = first.split.mask[first.diagnosis.kernels.rows]
    return Matrices(
        seen=int((~held).sum()),
        grams={label_of(key): {kind: seen_first(evidence.first(key), kind) for kind in KINDS} for key in evidence},
        scores=[_block_scores(label_of(key), run) for key, runs in evidence.items() for run in runs],
    )


def seen_first(run: Run, kind: str) -> Float[Tensor, "n n"]:
    """A matrix of the run with seen points before held-out ones, each in the grid's order."""
    kernels = run.diagnosis.kernels
    gram: Tensor = getattr(kernels, kind)
    held: Bool[Tensor, "n"] = run.split.mask[kernels.rows]
    order = held.long().argsort(stable=True)
    return gram[order][:, order]


def blocks(run: Run, kind: str) -> float | None:
    """Share of a matrix's variance explained by which values two points share."""
    kernels = run.diagnosis.kernels
    return block_score(getattr(kernels, kind), run.split.latents[kernels.rows], run.spec.task.factors)


def _block_scores(code: str, run: Run) -> dict[str, object]:
    return {"code": code, "seed": run.spec.seed, **{f"blocks, {kind}": blocks(run, kind) for kind in KINDS}}
