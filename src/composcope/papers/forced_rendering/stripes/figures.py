"""Figures 4a, 4b, 4d to 4f, 7 and 15: decoders trained on stripes alone, with ever more bumps, and on bumps alone."""

from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

from composcope.diagnosis.superposition import additive_cross
from composcope.factors import absent
from composcope.measures.error import shape_correlation
from composcope.papers.forced_rendering.base import SIZES as BASE
from composcope.papers.forced_rendering.base import all_codes, base_spec, spread_rows
from composcope.papers.forced_rendering.stripes.drawing import draw_outputs, draw_samples, draw_stripe_set, draw_volume
from composcope.papers.forced_rendering.stripes.drawing_units import draw_first_layers, draw_typical, draw_units
from composcope.papers.forced_rendering.stripes.units import first_layers, stripe_and_bump, typical, unit_table
from composcope.papers.forced_rendering.volumes import evenness_both_ways, evenness_table
from composcope.runs.run import Run
from composcope.runs.spec import Spec, training_latents
from composcope.sampling import Stripes, single_values
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, label_of, of_preset, only, together
from composcope.tasks.base import Images
from composcope.tasks.bump import BumpTask
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What differs from the base run.

    - `bumps`: how many bumps are added to the stripes, ascending; the last is compared with as many bumps alone.
    - `training`: the paper does not say how long; the paper preset has as many steps as the base run.
    """

    bumps: tuple[int, ...]
    training: Training


SIZES = {
    "quick": Sizes((0, 10, 50, 100), Training(steps=1500, batch=16)),
    "paper": Sizes((0, 10, 50, 100), Training(steps=3150)),
    "tiny": Sizes((0, 10, 20), Training(steps=5, batch=8)),
}


@dataclass(frozen=True)
class Amount:
    """What a decoder is trained on: all stripes or none, and so many bumps.

    >>> Amount(stripes=True, bumps=50).label, Amount(stripes=False, bumps=100).label
    ('stripes + 50', '100 bumps')
    """

    stripes: bool
    bumps: int

    @property
    def label(self) -> str:
        return f"stripes + {self.bumps}" if self.stripes else f"{self.bumps} bumps"


def stripes_alone(preset: Preset) -> Amount:
    """All stripes and the fewest bumps: none."""
    return Amount(stripes=True, bumps=of_preset(SIZES, preset).bumps[0])


def few_bumps(preset: Preset) -> Amount:
    """All stripes and a few bumps."""
    return Amount(stripes=True, bumps=of_preset(SIZES, preset).bumps[-2])


def most_bumps(preset: Preset) -> Amount:
    """All stripes and the most bumps."""
    return Amount(stripes=True, bumps=of_preset(SIZES, preset).bumps[-1])


def bumps_alone(preset: Preset) -> Amount:
    """The most bumps without stripes."""
    return Amount(stripes=False, bumps=of_preset(SIZES, preset).bumps[-1])


@cache
def stripes_spec(preset: Preset, amount: Amount, seed: int) -> Spec:
    """The base run with the bump code, trained on this amount of stripes and bumps instead.

    The paper does not say how a stripe is coded; the absent factor's part of the code is zeros.
    """
    return replace(
        base_spec(preset, "bump", seed),
        sampling=Stripes(stripes=None if amount.stripes else 0, bumps=amount.bumps),
        training=of_preset(SIZES, preset).training,
    )


def _plan(preset: Preset, *amounts: Amount) -> Plan:
    seeds = of_preset(BASE, preset).seeds
    return {amount: tuple(stripes_spec(preset, amount, seed) for seed in seeds) for amount in amounts}


def increasing_bumps(preset: Preset) -> Plan:
    """All stripes and ever more bumps."""
    return _plan(preset, *(Amount(stripes=True, bumps=bumps) for bumps in of_preset(SIZES, preset).bumps))


def _most_bumps_alone(preset: Preset) -> Plan:
    return _plan(preset, bumps_alone(preset))


def _all_bumps(preset: Preset) -> Plan:
    return {ALL_BUMPS: all_codes(preset)["bump"]}


ALL_BUMPS = "all bumps"
"""The key of the base runs, those of figure 2, trained on all seen bumps or draws of them."""

# All stripes and ever more bumps, and the most bumps without stripes.
all_amounts = together(increasing_bumps, _most_bumps_alone)
# The most bumps with stripes, as many alone, and the base runs, which the paper compares with.
with_and_without = only(together(all_amounts, _all_bumps), most_bumps, bumps_alone, ALL_BUMPS)
few_and_without = only(all_amounts, few_bumps, bumps_alone)


def samples(evidence: Evidence, shown: int = 4) -> Numbers:
    """Some of the first run's training images: vertical stripes, horizontal stripes and bumps."""
    ((key, (run, *_)),) = evidence.items()
    spec = run.spec
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    missing = absent(latents)
    kinds = {
        "stripes at x": latents[missing[:, 1]],
        "stripes at y": latents[missing[:, 0]],
        "bumps": latents[~missing.any(1)],
    }
    rows: Rows = []
    for kind, all_of_kind in kinds.items():
        examples = all_of_kind[_spaced(len(all_of_kind), shown)]
        for (x, y), image in zip(examples.tolist(), spec.task.render(examples), strict=True):
            place = {"x": _value_or_any(x), "y": _value_or_any(y)}
            about = {"run": label_of(key), "kind": kind, "in the training set": len(all_of_kind)}
            rows.append({**about, **place, "image": image})
    return Numbers(rows)


