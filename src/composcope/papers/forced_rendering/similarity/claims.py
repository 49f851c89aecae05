"""Claims 2, 3 and 15: held-out images are sums, and which images are alike."""

from composcope.experiments.run import Run
from composcope.papers.forced_rendering.codes import plan
from composcope.papers.forced_rendering.similarity.numbers import KINDS, blocks, true_agreement
from composcope.study.claim import Claim, Effect, Part
from composcope.study.effects import difference, of_runs

HALF = "a correlation of 0.7 is half of the variance"


def sum_correlation(run: Run) -> float | None:
    """Correlation of held-out images with the sum of their parts."""
    superposition = run.diagnosis.superposition
    return superposition.parts.correlation if superposition and superposition.parts else None


def sum_above_control(run: Run) -> float | None:
    """That correlation minus the one with sums of shuffled positions."""
    superposition = run.diagnosis.superposition
    parts = superposition.parts if superposition else None
    return parts.correlation - parts.control if parts else None


def smoothed_agreement(run: Run) -> float | None:
    """Correlation of the images' cosines with the smoothed binary kernel."""
    return run.diagnosis.kernels.agreement.get("binary smoothed")


def smoothed_above_product(run: Run) -> float | None:
    """That correlation minus the one with the smoothed product kernel."""
    agreement = run.diagnosis.kernels.agreement
    return agreement["binary smoothed"] - agreement["product smoothed"] if agreement else None


def binary_above_truth(run: Run) -> float | None:
    """Correlation of the images' cosines with the exact binary kernel, minus that of the true images."""
    agreement = run.diagnosis.kernels.agreement
    return agreement["binary"] - true_agreement(run)["binary"] if agreement else None


def more_blocks(kind: str) -> Effect:
    """The bump code's block score minus the rate code's."""
    return difference("bump", "rate", lambda run: blocks(run, kind))


CLAIMS = (
    Claim(
        number=2,
        statement="On a held-out combination the decoder draws the sum of what it draws for x alone and for y alone.",
        source="Sec. 3.3, Fig. 1d",
        figures=("1d",),
        plan=plan.bump_alone,
        parts=(
            Part("correlation of held-out images with that sum", of_runs("bump", sum_correlation), ">", 0.7, HALF),
            Part(
                "that correlation minus the one with sums of shuffled positions",
                of_runs("bump", sum_above_control),
                ">",
                0.25,
                "any two sums have something in common; a quarter of the scale must come from the right position",
            ),
        ),
        note="It depends on polarity and on the length of training: with bright bumps on black the hole goes blank "
        "instead, and with dark ones the correlation is highest early and falls as training goes on. Near the edge of "
        "the hole the decoder may still draw proper bumps, which are not sums. For a rate code the sums of any two "
        "positions look alike, so that its correlation says little.",
    ),
    Claim(
        number=3,
        statement="A held-out image resembles those seen images that share its x or its y: similarity follows the "
        "binary factorized kernel.",
        source="Sec. 3.3, Fig. 1e",
        figures=("1e",),
        plan=plan.bump_alone,
        parts=(
            Part(
                "correlation with the binary kernel, minus that of true images",
                of_runs("bump", binary_above_truth),
                ">",
                0.0,
                "true images are what a composing decoder would draw, and they agree with the kernel a little already",
            ),
            Part(
                "correlation with the binary kernel smoothed by the bump's width",
                of_runs("bump", smoothed_agreement),
                ">",
                0.7,
                HALF + "; the width is the task's own, so nothing is fitted",
            ),
            Part(
                "that correlation minus the one with the smoothed product kernel",
                of_runs("bump", smoothed_above_product),
                ">",
                0.0,
                "a shared x or y must explain more than a shared x and y, which is what a composing decoder has",
            ),
        ),
        note="The exact kernel only knows equal values, while bumps are wider than a pixel, so that it cannot agree "
        "fully with any set of bumps. Near the edge of the hole the decoder may still draw proper bumps, which follow "
        "the product kernel.",
    ),
    Claim(
        number=15,
        statement="Similarity matrices of a bump code's decoder are more block-like than those of a rate code's.",
        source="App. E.1, Fig. 8",
        figures=("8",),
        plan=plan.bump_and_rate,
        parts=tuple(
            Part(
                f"block score of the bump code minus that of the rate code, {kind}",
                more_blocks(kind),
                ">",
                0.0,
                "any increase counts, in each of the paper's three matrices; the spread over seeds shows what is noise",
            )
            for kind in KINDS
        ),
    ),
)
