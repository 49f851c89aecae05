"""Claims 10, 11, 13, 14, 22 and 23: what stripes do to the images, to the volume and to single units."""

from composcope.experiments.run import Run
from composcope.papers.forced_rendering.errors import EQUAL, accuracy, heldout_share
from composcope.papers.forced_rendering.layers import image_gap
from composcope.papers.forced_rendering.stripes import plan
from composcope.papers.forced_rendering.stripes.numbers import like_bump, like_cross
from composcope.papers.forced_rendering.stripes.plan import bumps_alone, few_bumps, most_bumps, stripes_alone
from composcope.papers.forced_rendering.stripes.tuning import (
    additive_share,
    bump_likeness,
    channel_bands,
    early,
    late,
    stripe_likeness,
)
from composcope.papers.forced_rendering.volumes import mean_spread
from composcope.study.claim import Claim, Part
from composcope.study.effects import difference, of_runs

PAPER_SHARE = "the share that the paper requires"


def cross_over_bump(run: Run) -> float:
    """Correlation of held-out images with the cross minus that with the bump."""
    return like_cross(run) - like_bump(run)


def composed(run: Run) -> float | None:
    """Share of held-out images that the true bump fits best among all known answers."""
    return run.diagnosis.verdict.score if run.diagnosis.verdict else None


def early_stripes(run: Run) -> float:
    """Stripe-likeness minus bump-likeness of the first layer."""
    return stripe_likeness(early(run)) - bump_likeness(early(run))


def late_bumps(run: Run) -> float:
    """Bump-likeness minus stripe-likeness of the last hidden layer."""
    return bump_likeness(late(run)) - stripe_likeness(late(run))


def additive_loss(run: Run) -> float:
    """Additive share of the first layer minus that of the last hidden layer."""
    return additive_share(early(run)) - additive_share(late(run))


def late_bump_likeness(run: Run) -> float:
    return bump_likeness(late(run))


def image_bump_likeness(run: Run) -> float:
    return bump_likeness(run.diagnosis.layers["image"])


def bands_gained(run: Run) -> float | None:
    """The own-axis share of first-layer channels minus that before training."""
    after, before = channel_bands(run), channel_bands(run, trained=False)
    return None if after is None or before is None else after - before