def _value_or_any(value: float) -> str:
    """An absent factor is NaN: its stripe covers every value."""
    return f"{value:g}" if value == value else "any"


def _spaced(count: int, shown: int) -> list[int]:
    """Indices in the middle of equal parts, as many as are shown."""
    return [int((part + 0.5) * count / shown) for part in range(min(shown, count))]


def outputs(evidence: Evidence) -> Numbers:
    """Errors of every run, and how alike its held-out images are to a bump and to a cross; some of these images."""
    any_run = evidence.any_run
    points = spread_rows(any_run.split.latents, any_run.split.mask)[::2]
    truth, blank = any_run.spec.task.foreground(any_run.truth), any_run.error["blank_mse"]

    def numbers(run: Run) -> Row:
        sampling = run.spec.sampling
        assert isinstance(sampling, Stripes)
        bumps = sampling.bumps or 0
        return {
            "bumps": bumps,
            "share of seen bumps": bumps / len(run.split.seen),
            "held-out accuracy": run.error["accuracy"],
            "held-out MSE": run.error["heldout_mse"],
            "blank MSE": blank,
            "correlation with the bump": like_bump(run),
            "correlation with the cross": like_cross(run),
        }

    common = {
        "points": any_run.split.latents[points],
        "truth": any_run.truth[points],
        # How alike a true bump and the cross are.
        "bump like cross": shape_correlation(truth, cross(any_run))[any_run.split.mask].mean().item(),
    }
    return evidence.numbers("trained on", numbers, lambda run: {"images": run.draw()[points]}, common)


def stripe_set(evidence: Evidence) -> Numbers:
    """The same, and all stripes of the task."""
    numbers, task = outputs(evidence), evidence.any_run.spec.task
    return replace(numbers, common={**numbers.common, "stripes": task.render(single_values(task))})


def cross(run: Run) -> Images:
    """The sum of the stripes at x and at y, over the grid."""
    images = additive_cross(run.spec.task, run.split.latents)
    assert images is not None  # a bump task can draw stripes
    return images


def like_bump(run: Run) -> float:
    """Correlation over pixels of held-out images with the true bump, mean over images."""
    return _likeness(run, run.spec.task.foreground(run.truth))


def like_cross(run: Run) -> float:
    """The same with the additive cross of two stripes."""
    return _likeness(run, cross(run))


def _likeness(run: Run, targets: Images) -> float:
    heldout = run.split.mask
    images = run.spec.task.foreground(run.draw())
    return shape_correlation(images[heldout], targets[heldout]).mean().item()


def crossing_strength(run: Run) -> float:
    """Foreground at the true crossing over that of a stripe, mean over held-out images: 2 for a sum, 1 for a union."""
    images, x, y, height = _stripes_crossed(run)
    return (images[torch.arange(len(images)), y, x].mean() / height).item()


