"""Claims 14, 22 and 23: what stripes do to single units."""

from composcope.papers.forced_rendering.base import EQUAL
from composcope.papers.forced_rendering.stripes.claims import UPWARD, over_bumps
from composcope.papers.forced_rendering.stripes.figures import (
    bumps_alone,
    few_and_without,
    few_bumps,
    increasing_bumps,
    most_bumps,
    stripes_alone,
)
from composcope.papers.forced_rendering.stripes.units import (
    ADDITIVE,
    BUMP,
    SAMPLE_BUMP,
    SAMPLE_STRIPE,
    STRIPE,
    channel_bands,
    single_factor_share,
)
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part, difference, of_runs
from composcope.study.layers import fall, hidden, slope
from composcope.study.plan import only


def stripes_gained(run: Run) -> float:
    """The single-factor share of first-layer units minus that before training."""
    return single_factor_share(run) - single_factor_share(run, trained=False)


def bands_gained(run: Run) -> float | None:
    """The own-axis share of first-layer channels minus that before training."""
    after, before = channel_bands(run), channel_bands(run, trained=False)
    return None if after is None or before is None else after - before


CLAIMS = (
    Claim(
        number=14,
        version=3,
        statement="After training with stripes, units of the first layer respond in stripes, and from layer to layer "
        "units respond more in bumps.",
        source="Sec. 4.2, Fig. 4f; App. E.4, Fig. 15",
        figures=("4f", "15"),
        plan=only(increasing_bumps, few_bumps),
        primary=(
            Part(
                "stripe-likeness minus bump-likeness of sample units of the first layer",
                of_runs(few_bumps, (SAMPLE_STRIPE - SAMPLE_BUMP).at("first hidden")),
                ">",
                0.0,
                "at 0 they are as stripe-like as bump-like",
                learned=True,
            ),
            Part(
                "additive share of a layer, slope per hidden layer",
                of_runs(few_bumps, ADDITIVE.of_curve(hidden(slope))),
                "<",
                0.0,
                UPWARD + "; App. E.4 says that units go from additive to multiplicative",
                learned=True,
            ),
            Part(
                "bump-likeness of sample units, slope per hidden layer, after minus before training",
                of_runs(few_bumps, SAMPLE_BUMP.beyond_untrained(hidden(slope))),
                ">",
                0.0,
                "later layers of an untrained network are more bump-like already",
                learned=True,
            ),
        ),
        secondary=(
            Part(
                "bump-likeness minus stripe-likeness of sample units, slope per hidden layer",
                of_runs(few_bumps, (SAMPLE_BUMP - SAMPLE_STRIPE).of_curve(hidden(slope))),
                ">",
                0.0,
                UPWARD,
                learned=True,
            ),
            Part(
                "stripe-likeness minus bump-likeness of all units of the first layer",
                of_runs(few_bumps, (STRIPE - BUMP).at("first hidden")),
                ">",
                0.0,
                "at 0 they are as stripe-like as bump-like",
                learned=True,
            ),
            Part(
                "bump-likeness minus stripe-likeness of all units, slope per hidden layer",
                of_runs(few_bumps, (BUMP - STRIPE).of_curve(hidden(slope))),
                ">",
                0.0,
                UPWARD,
                learned=True,
            ),
            Part(
                "bump-likeness minus stripe-likeness of sample units of the last hidden layer",
                of_runs(few_bumps, (SAMPLE_BUMP - SAMPLE_STRIPE).at("last hidden")),
                ">",
                0.0,
                "at 0 they are as bump-like as stripe-like",
                learned=True,
            ),
            Part(
                "additive share of the first layer minus that of the last hidden layer",
                of_runs(few_bumps, ADDITIVE.of_curve(hidden(fall))),
                ">",
                0.0,
                EQUAL + "; a stripe or a cross is additive, a bump is not",
                learned=True,
            ),
        ),
        note="The paper shows units without saying how they were chosen. Sample units here are those at the middle of "
        "the maps, one per channel, close to those named on its poster; means over those that respond. The image's own "
        "pixels are bump-like as soon as bumps are drawn, so only hidden layers count. A cross is half stripe-like. "
        "The second and third primary part took the place of a slope of the contrast in version 3, after a look at "
        "seeds 10 to 14.",
    ),
    Claim(
        number=22,
        version=4,
        statement="After training with stripes, first-layer units respond in stripes over (x, y), which look like the "
        "penalized low-rank embeddings.",
        source="Sec. 4.2, Fig. 4e",
        figures=("4e",),
        plan=few_and_without,
        primary=(
            Part(
                "share of a first-layer unit's variance over (x, y) that one factor explains, with stripes",
                of_runs(few_bumps, single_factor_share),
                ">",
                0.5,
                "an even cross of two stripes has a half, a stripe 1",
                learned=True,
            ),
            Part(
                "that share, after minus before training with stripes",
                of_runs(few_bumps, stripes_gained),
                ">",
                0.0,
                "units of an untrained network have a little more than a half already",
                learned=True,
            ),
            Part(
                "share of the variance of first-layer maps along the own axis, with stripes",
                of_runs(few_bumps, channel_bands),
                ">",
                0.5,
                "more than half of it lies along the own axis, as is required of the embeddings",
                learned=True,
            ),
        ),
        secondary=(
            Part(
                "that share, with stripes minus bumps alone",
                difference(few_bumps, bumps_alone, single_factor_share),
                ">",
                0.0,
                EQUAL,
                learned=True,
            ),
            Part(
                "share along the own axis, with stripes minus bumps alone",
                difference(few_bumps, bumps_alone, channel_bands),
                ">",
                0.0,
                EQUAL,
                learned=True,
            ),
            Part(
                "share along the own axis, after minus before training with stripes",
                of_runs(few_bumps, bands_gained),
                ">",
                0.0,
                EQUAL,
                learned=True,
            ),
        ),
        note="Means over all units that respond. The maps of the secondary parts are each channel's for one value of x "
        "or y alone, the other absent: the counterpart of an embedding. They have a quarter of the image's side. That "
        "training must have made the stripes was a secondary part before version 3, that the maps look like the "
        "embeddings one before version 4, which was written after a look at seeds 10 to 14.",
    ),
    Claim(
        number=23,
        version=2,
        statement="The more bumps are added to the stripes, the more sharply units are tuned.",
        source="App. E.4, Fig. 15",
        figures=("15",),
        plan=increasing_bumps,
        primary=(
            Part(
                "bump-likeness of sample units of the last hidden layer, slope per step in the number of bumps",
                over_bumps(SAMPLE_BUMP.at("last hidden")),
                ">",
                0.0,
                UPWARD,
                learned=True,
            ),
        ),
        secondary=(
            Part(
                "bump-likeness of all units of the last hidden layer, slope per step in the number of bumps",
                over_bumps(BUMP.at("last hidden")),
                ">",
                0.0,
                UPWARD,
                learned=True,
            ),
            Part(
                "bump-likeness of sample units of the last hidden layer, most bumps minus none",
                difference(most_bumps, stripes_alone, SAMPLE_BUMP.at("last hidden")),
                ">",
                0.0,
                EQUAL,
                learned=True,
            ),
            Part(
                "bump-likeness of the image's pixels, slope per step in the number of bumps",
                over_bumps(BUMP.at("image")),
                ">",
                0.0,
                UPWARD,
                learned=True,
            ),
        ),
        note="Steps: from each number of bumps to the next. Pixels of the image must become sharper when bumps replace "
        "crosses, the units before them need not.",
    ),
)
