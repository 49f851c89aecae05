"""Claim 12: how the number of training images grows with the image's side."""

import math
from collections.abc import Callable

from composcope.paper.evidence import Evidence
from composcope.paper.ledger import Claim, Part
from composcope.paper.scaling import Bounds, cells, scaling


def told(bounds: Bounds, threshold: float) -> float:
    """The number, or that of its bounds which puts it on one side of the threshold; NaN where neither does."""
    if bounds.low > threshold:
        return bounds.low
    return bounds.high if bounds.high <= threshold else math.nan


def exponents(kind: str, threshold: float) -> Callable[[Evidence], list[float]]:
    """The power of N of every seed that tells on which side of the threshold it is."""

    def effect(evidence: Evidence) -> list[float]:
        values = [told(bounds, threshold) for bounds in scaling(evidence).exponents(kind).values()]
        return [value for value in values if math.isfinite(value)]

    return effect


def doublings(threshold: float) -> Callable[[Evidence], list[float]]:
    """log2(bumps alone needed / stripes needed) at the largest size, by seed."""

    def effect(evidence: Evidence) -> list[float]:
        found = scaling(evidence)
        largest = max(found.sizes, default=0)
        stripes = {search.seed: search.bounds.log2() for search in found.of("stripes", largest)}
        bumps = {search.seed: search.bounds.log2() for search in found.of("bumps", largest)}
        pairs = [(many, stripes[seed]) for seed, many in bumps.items() if seed in stripes]
        values = [told(Bounds(many.low - few.high, many.high - few.low), threshold) for many, few in pairs]
        return [value for value in values if math.isfinite(value)]

    return effect


CLAIMS = (
    Claim(
        number=12,
        statement=(
            "With bumps alone the training images needed to place 90 % of the held-out bumps grow like the cube of the"
            " image's side N; with stripes they grow like N."
        ),
        where="Sec. 4.2, Fig. 4c",
        figures=("4c",),
        plan=cells,
        parts=(
            Part(
                "power of N, bumps alone",
                exponents("bumps", 2),
                ">",
                2,
                "Half-way between the two laws. There are N^2 combinations, so a cube also outgrows showing a fixed"
                " share of them.",
            ),
            Part(
                "power of N, bumps alone (from above)",
                exponents("bumps", 4),
                "<",
                4,
                "A cube to within one power, as far above as the part before allows below: counts that double, over"
                " sizes that hardly more than double, tell no finer.",
            ),
            Part("power of N, stripes", exponents("stripes", 2), "<", 2, "Half-way between the two laws."),
            Part(
                "doublings from stripes to bumps alone, largest N",
                doublings(1),
                ">",
                1,
                "The counts tried double, so a difference of one doubling is the least that can be told.",
            ),
        ),
        known=(
            "A seed whose search ends at the largest or at the least count tried has only a bound; it counts where the"
            " bound settles the inequality and is left out where it does not. The power depends on how the hole grows"
            " with N: it is 0.4 N here."
        ),
    ),
)