def arm_strength(run: Run) -> float:
    """Foreground along both stripes' centre lines, away from the crossing, over that of a stripe; 0 for a product."""
    images, x, y, height = _stripes_crossed(run)
    assert isinstance(run.spec.task, BumpTask)
    away = 3 * run.spec.task.sigma
    pixels = torch.arange(images.shape[-1])
    arms = []
    for image, column, row in zip(images, x.tolist(), y.tolist(), strict=True):
        arms += [image[(pixels - row).abs() > away, column], image[row, (pixels - column).abs() > away]]
    return (torch.cat(arms).mean() / height).item()


def _stripes_crossed(run: Run) -> tuple[Tensor, Tensor, Tensor, float]:
    """Held-out foregrounds, the columns and rows of their crossings, and the foreground of a true stripe there."""
    task, latents = run.spec.task, run.split.heldout
    images = task.foreground(run.draw()[run.split.mask])[:, 0]
    x, y = latents.round().long().T
    return images, x, y, task.foreground(task.render(single_values(task))).amax().item()


PANELS = (
    Panel(
        name="4a",
        title="The training set: stripes and a few bumps",
        see="A stripe shows one value of one factor and nothing about the other; bumps come from outside the hole.",
        plan=only(increasing_bumps, most_bumps),
        numbers=samples,
        draw=draw_samples,
        no_claim="it shows the training set",
        diagnosed=False,
        first_seed="training set",
    ),
    Panel(
        name="4b",
        title="Held-out images as bumps are added to the stripes",
        see="From crosses to bumps, down the rows; the last row has as many bumps and no stripes. A cross at the true "
        "position counts as within 1 pixel: the correlation distinguishes it from a bump. The plus marks the true "
        "position; each row has its own grey scale.",
        plan=all_amounts,
        numbers=outputs,
        draw=draw_outputs,
        diagnosed=False,
        first_seed="images",
    ),
    Panel(
        name="4d",
        title="Volume element after training with and without stripes",
        see="How even the colour is, above all across the line around held-out (x, y), down to the image; by "
        "differences on the grid, as in the paper, and exactly. The number is the spread: the standard deviation of "
        "log10 volume over the grid without its border, mean over seeds.",
        plan=with_and_without,
        numbers=evenness_both_ways,
        table=evenness_table,
        draw=draw_volume,
        first_seed="maps",
    ),
    Panel(
        name="4e",
        title="First-layer units after training with and without stripes",
        see="Above, the activation of units over (x, y), as in the paper: stripes, or crosses. Below, whole channels: "
        "whether a value of x alone gives vertical bands and one of y horizontal bands, as in the penalized embeddings "
        "of figure 3b. The shares in the titles are over all units, and over all values and channels.",
        plan=few_and_without,
        numbers=first_layers,
        draw=draw_first_layers,
        diagnosed=False,
        first_seed="units and channels",
    ),
    Panel(
        name="4f",
        title="Tuning over (x, y), layer by layer",
        see="A typical unit of each layer, the median of those at the middle of the map: bands, crosses or a bump. On "
        "the right the mean over these units, one per channel, and over all; dashed, before training.",
        plan=only(increasing_bumps, few_bumps),
        numbers=typical,
        table=unit_table,
        draw=draw_typical,
        first_seed="maps",
    ),
    Panel(
        name="7",
        title="The stripe set, and increasing shares of bumps",
        see="What share of the seen bumps is needed until held-out images are bumps instead of crosses.",
        plan=increasing_bumps,
        numbers=stripe_set,
        draw=draw_stripe_set,
        diagnosed=False,
        first_seed="images",
    ),
    Panel(
        name="15",
        title="Tuning of sample units, stripes alone and with bumps",
        see="Two units per layer, from the stripe-like and from the bump-like half of those at the middle of the map; "
        "their mean activation along x and along y beside the map. Compare left and right, and first and last rows.",
        plan=increasing_bumps,
        numbers=stripe_and_bump,
        table=unit_table,
        draw=draw_units,
        first_seed="units",
    ),
)
