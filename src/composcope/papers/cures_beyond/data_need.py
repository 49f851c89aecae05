"""How many combinations must be shown, with two, three and four factors, alone or with single-factor data.

Worlds differ by one factor, each with training sets of more and more combinations.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from composcope.decoders.cnn import CNN
from composcope.encodings import OneHot
from composcope.factors import combination_numbers
from composcope.holdouts.cells import Cells
from composcope.measures.error import has_learned
from composcope.measures.grid import grid_index, grid_sizes
from composcope.papers.cures_beyond.drawing import ENOUGH, curve, draw_data_need, needed
from composcope.papers.cures_beyond.figures import fully_right, per_factor, seen_right
from composcope.papers.cures_beyond.treatments import World
from composcope.runs.run import Run
from composcope.runs.spec import Spec, training_latents
from composcope.sampling import Stripes
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, of_preset
from composcope.study.statistics import interval
from composcope.tasks.sprites import SpriteTask
from composcope.training import Training

SCALES, COLOURS = (1.5, 2.0, 2.5), ("red", "green", "blue")
# A quarter of all combinations, at random: unlike a hole in the plane it is the same test for any number of factors.
HELDOUT = Cells(share=0.25)


def world(factors: int, side: int, positions: range) -> World:
    """Discs at some positions; with a third factor in three sizes, with a fourth in three colours as well."""
    task = SpriteTask(
        side,
        x=tuple(positions),
        y=tuple(positions),
        scales=SCALES if factors > 2 else SCALES[1:2],
        colours=COLOURS if factors > 3 else COLOURS[:1],
        # Dark coloured sprites were not learned in as many steps.
        polarity="bright",
    )
    return World(f"sprites: {', '.join(factor.name for factor in task.factors)}", task, HELDOUT)


@dataclass(frozen=True)
class Sizes:
    """What a preset runs: its worlds, and for each the numbers of combinations shown; steps and seeds of every run."""

    worlds: Mapping[World, tuple[int, ...]]
    steps: int
    seeds: tuple[int, ...]


SIZES = {
    "quick": Sizes(
        {
            world(2, 12, range(2, 10)): (12, 24, 36, 48),
            world(3, 12, range(2, 10)): (24, 48, 72, 96, 144),
            world(4, 12, range(2, 10)): (48, 96, 144, 192, 432),
        },
        steps=1000,
        seeds=(10, 11, 12),
    ),
    "tiny": Sizes({world(2, 9, range(3, 6)): (4, 6), world(3, 9, range(3, 6)): (8,)}, steps=3, seeds=(0, 1)),
}


@dataclass(frozen=True)
class Amount:
    """A training set: so many combinations of so many factors, with single-factor images or without."""

    factors: int
    combinations: int
    single: bool

    @property
    def label(self) -> str:
        return f"{self.factors} factors; {self.combinations} combinations{' and single factors' if self.single else ''}"


def every_amount(preset: Preset) -> Plan:
    """Every training set, with the same number of steps of as many images."""
    sizes = of_preset(SIZES, preset)
    return {
        Amount(len(world.task.factors), count, single): tuple(
            _spec(world, count, single, sizes.steps, seed) for seed in sizes.seeds
        )
        for world, counts in sizes.worlds.items()
        for single in (False, True)
        for count in counts
    }


def _spec(world: World, combinations: int, single: bool, steps: int, seed: int) -> Spec:
    return Spec(
        task=world.task,
        holdout=world.holdout,
        encoding=OneHot(),
        decoder=CNN(depth=3, width=24),
        sampling=Stripes(stripes=None if single else 0, bumps=combinations),
        training=Training(steps=steps, batch=32, lr=2e-3, schedule="cosine"),
        seed=seed,
    )


def data_need(evidence: Evidence) -> Numbers:
    """The outcome of every training set."""
    rows: Rows = []
    for amount, runs in evidence.items():
        assert isinstance(amount, Amount)
        rows += [_point(amount, run) for run in runs]
    return Numbers(rows)


def _point(amount: Amount, run: Run) -> Row:
    """What a run gets right.

    - `single`: whether single-factor images are shown too. `combinations`: how many are shown, `of` those not held out.
    - `seen right`: of all combinations that are not held out, shown or not. `learned`: whether those shown are drawn.
    - `unshown`: how many of the factors' values occur in no combination that is shown.
    """
    names = [factor.name for factor in run.spec.task.factors]
    return {
        "run": amount.label,
        "seed": run.spec.seed,
        "world": ", ".join(names),
        "number of factors": amount.factors,
        "single": amount.single,
        "combinations": amount.combinations,
        "of": int((~run.split.mask).sum()),
        "fully right": fully_right(run),
        "factors": {name: float(run.verdict["factors"][name]) for name in names},
        "seen right": seen_right(run),
        "learned": learned_what_was_shown(run),
        "unshown": unshown_values(run),
        "CPU seconds": math.nan if run.cpu_seconds is None else run.cpu_seconds,
    }


def data_need_table(numbers: Numbers) -> Rows:
    """One row per training set, means over seeds, and how many combinations each seed needs."""
    return [_table_row(numbers, kind) for kind in numbers.kinds]


def _table_row(numbers: Numbers, kind: str) -> Row:
    first, *_ = runs = numbers.of(kind)
    mean, low, high = interval(numbers.column("fully right", kind))
    sets = curve(numbers, first["number of factors"], first["single"])
    highest = sets[-1][0]["combinations"]
    numbers_needed = needed(sets)

    def mean_of(name: str) -> float:
        return sum(numbers.column(name, kind)) / len(runs)

    return {
        "world": first["world"],
        "training set": "with single factors" if first["single"] else "combinations alone",
        "combinations": first["combinations"],
        "of": first["of"],
        "seeds": len(runs),
        "fully right": mean,
        "low": low,
        "high": high,
        "per factor": per_factor(runs),
        "seen right": mean_of("seen right"),
        "has learned what it was shown": sum(numbers.column("learned", kind)),
        "values never shown in a combination": mean_of("unshown"),
        f"combinations needed for {ENOUGH:g}, by seed": ", ".join(
            f">{highest}" if math.isinf(number) else f"{number:g}" for number in numbers_needed
        ),
        "CPU seconds": mean_of("CPU seconds"),
    }


def learned_what_was_shown(run: Run) -> bool:
    """Whether the error on the combinations of the training set is that of a decoder that has learned them.

    The verdict's own control is over all seen combinations, most of which a small training set does not have.
    """
    errors, rows = run.point_errors, _shown(run)
    return has_learned(errors.mse[rows].sum().item(), errors.blank_mse[rows].sum().item())


def unshown_values(run: Run) -> int:
    """How many values of all factors occur in no combination of the training set."""
    index = grid_index(run.split.latents[_shown(run)], run.spec.task.factors)
    return sum(
        factor.size - len(column.unique()) for factor, column in zip(run.spec.task.factors, index.T, strict=True)
    )


def _shown(run: Run) -> torch.Tensor:
    """The rows of the split that the training set has as whole combinations."""
    spec = run.spec
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    index = grid_index(latents[~latents.isnan().any(1)], spec.task.factors)
    return combination_numbers(index, grid_sizes(spec.task.factors))


PANEL = Panel(
    name="data",
    title="How the data need grows with the number of factors",
    see="The share of withheld images that are fully right by the number of combinations shown, for two, three and "
    "four factors: the mean and a dot per seed. Open marks: most seeds have not learned what they were shown. "
    "Last, the smallest number with nine of ten right; a triangle where not even all combinations were enough.",
    plan=every_amount,
    numbers=data_need,
    table=data_need_table,
    draw=draw_data_need,
    no_claim="it was added after the claims were registered",
    diagnosed=False,
)
