"""Claims 14, 22 and 23: what stripes do to single units."""

from collections.abc import Callable

from composcope.diagnosis.layers import LayerDiagnosis
from composcope.papers.forced_rendering.errors import EQUAL
from composcope.papers.forced_rendering.gates import learned
from composcope.papers.forced_rendering.stripes import plan
from composcope.papers.forced_rendering.stripes.first_layer import channel_bands, single_factor_share
from composcope.papers.forced_rendering.stripes.plan import bumps_alone, few_bumps, most_bumps, stripes_alone
from composcope.papers.forced_rendering.stripes.trends import UPWARD, beyond_untrained, over_bumps, over_layers
from composcope.papers.forced_rendering.stripes.tuning import (
    additive_share,
    bump_likeness,
    early,
    late,
    sample_bump,
    sample_stripe,
    stripe_likeness,
)
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part
from composcope.study.effects import Number, difference, of_runs


def sample_contrast(layer: LayerDiagnosis) -> float:
    """Bump-likeness minus stripe-likeness of the sample units, those at the middle of the maps."""
    return sample_bump(layer) - sample_stripe(layer)


def contrast(layer: LayerDiagnosis) -> float:
    """The same of all units."""
    return bump_likeness(layer) - stripe_likeness(layer)


def first(measure: Callable[[LayerDiagnosis], float]) -> Number:
    return lambda run: measure(early(run))


def last_hidden(measure: Callable[[LayerDiagnosis], float]) -> Number:
    return lambda run: measure(late(run))


def of_image(measure: Callable[[LayerDiagnosis], float]) -> Number:
    return lambda run: measure(run.diagnosis.layers["image"])


def additive_loss(run: Run) -> float:
    """Additive share of the first layer minus that of the last hidden layer."""
    return additive_share(early(run)) - additive_share(late(run))


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
        plan=plan.with_few,
        primary=(
            Part(
                "stripe-likeness minus bump-likeness of sample units of the first layer",
                learned(of_runs(few_bumps, first(lambda layer: -sample_contrast(layer))), few_bumps),
                ">",
                0.0,
                "at 0 they are as stripe-like as bump-like",
            ),
            Part(
                "additive share of a layer, slope per hidden layer",
                learned(of_runs(few_bumps, over_layers(additive_share)), few_bumps),
                "<",
                0.0,
                UPWARD + "; App. E.4 says that units go from additive to multiplicative",
            ),
            Part(
                "bump-likeness of sample units, slope per hidden layer, after minus before training",
                learned(of_runs(few_bumps, beyond_untrained(sample_bump)), few_bumps),
                ">",
                0.0,
                "later layers of an untrained network are more bump-like already",
            ),
        ),
        secondary=(
            Part(
                "bump-likeness minus stripe-likeness of sample units, slope per hidden layer",
                learned(of_runs(few_bumps, over_layers(sample_contrast)), few_bumps),
                ">",
                0.0,
                UPWARD,
            ),
            Part(
                "stripe-likeness minus bump-likeness of all units of the first layer",
                learned(of_runs(few_bumps, first(lambda layer: -contrast(layer))), few_bumps),
                ">",
                0.0,
                "at 0 they are as stripe-like as bump-like",
            ),
            Part(
                "bump-likeness minus stripe-likeness of all units, slope per hidden layer",
                learned(of_runs(few_bumps, over_layers(contrast)), few_bumps),
                ">",
                0.0,
                UPWARD,
            ),
            Part(
                "bump-likeness minus stripe-likeness of sample units of the last hidden layer",
                learned(of_runs(few_bumps, last_hidden(sample_contrast)), few_bumps),
                ">",
                0.0,
                "at 0 they are as bump-like as stripe-like",
            ),
            Part(
                "additive share of the first layer minus that of the last hidden layer",
                learned(of_runs(few_bumps, additive_loss), few_bumps),
                ">",
                0.0,
                EQUAL + "; a stripe or a cross is additive, a bump is not",
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
        plan=plan.few_and_without,
        primary=(
            Part(
                "share of a first-layer unit's variance over (x, y) that one factor explains, with stripes",
                learned(of_runs(few_bumps, single_factor_share), few_bumps),
                ">",
                0.5,
                "an even cross of two stripes has a half, a stripe 1",
            ),
            Part(
                "that share, after minus before training with stripes",
                learned(of_runs(few_bumps, stripes_gained), few_bumps),
                ">",
                0.0,
                "units of an untrained network have a little more than a half already",
            ),
            Part(
                "share of the variance of first-layer maps along the own axis, with stripes",
                learned(of_runs(few_bumps, channel_bands), few_bumps),
                ">",
                0.5,
                "more than half of it lies along the own axis, as is required of the embeddings",
            ),
        ),
        secondary=(
            Part(
                "that share, with stripes minus bumps alone",
                learned(difference(few_bumps, bumps_alone, single_factor_share), few_bumps, bumps_alone),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "share along the own axis, with stripes minus bumps alone",
                learned(difference(few_bumps, bumps_alone, channel_bands), few_bumps, bumps_alone),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "share along the own axis, after minus before training with stripes",
                learned(of_runs(few_bumps, bands_gained), few_bumps),
                ">",
                0.0,
                EQUAL,
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
        plan=plan.increasing_bumps,
        primary=(
            Part(
                "bump-likeness of sample units of the last hidden layer, slope per step in the number of bumps",
                learned(over_bumps(last_hidden(sample_bump)), plan.increasing_bumps),
                ">",
                0.0,
                UPWARD,
            ),
        ),
        secondary=(
            Part(
                "bump-likeness of all units of the last hidden layer, slope per step in the number of bumps",
                learned(over_bumps(last_hidden(bump_likeness)), plan.increasing_bumps),
                ">",
                0.0,
                UPWARD,
            ),
            Part(
                "bump-likeness of sample units of the last hidden layer, most bumps minus none",
                learned(difference(most_bumps, stripes_alone, last_hidden(sample_bump)), stripes_alone, most_bumps),
                ">",
                0.0,
                EQUAL,
            ),
            Part(
                "bump-likeness of the image's pixels, slope per step in the number of bumps",
                learned(over_bumps(of_image(bump_likeness)), plan.increasing_bumps),
                ">",
                0.0,
                UPWARD,
            ),
        ),
        note="Steps: from each number of bumps to the next. Pixels of the image must become sharper when bumps replace "
        "crosses, the units before them need not.",
    ),
)
