"""Claims 25, 32 and 33: whether the layers' re-entanglement, by any of its measures, goes with the failure.

If the layers' re-entanglement causes the failure, decoders that compose are less entangled than decoders that fail, and
a cure makes a decoder less entangled. That both go together would be necessary for a cause, not proof of one.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from composcope.activations.recording import record
from composcope.diagnosis.errors import mean_over
from composcope.measures.geometry import volume_summary
from composcope.measures.probes import linear_probes
from composcope.papers.forced_rendering.base import EQUAL, SIZES, all_codes
from composcope.papers.forced_rendering.codes.claims import nothing_share
from composcope.papers.forced_rendering.controls.figures import all_controls, compared_region
from composcope.papers.forced_rendering.lowrank.figures import ablation
from composcope.papers.forced_rendering.similarity.claims import sum_correlation
from composcope.papers.forced_rendering.similarity.figures import sums
from composcope.papers.forced_rendering.stripes.claims import UPWARD, over_bumps
from composcope.papers.forced_rendering.stripes.figures import all_amounts, bumps_alone, most_bumps
from composcope.runs.run import Run
from composcope.study.claim import (
    UNDEFINED,
    Claim,
    Effect,
    Number,
    Part,
    Value,
    Values,
    by_condition,
    defined,
    difference,
    effect_of,
)
from composcope.study.evidence import Evidence
from composcope.study.layers import layer
from composcope.study.plan import KeyOf, only, together

# Every kind of decoder that fails or composes: codes, amounts of stripes and bumps, the corner, no hole, and low-rank
# embeddings. At the sizes of the figures that they belong to.
conditions = together(all_codes, all_amounts, only(all_controls, "corner", "no hole"), ablation)
# Each cure and its untreated control: no hole, both penalties, stripes.
cured_and_not = only(conditions, "bump", "no hole", "none", "both", bumps_alone, most_bumps)

APART = (
    "0.5 is no association. At least 0.6 is required, so that an interval inside 0.4 to 0.6, or on the other side, "
    "contradicts; wider intervals leave it open"
)
CURES: tuple[tuple[str, KeyOf, KeyOf], ...] = (
    ("no hole minus hole", "no hole", "bump"),
    ("both penalties minus none", "both", "none"),
    ("stripes and most bumps minus as many bumps alone", most_bumps, bumps_alone),
)


FACTORIZATION = layer("geometry.factorization.mean_of_ratios", "differences").at("last hidden")
HELDOUT_PROBE = layer("probes.*.heldout").at("last hidden")
COMPOSES, FAILS = 0.9, 0.5
"""Shares of held-out images within 1 pixel, at least and below which a run composes and fails."""


def region(run: Run) -> Bool[Tensor, "n"]:
    """What is held out or, without a hole, what the square of the base runs would hold out."""
    hole = next(sizes.hole for sizes in SIZES.values() if sizes.size == run.spec.task.image_shape[-1])
    return compared_region(run, hole)


def evenness(run: Run) -> float:
    """Minus |gap of log10 volume| between the region and the rest, by differences, at the last hidden layer."""
    differences = list(run.diagnosis.layers.values())[-2].differences
    gap = None if differences is None else volume_summary(differences.volume, region(run)).gap
    return torch.nan if gap is None else -abs(gap)


def readout(run: Run) -> float:
    """R2 of probes fitted outside the region and scored inside, at the last hidden layer; mean over factors."""
    if run.split.mask.any():
        return HELDOUT_PROBE(run)
    name = list(run.diagnosis.layers)[-2]
    with torch.no_grad():
        parts = [record(run.drawer, codes)[0][name] for codes in run.codes.split(128)]  # in bounded memory
    scores = linear_probes(torch.cat(parts), run.split.latents, run.spec.task.factors, region(run), seed=run.spec.seed)
    return float(np.mean([score.heldout for score in scores.values()]))


def pf_coeff(run: Run) -> float | None:
    """The share of single-factor terms in the kernel of the images."""
    return run.diagnosis.kernels.pf_coeff


MEASURES: dict[str, Number] = {
    "factorization (eq. 7, differences) at the last hidden layer": FACTORIZATION,
    "minus |gap of log10 volume| (differences) at the last hidden layer": evenness,
    "R2 of probes fitted on seen and scored on held-out points at the last hidden layer": readout,
    "PF_Coeff of single factors": pf_coeff,
}
"""Each is larger the less entangled a decoder is, in the paper's reading."""


