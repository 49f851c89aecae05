"""Claims about the failure: it comes with every code and hole, is a superposition, and is not there without a hole."""

from collections.abc import Callable

from composcope.diagnosis.outputs import additive_cross
from composcope.measures.complexity import Complexity, pixel_complexity
from composcope.paper import codes
from composcope.paper.claims.effects import Effect, Number, by_seed, difference, of_runs
from composcope.paper.codes import CODES, placed_beyond, reach
from composcope.paper.controls import region, where
from composcope.paper.evidence import Evidence, Run
from composcope.paper.ledger import Claim, Part
from composcope.paper.similarity import KINDS, blocks, true_agreement
from composcope.tasks.bump import BumpTask

LEARNT = 0.1  # of a blank image's error: nine tenths of the bumps' energy are drawn
EDGE = 2  # grid steps: within two widths of the bump, the edge of the hole is in sight


def seen_share(run: Run) -> float:
    return run.error["seen_mse"] / run.error["blank_mse"]


def heldout_share(run: Run) -> float:
    return run.error["heldout_mse"] / run.error["blank_mse"]


def accuracy(run: Run) -> float:
    return run.error["accuracy"]


def once_learnt(number: Number) -> Number:
    """The number of a run that draws seen images well, and none of any other."""
    return lambda run: number(run) if seen_share(run) < LEARNT else None


def deep_accuracy(run: Run) -> float | None:
    return placed_beyond(run.diagnosis.error, EDGE)


def best_deep_accuracy(evidence: Evidence) -> list[float]:
    """Of the code that does best, seed by seed."""
    return [max(row.values()) for row in by_seed(evidence, once_learnt(deep_accuracy), whole=False).values()]


def summed(run: Run) -> float | None:
    found = run.diagnosis.superposition
    return found.parts.correlation if found and found.parts else None


def summed_above_control(run: Run) -> float | None:
    found = run.diagnosis.superposition
    return found.parts.correlation - found.parts.control if found and found.parts else None


def smoothed(run: Run) -> float | None:
    return run.diagnosis.kernels.agreement.get("binary smoothed")


def smoothed_above_product(run: Run) -> float | None:
    agreement = run.diagnosis.kernels.agreement
    return agreement["binary smoothed"] - agreement["product smoothed"] if agreement else None


def exact_above_truth(run: Run) -> float | None:
    agreement = run.diagnosis.kernels.agreement
    return agreement["binary"] - true_agreement(run)["binary"] if agreement else None


def more_blocks(kind: str) -> Effect:
    return difference("bump", "rate", lambda run: blocks(run, kind))


def reach_apart(evidence: Evidence) -> list[float]:
    """The reach of one code less that of another, which are the farthest and the least by the mean of other seeds."""
    table = by_seed(evidence, lambda run: reach(run.diagnosis.error))
    found = []
    for seed, row in table.items():
        others = [other for known, other in table.items() if known != seed]
        if others:
            ranked = sorted(row, key=lambda name: sum(other[name] for other in others))
            found.append(row[ranked[-1]] - row[ranked[0]])
    return found


def unevenness(evidence: Evidence) -> Number:
    """How far the image's volume in the middle is from that of the rest, in powers of ten, either way."""

    def number(run: Run) -> float | None:
        gap = region(run, where(run, evidence.preset.hole)).volume_gap
        return None if gap is None else abs(gap)

    return number


def uneven_without(evidence: Evidence) -> list[float]:
    return of_runs("no hole", unevenness(evidence))(evidence)


def uneven_by_hole(evidence: Evidence) -> list[float]:
    return difference("square", "no hole", unevenness(evidence))(evidence)


def error_ratio(evidence: Evidence) -> list[float]:
    """Mean error in the middle over that of the rest, without a hole."""
    found = [region(run, where(run, evidence.preset.hole)).share for run in evidence["no hole"]]
    return [inside / outside for inside, outside in found]


def placed_in_the_middle(evidence: Evidence) -> list[float]:
    return [region(run, where(run, evidence.preset.hole)).placed[0] for run in evidence["no hole"]]


def terms(counted: Callable[[BumpTask], Complexity], number: Callable[[Complexity], float]) -> Effect:
    """Product terms of images that are drawn exactly; no training is in them."""
    return lambda evidence: [float(number(counted(BumpTask(evidence.preset.size))))]


def bump_terms(task: BumpTask) -> Complexity:
    return pixel_complexity(task.foreground(task.render(task.grid())), task.factors)


def cross_terms(task: BumpTask) -> Complexity:
    cross = additive_cross(task, task.grid())
    assert cross is not None  # a bump task draws stripes
    return pixel_complexity(cross, task.factors)


SMALL = "a tenth of what an empty image errs by: nine tenths of the bump's energy are drawn"
LARGE = "half of what an empty image errs by; a decoder that composes errs as little there as on seen images"
FEW = "fewer than half of the images in place: a decoder that composes has all of them"
HALF = "a correlation of 0.7 is half of the variance"