CLAIMS = (
    Claim(
        number=10,
        statement="Trained on stripes alone, the decoder draws the additive cross of two stripes for combinations, "
        "none of which it has seen.",
        source="Sec. 4.2, Fig. 4b",
        figures=("4b", "7"),
        plan=plan.only_stripes,
        parts=(
            Part(
                "share of crossings within 1 pixel of the true position",
                of_runs(stripes_alone, accuracy),
                ">",
                0.9,
                PAPER_SHARE,
            ),
            Part(
                "correlation with the cross minus that with the bump",
                of_runs(stripes_alone, cross_over_bump),
                ">",
                0.0,
                "at 0 it is as similar to the one as to the other",
            ),
        ),
        note="Correlation over pixels, so the background does not matter. A bump and a cross are themselves correlated "
        "(0.6 at 16 x 16), and a cross whose crossing is stronger than the sum of its arms lies between the two.",
    ),
    Claim(
        number=11,
        statement="Stripes and a few bumps make the decoder draw proper bumps on held-out combinations; as many bumps "
        "alone do not.",
        source="Sec. 4.2, Fig. 4b",
        figures=("4b", "7"),
        plan=plan.with_and_without,
        parts=(
            Part(
                "share of held-out bumps within 1 pixel, with stripes",
                of_runs(most_bumps, accuracy),
                ">",
                0.9,
                PAPER_SHARE,
            ),
            Part(
                "share of held-out images that the true bump fits best, with stripes",
                of_runs(most_bumps, composed),
                ">",
                0.5,
                "most of them; a cross would also be within 1 pixel, so the shape is required",
            ),
            Part(
                "held-out MSE / blank MSE, with stripes",
                of_runs(most_bumps, heldout_share),
                "<",
                0.5,
                "half of a blank image's error, which the failing codes have to exceed",
            ),
            Part(
                "share of held-out bumps within 1 pixel, as many bumps alone",
                of_runs(bumps_alone, accuracy),
                "<",
                0.5,
                "most are farther than 1 pixel from the true position",
            ),
        ),
    ),
    Claim(
        number=13,
        statement="After training with stripes the volume element stays even across the held-out region, unlike with "
        "bumps alone.",
        source="Sec. 4.2, Fig. 4d",
        figures=("4d",),
        plan=plan.with_and_without,
        parts=(
            Part(
                "|gap of log10 volume| between held-out and seen images, with stripes",
                of_runs(most_bumps, image_gap),
                "<",
                0.3,
                "a factor of two",
            ),
            Part(
                "|gap of log10 volume| of images, with stripes minus without",
                difference(most_bumps, bumps_alone, image_gap),
                "<",
                0.0,
                EQUAL,
            ),
            Part(
                "spread of log10 volume, mean over layers, with stripes minus without",
                difference(most_bumps, bumps_alone, mean_spread),
                "<",
                0.0,
                EQUAL,
            ),
        ),
    ),
    Claim(
        number=14,
        statement="After training with stripes, units of the first layer respond in stripes, those of the last hidden "
        "layer in bumps.",
        source="Sec. 4.2, Fig. 4f; App. E.4, Fig. 15",
        figures=("4f", "15"),
        plan=plan.with_few,
        parts=(
            Part(
                "stripe-likeness minus bump-likeness of first-layer units",
                of_runs(few_bumps, early_stripes),
                ">",
                0.0,
                "at 0 they are as stripe-like as bump-like",
            ),
            Part(
                "additive share of the first layer minus that of the last hidden layer",
                of_runs(few_bumps, additive_loss),
                ">",
                0.0,
                EQUAL + "; a stripe or a cross is additive, a bump is not",
            ),
            Part(
                "bump-likeness minus stripe-likeness of units of the last hidden layer",
                of_runs(few_bumps, late_bumps),
                ">",
                0.0,
                "at 0 they are as bump-like as stripe-like",
            ),
        ),
        note="Means over all units that respond. The image's own pixels are bump-like as soon as bumps are drawn, "
        "which says nothing about the layers before; so the last hidden layer is judged. A cross is half stripe-like.",
    ),
    Claim(
        number=22,
        statement="After training with stripes, first-layer channels look like the penalized low-rank embeddings: "
        "bands on the own axis of the value that is shown.",
        source="Sec. 4.2, Fig. 4e",
        figures=("4e",),
        plan=plan.few_and_without,
        parts=(
            Part(
                "share of variance along the own axis, with stripes",
                of_runs(few_bumps, channel_bands),
                ">",
                0.5,
                "more than half of it lies along the own axis, as is required of the embeddings",
            ),
            Part(
                "that share, with stripes minus bumps alone",
                difference(few_bumps, bumps_alone, channel_bands),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "that share, after minus before training with stripes",
                of_runs(few_bumps, bands_gained),
                ">",
                0.0,
                EQUAL,
            ),
        ),
        note="Each channel's map for one value of x or y alone, the other absent: the counterpart of an embedding. "
        "The first layer's maps have a quarter of the image's side, so that bands are coarse.",
    ),
    Claim(
        number=23,
        statement="The more bumps are added to the stripes, the more sharply units are tuned.",
        source="App. E.4, Fig. 15",
        figures=("15",),
        plan=plan.none_and_most,
        parts=(
            Part(
                "bump-likeness of the image's pixels, most bumps minus none",
                difference(most_bumps, stripes_alone, image_bump_likeness),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "bump-likeness of units of the last hidden layer, most bumps minus none",
                difference(most_bumps, stripes_alone, late_bump_likeness),
                ">",
                0.0,
                EQUAL,
            ),
        ),
        note="Pixels of the image and units of the layer before it are judged separately: the former must become "
        "sharper when bumps replace crosses, the latter need not.",
    ),
)
