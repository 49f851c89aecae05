"""Claims 10, 11, 13, 14, 22 and 23: what stripes do to the images, to the volume and to single units."""

from composcope.paper import stripes
from composcope.paper.claims.codes import accuracy, heldout_share
from composcope.paper.claims.effects import EQUAL, difference, of_runs
from composcope.paper.claims.lowrank import image_gap
from composcope.paper.evidence import Run
from composcope.paper.ledger import Claim, Part
from composcope.paper.stripes import few, least, like_bump, like_cross, most, unaided
from composcope.paper.tuning import additive_share, bump_likeness, channel_bands, early, late, stripe_likeness
from composcope.paper.volumes import mean_spread


def cross_over_bump(run: Run) -> float:
    return like_cross(run) - like_bump(run)


def composed(run: Run) -> float | None:
    """Share of held-out images that the true bump fits best of all oracles."""
    return run.diagnosis.verdict.score if run.diagnosis.verdict else None


def early_stripes(run: Run) -> float:
    return stripe_likeness(early(run)) - bump_likeness(early(run))


def late_bumps(run: Run) -> float:
    return bump_likeness(late(run)) - stripe_likeness(late(run))


def less_additive(run: Run) -> float:
    """How much of the first layer's additive share is gone in the last hidden layer."""
    return additive_share(early(run)) - additive_share(late(run))


def late_bump_likeness(run: Run) -> float:
    return bump_likeness(late(run))


def image_bump_likeness(run: Run) -> float:
    return bump_likeness(run.diagnosis.layers["image"])


def bands_gained(run: Run) -> float | None:
    """The own-axis share of first-layer channels less that before training."""
    after, before = channel_bands(run), channel_bands(run, trained=False)
    return None if after is None or before is None else after - before


CLAIMS = (
    Claim(
        number=10,
        statement="Trained on stripes alone, the decoder draws the additive cross of two stripes for combinations of "
        "which it has never seen any.",
        where="Sec. 4.2, Fig. 4b",
        figures=("4b", "7"),
        plan=stripes.with_least,
        parts=(
            Part(
                "share of crossings within a pixel of their place",
                of_runs(least, accuracy),
                ">",
                0.9,
                "the share that the paper asks for",
            ),
            Part(
                "correlation with the cross less that with the bump",
                of_runs(least, cross_over_bump),
                ">",
                0.0,
                "0 is as like the one as the other",
            ),
        ),
        known="Correlation over pixels, so the background does not matter. A bump and a cross are themselves alike "
        "(0.6 at 16 x 16), and a cross whose crossing is stronger than the sum of its arms lies between the two.",
    ),
    Claim(
        number=11,
        statement="Stripes and a few bumps make the decoder draw proper bumps on held-out combinations; as many bumps "
        "alone do not.",
        where="Sec. 4.2, Fig. 4b",
        figures=("4b", "7"),
        plan=stripes.compared,
        parts=(
            Part(
                "share of held-out bumps within a pixel, with stripes",
                of_runs(most, accuracy),
                ">",
                0.9,
                "the share that the paper asks for",
            ),
            Part(
                "share of held-out images that the true bump fits best, with stripes",
                of_runs(most, composed),
                ">",
                0.5,
                "most of them; a cross would be in place too, so the shape is asked for",
            ),
            Part(
                "held-out MSE / blank MSE, with stripes",
                of_runs(most, heldout_share),
                "<",
                0.5,
                "half of what an empty image errs by, as the failing codes are asked to exceed",
            ),
            Part(
                "share of held-out bumps within a pixel, as many bumps alone",
                of_runs(unaided, accuracy),
                "<",
                0.5,
                "most are not in place",
            ),
        ),
    ),
    Claim(
        number=13,
        statement="After training with stripes the volume element stays even across the held-out region, unlike with "
        "bumps alone.",
        where="Sec. 4.2, Fig. 4d",
        figures=("4d",),
        plan=stripes.compared,
        parts=(
            Part(
                "|gap of log10 volume| between held-out and seen images, with stripes",
                of_runs(most, image_gap),
                "<",
                0.3,
                "a factor of two",
            ),
            Part(
                "|gap of log10 volume| of images, with stripes less without",
                difference(most, unaided, image_gap),
                "<",
                0.0,
                EQUAL,
            ),
            Part(
                "spread of log10 volume, mean over layers, with stripes less without",
                difference(most, unaided, mean_spread),
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
        where="Sec. 4.2, Fig. 4f; App. E.4, Fig. 15",
        figures=("4f", "15"),
        plan=stripes.with_few,
        parts=(
            Part(
                "stripe-likeness less bump-likeness of first-layer units",
                of_runs(few, early_stripes),
                ">",
                0.0,
                "0 is as stripe-like as bump-like",
            ),
            Part(
                "additive share of the first layer less that of the last hidden layer",
                of_runs(few, less_additive),
                ">",
                0.0,
                EQUAL + "; a stripe or a cross is additive, a bump is not",
            ),
            Part(
                "bump-likeness less stripe-likeness of last hidden layer's units",
                of_runs(few, late_bumps),
                ">",
                0.0,
                "0 is as bump-like as stripe-like",
            ),
        ),
        known="Means over all units that respond. The image's own pixels are bump-like as soon as bumps are drawn, "
        "which is no evidence of what happens inside; so the last hidden layer is judged. A cross is half a stripe.",
    ),
    Claim(
        number=22,
        statement="After training with stripes, first-layer channels look like the penalised low-rank embeddings: "
        "bands on the own axis of the value that is shown.",
        where="Sec. 4.2, Fig. 4e",
        figures=("4e",),
        plan=stripes.few_compared,
        parts=(
            Part(
                "share of variance along the own axis, with stripes",
                of_runs(few, channel_bands),
                ">",
                0.5,
                "more of it along the own axis than otherwise, as is asked of the embeddings",
            ),
            Part(
                "that share, with stripes less bumps alone",
                difference(few, unaided, channel_bands),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "that share, after less before training with stripes",
                of_runs(few, bands_gained),
                ">",
                0.0,
                EQUAL,
            ),
        ),
        known="Each channel's map for one value of x or y alone, the other absent: the counterpart of an embedding. "
        "The first map is a quarter of the image wide, so that bands are coarse.",
    ),
    Claim(
        number=23,
        statement="The more bumps join the stripes, the more sharply units are tuned.",
        where="App. E.4, Fig. 15",
        figures=("15",),
        plan=stripes.ends,
        parts=(
            Part(
                "bump-likeness of the image's pixels, most bumps less none",
                difference(most, least, image_bump_likeness),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "bump-likeness of the last hidden layer's units, most bumps less none",
                difference(most, least, late_bump_likeness),
                ">",
                0.0,
                EQUAL,
            ),
        ),
        known="Pixels of the image and units of the layer before it are judged apart: the first must sharpen where "
        "crosses give way to bumps, the second need not.",
    ),
)