CLAIMS = (
    Claim(
        number=1,
        statement="Whatever the input code, the decoder draws seen combinations well and fails on held-out ones.",
        where="Sec. 3.2, Fig. 1b, c",
        figures=("1b", "1c"),
        plan=codes.every,
        parts=(
            *(
                Part(
                    f"{code} code, held-out MSE / blank MSE once it draws seen images",
                    of_runs(code, once_learnt(heldout_share)),
                    ">",
                    0.5,
                    LARGE,
                )
                for code in CODES
            ),
            Part(
                "share in place of held-out images more than two steps from the edge, of the best code",
                best_deep_accuracy,
                "<",
                0.5,
                FEW + "; nearer ones are left out, since the paper grants generalisation near the edge",
            ),
        ),
        known="Runs whose seen MSE is above a tenth of a blank image's are left out: a decoder that has not learnt "
        "what it saw tells nothing about composition. Rate codes learn several times more slowly than the others and "
        "may have no run left, which makes the claim undetermined.",
    ),
    Claim(
        number=2,
        statement="On a held-out combination the decoder draws the sum of what it draws for x alone and for y alone.",
        where="Sec. 3.3, Fig. 1d",
        figures=("1d",),
        plan=codes.one,
        parts=(
            Part("correlation of held-out images with that sum", of_runs("bump", summed), ">", 0.7, HALF),
            Part(
                "that correlation less the one with sums at shuffled places",
                of_runs("bump", summed_above_control),
                ">",
                0.25,
                "any two sums have something in common; a quarter of the scale must come from the right place",
            ),
        ),
        known="It depends on polarity and on the length of training: with bright bumps on black the hole goes blank "
        "instead, and with dark ones the correlation is highest early and falls as training goes on. Near the edge of "
        "the hole the decoder may still draw proper bumps, which are no sums. For a rate code the sums at any two "
        "places look alike, so that its correlation tells little.",
    ),
    Claim(
        number=3,
        statement="A held-out image resembles those seen images that share its x or its y: similarity follows the "
        "binary factorized kernel.",
        where="Sec. 3.3, Fig. 1e",
        figures=("1e",),
        plan=codes.one,
        parts=(
            Part(
                "correlation with the binary kernel, less that of true images",
                of_runs("bump", exact_above_truth),
                ">",
                0.0,
                "true images are what a composing decoder would draw, and they agree with the kernel a little already",
            ),
            Part(
                "correlation with the binary kernel smoothed by the bump's width",
                of_runs("bump", smoothed),
                ">",
                0.7,
                HALF + "; the width is the task's own, so nothing is fitted",
            ),
            Part(
                "that correlation less the one with the smoothed product kernel",
                of_runs("bump", smoothed_above_product),
                ">",
                0.0,
                "x or y shared must explain more than x and y shared, which is what a composing decoder has",
            ),
        ),
        known="The exact kernel knows equal values only, while bumps are wider than a pixel, so that it cannot agree "
        "fully with any set of bumps. Near the edge of the hole the decoder may still draw proper bumps, which follow "
        "the product kernel.",
    ),
    Claim(
        number=15,
        statement="Similarity matrices of a bump code's decoder are more block-like than those of a rate code's.",
        where="App. E.1, Fig. 8",
        figures=("8",),
        plan=codes.both,
        parts=tuple(
            Part(
                f"block score of the bump code less that of the rate code, {kind}",
                more_blocks(kind),
                ">",
                0.0,
                "more means any more, in each of the paper's three matrices; the spread over seeds tells what is noise",
            )
            for kind in KINDS
        ),
    ),
    Claim(
        number=19,
        statement="The decoder fails in the same way when a corner is held out instead of the middle.",
        where="variant of Fig. 1",
        figures=("controls",),
        plan=codes.corner,
        parts=(
            Part("seen MSE / blank MSE", of_runs("corner", seen_share), "<", 0.1, SMALL),
            Part("held-out MSE / blank MSE", of_runs("corner", heldout_share), ">", 0.5, LARGE),
            Part("share of held-out images in place", of_runs("corner", accuracy), "<", 0.5, FEW),
        ),
    ),
    Claim(
        number=20,
        statement="Every pixel of a bump is one product of a function of x and one of y; of a cross of stripes, two.",
        where="App. A.1",
        figures=(),
        plan=codes.nothing,
        parts=(
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
        known="It follows from the definitions, of foregrounds; training has no part in it.",
    ),
    Claim(
        number=21,
        statement="Codes differ in how far into the hole the decoder still draws the bump in its place.",
        where="Sec. 3.2, Fig. 1b, c",
        figures=("1b", "1c"),
        plan=codes.every,
        parts=(
            Part(
                "reach of the farthest code less that of the least, in grid steps",
                reach_apart,
                ">",
                0.5,
                "half a grid step, the least that shows on a grid; which codes they are is told by the other seeds, so "
                "that picking the extremes adds nothing",
            ),
        ),
        known="Reach: the shares of images in place, summed over the distances from the edge of the hole.",
    ),
    Claim(
        number=24,
        statement="Trained without a hole, the decoder draws the middle as well as the rest, and the volume of its "
        "images is even.",
        where="Sec. 3.4 (our control)",
        figures=("controls",),
        plan=codes.holes,
        parts=(
            Part(
                "MSE in the middle / MSE of the rest, no hole",
                error_ratio,
                "<",
                2.0,
                "a factor of two is little beside what a hole does",
            ),
            Part("share in place in the middle, no hole", placed_in_the_middle, ">", 0.95, "all but a few"),
            Part(
                "volume in the middle apart from the rest, no hole (log10)",
                uneven_without,
                "<",
                0.3,
                "a factor of two, after what the frame does to true images is taken off",
            ),
            Part(
                "the same with a hole, less that without",
                uneven_by_hole,
                ">",
                0.3,
                "the hole adds more than a factor of two",
            ),
        ),
    ),
)
