"""Claims 1, 20, 21, 26 and 27: every code fails on held-out combinations, and how; what a bump is made of."""

from collections.abc import Callable
from statistics import fmean

from jaxtyping import Bool
from torch import Tensor

from composcope.diagnosis.superposition import additive_cross
from composcope.measures.complexity import Complexity, pixel_complexity
from composcope.measures.error import LEARNED
from composcope.papers.forced_rendering.base import (
    CODES,
    EQUAL,
    FEW,
    LARGE,
    SIZES,
    accuracy,
    all_codes,
    bump_and_rate,
    heldout_share,
)
from composcope.papers.forced_rendering.codes.figures import accuracy_beyond, no_runs, reach
from composcope.papers.forced_rendering.similarity.claims import bumps_inside
from composcope.papers.forced_rendering.similarity.figures import peaks
from composcope.runs.run import Run
from composcope.study.claim import Claim, Effect, Number, Part, Values, combined, difference, of_runs
from composcope.study.evidence import Evidence
from composcope.study.plan import Key, of_preset
from composcope.tasks.bump import BumpTask

ALIKE = 0.2
SAME_SHARES = "a fifth of the images either way; decoders that fail in the same way fail as often in each way"
FAINT = 0.5
"""A bump is drawn where a foreground reaches this share of a true bump's height."""


def nothing_drawn(run: Run) -> Bool[Tensor, "heldout"]:
    """Held-out images in which no pixel reaches half of a bump's height."""
    heldout = run.split.mask
    images = run.spec.task.foreground(run.draw()[heldout])
    height = run.spec.task.foreground(run.truth[heldout]).amax((1, 2, 3))
    return images.amax((1, 2, 3)) < FAINT * height


def misplaced(run: Run) -> Bool[Tensor, "heldout"]:
    """Held-out images of a single bump that is more than 1 pixel from the true position."""
    heldout = run.split.mask
    counts = peaks(run.spec.task.foreground(run.draw()[heldout]), run.split.latents[heldout]).counts
    accuracies = run.point_errors.placed
    assert accuracies is not None  # a bump task locates its bumps
    return ~nothing_drawn(run) & (counts == 1) & (accuracies[heldout] < 0.5)


def nothing_share(run: Run) -> float:
    """Share of held-out images with nothing drawn."""
    return nothing_drawn(run).double().mean().item()


def misplaced_share(run: Run) -> float:
    """Share of held-out images with a single bump at a wrong place."""
    return misplaced(run).double().mean().item()


EDGE = 2  # grid steps: nearer points are within two widths of a bump from seen ones
SMOOTH = tuple(code for code in CODES if code != "one-hot")
"""Codes in which similar values have similar codes."""


def deep_accuracy(run: Run) -> float | None:
    """Accuracy on held-out images far from the edge of the hole."""
    return accuracy_beyond(run.diagnosis.error, EDGE)


def reach_of(run: Run) -> float | None:
    """How far into the hole the bump is still drawn at its true position, in grid steps."""
    return reach(run.diagnosis.error)


def difference_in_reach(*codes: str) -> Effect:
    """The mean reach of all codes but the last minus that of the last, by seed."""
    return combined(codes, reach_of, lambda *row: fmean(row[:-1]) - row[-1])


EXACT_SEED = 0  # effects without training have one value, reported under this seed


def terms(
    complexity: Callable[[BumpTask], Complexity], number: Callable[[Complexity], float]
) -> Callable[[Evidence], Values]:
    """A number of product terms of exactly drawn images; no training is involved."""
    return lambda evidence: {EXACT_SEED: float(number(complexity(BumpTask(of_preset(SIZES, evidence.preset).size))))}


def bump_terms(task: BumpTask) -> Complexity:
    """The terms of every pixel of a bump."""
    return pixel_complexity(task.foreground(task.render(task.grid())), task.factors)


def cross_terms(task: BumpTask) -> Complexity:
    """The terms of every pixel of a cross of two stripes."""
    cross = additive_cross(task, task.grid())
    assert cross is not None  # a bump task draws stripes
    return pixel_complexity(cross, task.factors)


def _fails(code: Key) -> Part:
    return Part(
        f"{code} code: held-out MSE / blank MSE of runs that have learned what they saw",
        of_runs(code, heldout_share),
        ">",
        0.5,
        LARGE,
        learned=True,
    )


def _misplaces(code: Key, number: Number, share: str, reason: str) -> Part:
    return Part(f"{code} code: {share}", of_runs(code, number), "<", 0.5, reason, learned=True)


WITHIN = "share of held-out images within 1 pixel"
FAR_WITHIN = "share within 1 pixel of held-out images more than two steps from the edge"
FAR = FEW + "; nearer ones are left out, since the paper concedes generalisation near the edge"

