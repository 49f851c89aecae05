"""What figures 4a, 4b and 7 show: the training images, and what is drawn on held-out combinations."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.superposition import additive_cross
from composcope.factors import absent
from composcope.measures.error import shape_correlation
from composcope.papers.forced_rendering.base import spread_rows
from composcope.runs.run import Run
from composcope.runs.spec import training_latents
from composcope.sampling import Stripes, single_values
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of
from composcope.tasks.base import Images
from composcope.tasks.bump import BumpTask


@dataclass(frozen=True)
class Samples:
    """Some of the training images, vertical stripes, horizontal stripes and bumps, and how many there are of each."""

    images: dict[str, Images]
    latents: dict[str, Float[Tensor, "n factors"]]
    counts: dict[str, int]

    def table(self) -> Rows:
        return [
            {"kind": kind, "in the training set": self.counts[kind], "x": _value_or_any(x), "y": _value_or_any(y)}
            for kind, latents in self.latents.items()
            for x, y in latents.tolist()
        ]


def _value_or_any(value: float) -> str:
    """An absent factor is NaN: its stripe covers every value."""
    return f"{value:g}" if value == value else "any"


def samples(evidence: Evidence, shown: int = 4) -> Samples:
    """From the training set of the first run."""
    spec = evidence.any_run.spec
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    missing = absent(latents)
    kinds = {
        "stripes at x": latents[missing[:, 1]],
        "stripes at y": latents[missing[:, 0]],
        "bumps": latents[~missing.any(1)],
    }
    examples = {kind: rows[_spaced(len(rows), shown)] for kind, rows in kinds.items()}
    return Samples(
        images={kind: spec.task.render(rows) for kind, rows in examples.items()},
        latents=examples,
        counts={kind: len(rows) for kind, rows in kinds.items()},
    )


def _spaced(count: int, shown: int) -> list[int]:
    """Indices in the middle of equal parts, as many as are shown."""
    return [int((part + 0.5) * count / shown) for part in range(min(shown, count))]


@dataclass(frozen=True)
class Drawing:
    """What one kind of run draws at held-out points; for each seed, accuracy, error, and likeness to bump and cross.

    - `images`: of the first seed. `bumps`: how many were trained on; `share`: of all seen bumps.
    """

    images: Images
    bumps: int
    share: float
    seeds: tuple[int, ...]
    accuracy: tuple[float, ...]
    mse: tuple[float, ...]
    like_bump: tuple[float, ...]
    like_cross: tuple[float, ...]


@dataclass(frozen=True)
class Outputs:
    """Held-out images of every kind of run under the truth.

    - `blank`: a blank image's MSE; `bump_like_cross`: how alike a true bump and the cross are.
    """

    points: Float[Tensor, "n 2"]
    truth: Images
    drawings: dict[Key, Drawing]
    blank: float
    bump_like_cross: float

    def table(self) -> Rows:
        return [
            {
                "trained on": label_of(key),
                "share of seen bumps": drawing.share,
                "seed": seed,
                "held-out accuracy": drawing.accuracy[n],
                "held-out MSE": drawing.mse[n],
                "blank MSE": self.blank,
                "correlation with the bump": drawing.like_bump[n],
                "correlation with the cross": drawing.like_cross[n],
            }
            for key, drawing in self.drawings.items()
            for n, seed in enumerate(drawing.seeds)
        ]


def outputs(evidence: Evidence) -> Outputs:
    """Every kind of run of the plan, at the same held-out points."""
    first = evidence.any_run
    rows = spread_rows(first.split.latents, first.split.mask)[::2]
    truth = first.spec.task.foreground(first.truth)
    return Outputs(
        points=first.split.latents[rows],
        truth=first.truth[rows],
        drawings={key: _drawing(runs, rows) for key, runs in evidence.items()},
        blank=first.error["blank_mse"],
        bump_like_cross=shape_correlation(truth, cross(first))[first.split.mask].mean().item(),
    )


def _drawing(runs: Sequence[Run], rows: list[int]) -> Drawing:
    sampling = runs[0].spec.sampling
    assert isinstance(sampling, Stripes)
    return Drawing(
        images=runs[0].draw()[rows],
        bumps=sampling.bumps or 0,
        share=(sampling.bumps or 0) / len(runs[0].split.seen),
        seeds=tuple(run.spec.seed for run in runs),
        accuracy=tuple(run.error["accuracy"] for run in runs),
        mse=tuple(run.error["heldout_mse"] for run in runs),
        like_bump=tuple(like_bump(run) for run in runs),
        like_cross=tuple(like_cross(run) for run in runs),
    )


def cross(run: Run) -> Images:
    """The sum of the stripes at x and at y, over the grid."""
    images = additive_cross(run.spec.task, run.split.latents)
    assert images is not None  # a bump task can draw stripes
    return images


def like_bump(run: Run) -> float:
    """Correlation over pixels of held-out images with the true bump, mean over images."""
    return _likeness(run, run.spec.task.foreground(run.truth))


def like_cross(run: Run) -> float:
    """The same with the additive cross of two stripes."""
    return _likeness(run, cross(run))


def _likeness(run: Run, targets: Images) -> float:
    heldout = run.split.mask
    drawn = run.spec.task.foreground(run.draw())
    return shape_correlation(drawn[heldout], targets[heldout]).mean().item()


def crossing_strength(run: Run) -> float:
    """Foreground at the true crossing over that of a stripe, mean over held-out images: 2 for a sum, 1 for a union."""
    drawn, x, y, height = _stripes_crossed(run)
    return (drawn[torch.arange(len(drawn)), y, x].mean() / height).item()


def arm_strength(run: Run) -> float:
    """Foreground along both stripes' centre lines, away from the crossing, over that of a stripe; 0 for a product."""
    drawn, x, y, height = _stripes_crossed(run)
    assert isinstance(run.spec.task, BumpTask)
    away = 3 * run.spec.task.sigma
    pixels = torch.arange(drawn.shape[-1])
    arms = []
    for image, column, row in zip(drawn, x.tolist(), y.tolist(), strict=True):
        arms += [image[(pixels - row).abs() > away, column], image[row, (pixels - column).abs() > away]]
    return (torch.cat(arms).mean() / height).item()


def _stripes_crossed(run: Run) -> tuple[Tensor, Tensor, Tensor, float]:
    """Held-out foregrounds, the columns and rows of their crossings, and the foreground of a true stripe there."""
    task, latents = run.spec.task, run.split.heldout
    drawn = task.foreground(run.draw()[run.split.mask])[:, 0]
    x, y = latents.round().long().T
    return drawn, x, y, task.foreground(task.render(single_values(task))).amax().item()


@dataclass(frozen=True)
class StripeSet:
    """Every stripe, and what is drawn as more bumps are added to them."""

    stripes: Images
    outputs: Outputs

    def table(self) -> Rows:
        return self.outputs.table()


def stripe_set(evidence: Evidence) -> StripeSet:
    """All stripes of the task, and the held-out images of every kind of run."""
    task = evidence.any_run.spec.task
    return StripeSet(task.render(single_values(task)), outputs(evidence))