def accuracy(run: Run) -> float:
    """Share of the region's images within 1 pixel of the true position."""
    return mean_over(run.point_errors.placed, region(run)) or 0.0


def composes(run: Run) -> bool | None:
    """Whether the run composes: True or False, None if it does neither clearly."""
    error = mean_over(run.point_errors.share, region(run)) or 0.0
    if accuracy(run) >= COMPOSES and error < FAILS:
        return True
    return False if accuracy(run) < FAILS else None


Condition = tuple[Sequence[float], Sequence[float]]
"""The measure of a condition's composing runs and of its failing runs."""


def auc(conditions: Sequence[Condition]) -> float:
    """The share of pairs of a composing and a failing run in which the composing one has the larger value.

    Ties count half; NaN if there is no pair.

    >>> auc([([2.0, 3.0], []), ([], [1.0, 2.0])])
    0.875
    """
    composing, failing = (np.array([value for each in conditions for value in each[side]]) for side in (0, 1))
    larger = composing[:, None] > failing
    ties = composing[:, None] == failing
    return float((larger + 0.5 * ties).mean()) if larger.size else torch.nan


def jackknife(statistic: Callable[[Sequence[Condition]], float], conditions: Sequence[Condition]) -> list[float]:
    """Tukey's pseudo-values n T - (n - 1) T_without_i, whose mean and t-interval are those of the statistic T.

    >>> jackknife(lambda each: sum(sum(composing) for composing, _ in each) / len(each), [([1.0], []), ([3.0], [])])
    [1.0, 3.0]
    """
    count, whole = len(conditions), statistic(conditions)
    left_out = [statistic([*conditions[:index], *conditions[index + 1 :]]) for index in range(count)]
    return [count * whole - (count - 1) * without for without in left_out]


def separation(measure: Number) -> Effect:
    """The jackknife's pseudo-values of the AUC, by condition; conditions without a clear run are left out."""

    def effect(evidence: Evidence) -> Values:
        conditions: dict[int, Condition] = {}
        for index, runs in enumerate(evidence.values()):
            values = [(composes(run), measure(run)) for run in runs]
            composing, failing = (
                [v for side, v in values if side is which and v is not None] for which in (True, False)
            )
            if composing or failing:
                conditions[index] = (composing, failing)
        if not all(any(condition[side] for condition in conditions.values()) for side in (0, 1)):
            return {}
        return dict(zip(conditions, map(defined, jackknife(auc, list(conditions.values()))), strict=True))

    return by_condition(effect)


def over_seeds(measure: Number) -> Effect:
    """The rank correlation of the measure with the accuracy over a condition's seeds, by condition."""

    def effect(evidence: Evidence) -> Values:
        conditions = {index: runs for index, runs in enumerate(evidence.values()) if len(runs) > 2}
        return {index: rank_correlation(runs, measure, accuracy) for index, runs in conditions.items()}

    return by_condition(effect)


Item = TypeVar("Item")


def rank_correlation(
    items: Sequence[Item], first: Callable[[Item], float | None], second: Callable[[Item], float | None]
) -> Value:
    """Spearman's; undefined where one of both is missing or always the same."""
    from scipy import stats

    if len(items) < 3:
        return UNDEFINED
    pairs = [(first(item), second(item)) for item in items]
    columns = np.array([[np.nan if value is None else value for value in pair] for pair in pairs]).T
    if np.isnan(columns).any() or not np.ptp(columns, axis=1).all():
        return UNDEFINED
    return float(stats.spearmanr(*columns).statistic)