CLAIMS = (
    Claim(
        number=1,
        statement="Whatever the input code, the decoder draws seen combinations and fails on held-out ones.",
        source="Sec. 3.2, Fig. 1b, c",
        figures=("1b", "1c"),
        plan=all_codes,
        primary=tuple(_fails(code) for code in CODES),
        secondary=(
            *(_misplaces(code, accuracy, WITHIN, FEW) for code in CODES),
            *(_misplaces(code, deep_accuracy, FAR_WITHIN, FAR) for code in CODES),
        ),
        note=f"Runs whose MSE on their training images is above {LEARNED} of a blank image's are excluded: a decoder "
        "that has not learned what it saw says nothing about composition. The authors' showcases (bump: 256 wide, 10 "
        "deep, 250 epochs, a hole of [10..18]; rate: 128 wide, 10 deep) are not repeated; these are the networks of "
        "their depth experiment. The secondary parts were of the best code of each seed, which is larger than any "
        "code's by chance, until results had been seen.",
        version=2,
    ),
    Claim(
        number=20,
        statement="Every pixel of a bump is one product of a function of x and one of y; of a cross of stripes, two.",
        source="App. A.1",
        figures=(),
        plan=no_runs,
        primary=(
            Part("most terms of a bump's pixel", terms(bump_terms, lambda c: c.maximum), "<", 1.5, "it is 1", True),
            Part(
                "fewest terms of a cross's pixel",
                terms(cross_terms, lambda c: c.exact.min().item()),
                ">",
                1.5,
                "it is 2",
                True,
            ),
            Part("most terms of a cross's pixel", terms(cross_terms, lambda c: c.maximum), "<", 2.5, "it is 2", True),
        ),
        note="It follows from the definitions, for foregrounds; no training is involved.",
        version=2,
    ),
    Claim(
        number=21,
        statement="Codes differ in how far into the hole the decoder still draws the bump at its true position.",
        source="Sec. 3.2, Fig. 1b, c",
        figures=("1b", "1c"),
        plan=all_codes,
        primary=(
            Part(
                "mean reach of the bump, rate and positional codes minus that of the one-hot code, in grid steps",
                difference_in_reach(*SMOOTH, "one-hot"),
                "differs",
                0.0,
                "the paper says that they differ, not which reaches farther or by how much; only in a one-hot code "
                "have neighbouring values nothing in common",
                learned=True,
            ),
        ),
        secondary=tuple(
            Part(
                f"reach of the {code} code minus that of the {other} code",
                difference_in_reach(code, other),
                "differs",
                0.0,
                EQUAL,
                learned=True,
            )
            for code, other in (("bump", "rate"), ("bump", "one-hot"), ("bump", "positional"))
        ),
        note="Reach: the shares of images within 1 pixel of the true position, summed over the distances from the edge "
        "of the hole. Seeds in which one of the codes has not learned what it saw are excluded. Which codes are "
        "compared was decided by the other seeds before version 5, which calls equal codes different in 6 % of cases "
        "instead of 2.5 %; it was changed after a look at results.",
        version=5,
    ),
    Claim(
        number=26,
        statement="The decoder fails in the same way with bump and with rate codes.",
        source="Sec. 3.3, Fig. 1b, c",
        figures=("1b", "1c"),
        plan=bump_and_rate,
        primary=tuple(
            Part(
                f"{share}, rate code minus bump code",
                difference("rate", "bump", number),
                "within",
                ALIKE,
                SAME_SHARES,
                learned=True,
            )
            for share, number in (
                ("share of held-out images with nothing drawn", nothing_share),
                ("share of held-out images with a single bump at a wrong place", misplaced_share),
            )
        ),
        note="Nothing is drawn where no pixel reaches half of a bump's height. A bump is a local maximum of at least "
        "half of the image's; its place is wrong if it is more than 1 pixel off. Registered after a look at verdicts "
        "of earlier seeds, in which rate codes mostly gave another combination.",
    ),
    Claim(
        number=27,
        statement="Held-out images show several bumps, which lie at the true x or at the true y, with every code.",
        source="Sec. 3.3, Fig. 1b, c",
        figures=("1b", "1c"),
        plan=all_codes,
        primary=tuple(
            Part(f"{code} code: {share}", bumps_inside(code, number), ">", 0.5, "most of them", learned=True)
            for code in CODES
            for share, number in (
                ("share of images in the inner part of the hole with at least two bumps", lambda peaks: peaks.several),
                ("share of these bumps within 1 pixel of the true x or y", lambda peaks: peaks.aligned),
            )
        ),
        note="The inner part of the hole is where the authors take the points they show. A bump is a local maximum of "
        "at least half of the image's. Up to a fifth of all pixels are within 1 pixel of the true x or y.",
    ),
)
