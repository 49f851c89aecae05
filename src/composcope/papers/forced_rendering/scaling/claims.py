"""Claim 12: how the number of training images grows with the image's side."""

import math
from collections.abc import Mapping

from composcope.papers.forced_rendering.scaling.numbers import scaling
from composcope.papers.forced_rendering.scaling.plan import cells
from composcope.papers.forced_rendering.scaling.search import Bounds
from composcope.study.claim import Claim, Effect, Part
from composcope.study.evidence import Evidence


def decisive(bounds: Bounds, threshold: float) -> float:
    """The number, or the bound that puts it on one side of the threshold; NaN if neither bound does."""
    if bounds.low > threshold:
        return bounds.low
    return bounds.high if bounds.high <= threshold else math.nan


def _decided(bounds: Mapping[int, Bounds], threshold: float) -> dict[int, float]:
    """Only the seeds whose side of the threshold is known."""
    values = {seed: decisive(bound, threshold) for seed, bound in bounds.items()}
    return {seed: value for seed, value in values.items() if math.isfinite(value)}


def exponents(kind: str, threshold: float) -> Effect:
    """The power of N, for every seed for which its side of the threshold is known."""

    def effect(evidence: Evidence) -> dict[int, float]:
        return _decided(scaling(evidence).exponents(kind), threshold)

    return effect


def doublings(threshold: float) -> Effect:
    """log2(images needed with bumps alone / images needed with stripes) at the largest size."""

    def effect(evidence: Evidence) -> dict[int, float]:
        numbers = scaling(evidence)
        largest = max(numbers.sizes, default=0)
        stripes = {search.seed: search.bounds.log2() for search in numbers.of("stripes", largest)}
        bumps = {search.seed: search.bounds.log2() for search in numbers.of("bumps", largest)}
        ratios = {
            seed: Bounds(many.low - stripes[seed].high, many.high - stripes[seed].low)
            for seed, many in bumps.items()
            if seed in stripes
        }
        return _decided(ratios, threshold)

    return effect


CLAIMS = (
    Claim(
        number=12,
        statement=(
            "With bumps alone the number of training images needed to draw 90 % of the held-out bumps within 1 pixel of"
            " the true position grows like the cube of the image's side N; with stripes it grows like N."
        ),
        source="Sec. 4.2, Fig. 4c",
        figures=("4c",),
        plan=cells,
        parts=(
            Part(
                "power of N, bumps alone",
                exponents("bumps", 2),
                ">",
                2,
                "Halfway between the two laws. There are N^2 combinations, so a cube also outgrows showing a fixed"
                " share of them.",
            ),
            Part(
                "power of N, bumps alone (from above)",
                exponents("bumps", 4),
                "<",
                4,
                "A cube to within one power, the same tolerance above as the previous part allows below: with counts"
                " that double and sizes that span little more than a factor of two, nothing finer can be resolved.",
            ),
            Part("power of N, stripes", exponents("stripes", 2), "<", 2, "Halfway between the two laws."),
            Part(
                "doublings from stripes to bumps alone, largest N",
                doublings(1),
                ">",
                1,
                "The counts tried double, so one doubling is the smallest difference that can be resolved.",
            ),
        ),
        note=(
            "A seed whose search ends at the largest or at the smallest count tried gives only a bound; it counts if"
            " the bound settles the inequality and is left out otherwise. The power depends on how the hole grows with"
            " N: its side is 0.4 N here."
        ),
    ),
)
