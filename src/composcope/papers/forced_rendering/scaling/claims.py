"""Claim 12: how the number of training images grows with the image's side."""

from composcope.papers.forced_rendering.scaling.numbers import scaling
from composcope.papers.forced_rendering.scaling.plan import cells
from composcope.papers.forced_rendering.scaling.search import log2
from composcope.study.claim import Bounds, Claim, Effect, Part, Value
from composcope.study.evidence import Evidence

RESOLVED = (
    "The law to within one power: with counts that double and sizes that span a factor of two to three, nothing finer "
    "can be resolved."
)


def value_of(bounds: Bounds) -> Value:
    """The number if it is known, otherwise its bounds."""
    return bounds.low if bounds.low == bounds.high else bounds


def exponents(kind: str) -> Effect:
    """The power of N for every seed whose searches have all finished."""

    def effect(evidence: Evidence) -> dict[int, Value]:
        numbers = scaling(evidence)
        unfinished = {search.seed for search in numbers.of(kind) if not search.finished}
        return {s: value_of(bounds) for s, bounds in numbers.exponents(kind).items() if s not in unfinished}

    return effect


def doublings(evidence: Evidence) -> dict[int, Value]:
    """log2(images needed with bumps alone / images needed with stripes) at the largest size."""
    numbers = scaling(evidence)
    largest = max(numbers.sizes, default=0)
    stripes, bumps = (
        {search.seed: log2(search.bounds) for search in numbers.of(kind, largest) if search.finished}
        for kind in ("stripes", "bumps")
    )
    return {
        seed: value_of(Bounds(many.low - stripes[seed].high, many.high - stripes[seed].low))
        for seed, many in bumps.items()
        if seed in stripes
    }


CLAIMS = (
    Claim(
        number=12,
        version=2,
        statement=(
            "With bumps alone the number of training images needed to draw 90 % of the held-out bumps within 1 pixel of"
            " the true position grows like the cube of the image's side N; with stripes it grows like N."
        ),
        source="Sec. 4.2, Fig. 4c",
        figures=("4c",),
        plan=cells,
        primary=(
            Part("power of N, bumps alone (from below)", exponents("bumps"), ">", 2, RESOLVED),
            Part("power of N, bumps alone (from above)", exponents("bumps"), "<", 4, RESOLVED),
            Part("power of N, stripes (from below)", exponents("stripes"), ">", 0, RESOLVED),
            Part("power of N, stripes (from above)", exponents("stripes"), "<", 2, RESOLVED),
        ),
        secondary=(
            Part(
                "doublings from stripes to bumps alone, largest N",
                doublings,
                ">",
                1,
                "The counts tried double, so one doubling is the smallest difference that can be resolved.",
            ),
        ),
        note=(
            "A seed whose search ends at the largest or at the smallest count tried gives only bounds, and a sign test"
            " over seeds is made instead of a t-test. The power depends on how the hole grows with N: its side is 0.4 N"
            " here. No code for this experiment is published, and the sizes of the paper's figure are larger."
        ),
    ),
)
