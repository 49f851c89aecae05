"""Claims 25, 32 and 33: whether the layers' re-entanglement, by any of its measures, goes with the failure.

If the layers' re-entanglement causes the failure, decoders that compose are less entangled than decoders that fail, and
a cure makes a decoder less entangled. That both go together would be necessary for a cause, not proof of one.
"""

from composcope.papers.forced_rendering.base import EQUAL, all_codes
from composcope.papers.forced_rendering.controls.figures import all_controls
from composcope.papers.forced_rendering.lowrank.figures import ablation
from composcope.papers.forced_rendering.similarity.figures import sums
from composcope.papers.forced_rendering.stripes.figures import all_amounts, bumps_alone, most_bumps
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part, difference
from composcope.study.plan import KeyOf, only, together

# Every kind of decoder that fails or composes: codes, amounts of stripes and bumps, the corner, no hole, and low-rank
# embeddings. At the sizes of the figures that they belong to.
conditions = together(all_codes, all_amounts, only(all_controls, "corner", "no hole"), ablation)
# Each cure and its untreated control: no hole, both penalties, stripes.
cured_and_not = only(conditions, "bump", "no hole", "none", "both", bumps_alone, most_bumps)

MEASURES = (
    "factorization (eq. 7, differences) at the last hidden layer",
    "minus |gap of log10 volume| (differences) at the last hidden layer",
    "R2 of probes fitted on seen and scored on held-out points at the last hidden layer",
    "PF_Coeff of single factors",
)
"""Each is larger the less entangled a decoder is, in the paper's reading."""

APART = (
    "0.5 is no association. At least 0.6 is required, so that an interval inside 0.4 to 0.6, or on the other side, "
    "contradicts; wider intervals leave it open"
)
CURES: tuple[tuple[str, KeyOf, KeyOf], ...] = (
    ("no hole minus hole", "no hole", "bump"),
    ("both penalties minus none", "both", "none"),
    ("stripes and most bumps minus as many bumps alone", most_bumps, bumps_alone),
)


def pf_coeff(run: Run) -> float | None:
    """The share of single-factor terms in the kernel of the images."""
    return run.diagnosis.kernels.pf_coeff


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
                f"AUC of {measure}, composing against failing runs, conditions left out in turn",
                None,
                ">",
                0.6,
                APART,
            )
            for measure in MEASURES
        ),
        secondary=(
            *(
                Part(
                    f"rank correlation of {measure} with held-out accuracy over the seeds of a condition",
                    None,
                    ">",
                    0.2,
                    "the counterpart of an AUC of 0.6",
                )
                for measure in MEASURES
            ),
            *(
                Part(f"{measure}, {cure}", None, ">", 0.0, EQUAL + "; a cure makes a decoder less entangled")
                for measure in MEASURES
                for cure, _, _ in CURES
            ),
            *(
                Part(f"{measure}, slope per step in the number of bumps with stripes", None, ">", 0.0, "0 is no trend")
                for measure in MEASURES
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
                None,
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "rank correlation over snapshots of the gap of log10 volume of images (exact) with the share of "
                "held-out images with nothing drawn",
                None,
                "<",
                0.0,
                EQUAL,
            ),
        ),
        note="The gap of these networks had either sign in earlier seeds, and changes as training goes on.",
    ),
)

PANELS = ()