def over_snapshots(first: Number, second: Number) -> Effect:
    """The rank correlation of two numbers over a run's snapshots, by seed."""

    @effect_of("bump")
    def effect(evidence: Evidence) -> Values:
        return {run.spec.seed: rank_correlation(snapshots(run), first, second) for run in evidence["bump"]}

    return effect


@cache
def snapshots(run: Run) -> tuple[Run, ...]:
    """The run as it was at each of its snapshots, with a diagnosis of its images; none if it kept fewer than three."""
    if len(run.snapshots) < 3:
        return ()
    earlier = [Run(run.spec, run.artifacts, weights) for weights in run.snapshots.values()]
    for each in earlier:
        each.__dict__["diagnosis"] = each.diagnose(layers=["image"])  # what is stored is of the last step
    return tuple(earlier)


IMAGE_GAP = layer("geometry.volume.gap", "exact").at("image")


CLAIMS = (
    Claim(
        number=25,
        statement="Decoders fail because their layers re-entangle the factors: the more a decoder's layers are "
        "entangled, the less it composes.",
        source="Abstract, Sec. 3.4",
        figures=(),
        plan=conditions,
        primary=tuple(
            Part(
                f"AUC of {name}, composing against failing runs, conditions left out in turn",
                separation(measure),
                ">",
                0.6,
                APART,
            )
            for name, measure in MEASURES.items()
        ),
        secondary=(
            *(
                Part(
                    f"rank correlation of {name} with held-out accuracy over the seeds of a condition",
                    over_seeds(measure),
                    ">",
                    0.2,
                    "the counterpart of an AUC of 0.6",
                )
                for name, measure in MEASURES.items()
            ),
            *(
                Part(
                    f"{name}, {cure}",
                    difference(more, less, measure),
                    ">",
                    0.0,
                    EQUAL + "; a cure makes a decoder less entangled",
                )
                for name, measure in MEASURES.items()
                for cure, more, less in CURES
            ),
            *(
                Part(
                    f"{name}, slope per step in the number of bumps with stripes", over_bumps(measure), ">", 0.0, UPWARD
                )
                for name, measure in MEASURES.items()
            ),
        ),
        note="A run composes if at least 90 % of its held-out images are within 1 pixel and their error is below half "
        "of a blank image's; it fails if fewer than half are within 1 pixel; others are left out. Conditions, not "
        "runs, are the independent units: intervals come from leaving out one condition at a time. All conditions have "
        "differences on the grid, one-hot codes have no derivative. Without a hole, the region where it would be takes "
        "its place. Association is necessary for a cause, not proof of one.",
    ),
    Claim(
        number=32,
        statement="The share of single-factor terms in the kernel (PF_Coeff) is higher the less a decoder entangles.",
        source="App. A.5",
        figures=(),
        plan=cured_and_not,
        primary=tuple(
            Part(f"PF_Coeff of single factors, {cure}", difference(more, less, pf_coeff), ">", 0.0, EQUAL)
            for cure, more, less in CURES
        ),
        note="A kernel of the images over the whole grid. A cured decoder draws each combination, and single bumps "
        "differ from all others: their kernel is one of pairs, not of single factors.",
    ),
    Claim(
        number=33,
        statement="The sign of the gap in volume tells how a decoder fails: with more volume in the hole it "
        "superposes, with less it draws nothing.",
        source="Sec. 3.4 (our question)",
        figures=("1d",),
        plan=sums,
        primary=(
            Part(
                "rank correlation over snapshots of the gap of log10 volume of images (exact) with the correlation of "
                "held-out images with the sum",
                over_snapshots(IMAGE_GAP, sum_correlation),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "rank correlation over snapshots of the gap of log10 volume of images (exact) with the share of "
                "held-out images with nothing drawn",
                over_snapshots(IMAGE_GAP, nothing_share),
                "<",
                0.0,
                EQUAL,
            ),
        ),
        note="The gap of these networks had either sign in earlier seeds, and changes as training goes on.",
    ),
)

PANELS = ()
