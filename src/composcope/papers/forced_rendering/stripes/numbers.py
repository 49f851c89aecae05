"""Figures 4, 7 and 15: the cure by data, stripes that show each factor value alone, and a few bumps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.outputs import additive_cross
from composcope.experiments.spec import Spec
from composcope.factors import absent
from composcope.measures.error import shape_correlation
from composcope.paper import codes
from composcope.paper.evidence import Evidence, Plan, Rows, Run
from composcope.paper.preset import Preset
from composcope.randomness import generator
from composcope.sampling import Stripes, single_values
from composcope.tasks.base import Images


@cache
def spec(preset: Preset, seed: int, bumps: int, stripes: int | None = None) -> Spec:
    """The failing one-hot run, trained on stripes (all by default) and so many bumps instead."""
    return replace(
        codes.spec(preset, "one-hot", seed),
        sampling=Stripes(stripes=stripes, bumps=bumps),
        training=preset.stripes_training,
    )


def amounts(preset: Preset) -> Plan:
    """All stripes and ever more bumps, as "stripes + 50"; and the most bumps without stripes."""
    plan = {f"stripes + {bumps}": tuple(spec(preset, seed, bumps) for seed in preset.seeds) for bumps in preset.bumps}
    alone = tuple(spec(preset, seed, preset.bumps[-1], stripes=0) for seed in preset.seeds)
    return {**plan, unaided(preset): alone}


def ends(preset: Preset) -> Plan:
    """Stripes alone and with the most bumps."""
    return _only(preset, least(preset), most(preset))


def compared(preset: Preset) -> Plan:
    """The most bumps with stripes and without."""
    return _only(preset, most(preset), unaided(preset))


def with_least(preset: Preset) -> Plan:
    """Stripes alone."""
    return _only(preset, least(preset))


def with_few(preset: Preset) -> Plan:
    """Stripes and a few bumps."""
    return _only(preset, few(preset))


def with_most(preset: Preset) -> Plan:
    """Stripes and the most bumps."""
    return _only(preset, most(preset))


def few_compared(preset: Preset) -> Plan:
    """Stripes and a few bumps, and the most bumps without stripes."""
    return _only(preset, few(preset), unaided(preset))


def growing(preset: Preset) -> Plan:
    """All stripes and ever more bumps."""
    return {name: specs for name, specs in amounts(preset).items() if name != unaided(preset)}


def _only(preset: Preset, *names: str) -> Plan:
    plan = amounts(preset)
    return {name: plan[name] for name in names}


def least(preset: Preset) -> str:
    return f"stripes + {preset.bumps[0]}"


def few(preset: Preset) -> str:
    return f"stripes + {preset.bumps[-2]}"


def most(preset: Preset) -> str:
    return f"stripes + {preset.bumps[-1]}"


def unaided(preset: Preset) -> str:
    return f"{preset.bumps[-1]} bumps"


@dataclass(frozen=True)
class Samples:
    """Some of the images trained on, upright stripes, level stripes and bumps, and how many there are of each."""

    images: dict[str, Images]
    latents: dict[str, Float[Tensor, "n factors"]]
    counts: dict[str, int]

    def table(self) -> Rows:
        return [
            {"kind": kind, "in the training set": self.counts[kind], "x": _or_any(x), "y": _or_any(y)}
            for kind, latents in self.latents.items()
            for x, y in latents.tolist()
        ]


def _or_any(value: float) -> str:
    """A stripe has every value of the factor that is absent."""
    return f"{value:g}" if value == value else "any"


def samples(evidence: Evidence, shown: int = 4) -> Samples:
    """From the training set of the first run with the most bumps."""
    spec = evidence.first(most(evidence.preset)).spec
    drawn = spec.sampling.sample(spec.task, spec.holdout, generator(spec.seed, "sampling"))
    missing = absent(drawn)
    kinds = {
        "stripes at x": drawn[missing[:, 1]],
        "stripes at y": drawn[missing[:, 0]],
        "bumps": drawn[~missing.any(1)],
    }
    latents = {kind: rows[_spaced(len(rows), shown)] for kind, rows in kinds.items()}
    return Samples(
        images={kind: spec.task.render(rows) for kind, rows in latents.items()},
        latents=latents,
        counts={kind: len(rows) for kind, rows in kinds.items()},
    )


def _spaced(count: int, shown: int) -> list[int]:
    """Indices in the middle of so many equal parts."""
    return [int((place + 0.5) * count / shown) for place in range(min(shown, count))]


@dataclass(frozen=True)
class Drawing:
    """What one kind of run draws on held-out places; in each seed, accuracy, error and likeness to bump and cross.

    - `share`: bumps trained on, of all that could be seen.
    """

    images: Images
    share: float
    seeds: tuple[int, ...]
    accuracy: tuple[float, ...]
    mse: tuple[float, ...]
    like_bump: tuple[float, ...]
    like_cross: tuple[float, ...]


@dataclass(frozen=True)
class Outputs:
    """Held-out images of every kind of run under the truth.

    - `blank`: the MSE of an empty image; `bump_like_cross`: how alike a true bump and the cross are.
    """

    places: Float[Tensor, "n 2"]
    truth: Images
    drawings: dict[str, Drawing]
    blank: float
    bump_like_cross: float

    def table(self) -> Rows:
        return [
            {
                "trained on": name,
                "share of seen bumps": drawing.share,
                "seed": seed,
                "held-out accuracy": drawing.accuracy[n],
                "held-out MSE": drawing.mse[n],
                "blank MSE": self.blank,
                "correlation with the bump": drawing.like_bump[n],
                "correlation with the cross": drawing.like_cross[n],
            }
            for name, drawing in self.drawings.items()
            for n, seed in enumerate(drawing.seeds)
        ]


def outputs(evidence: Evidence) -> Outputs:
    """Every kind of run of the plan, on the same held-out places."""
    first = evidence.first(next(iter(evidence)))
    rows = codes.spread_rows(first.parts.latents, first.parts.mask)[::2]
    truth = first.spec.task.foreground(first.truth)
    return Outputs(
        places=first.parts.latents[rows],
        truth=first.truth[rows],
        drawings={name: _drawing(runs, rows) for name, runs in evidence.items()},
        blank=first.error["blank_mse"],
        bump_like_cross=shape_correlation(truth, cross(first))[first.parts.mask].mean().item(),
    )


def _drawing(runs: Sequence[Run], rows: list[int]) -> Drawing:
    sampling = runs[0].spec.sampling
    assert isinstance(sampling, Stripes)
    likeness = [(like_bump(run), like_cross(run)) for run in runs]
    return Drawing(
        images=runs[0].images[rows],
        share=(sampling.bumps or 0) / len(runs[0].parts.seen),
        seeds=tuple(run.spec.seed for run in runs),
        accuracy=tuple(run.error["accuracy"] for run in runs),
        mse=tuple(run.error["heldout_mse"] for run in runs),
        like_bump=tuple(bump for bump, _ in likeness),
        like_cross=tuple(both for _, both in likeness),
    )


def cross(run: Run) -> Images:
    """The sum of the stripes at x and at y, over the grid."""
    found = additive_cross(run.spec.task, run.parts.latents)
    assert found is not None  # bumps can be drawn as stripes
    return found


def like_bump(run: Run) -> float:
    """Correlation over pixels of held-out images with the true bump, mean over images."""
    return _likeness(run, run.spec.task.foreground(run.truth))


def like_cross(run: Run) -> float:
    """The same with the additive cross of two stripes."""
    return _likeness(run, cross(run))


def _likeness(run: Run, targets: Images) -> float:
    heldout = run.parts.mask
    drawn = run.spec.task.foreground(run.images)
    return shape_correlation(drawn[heldout], targets[heldout]).mean().item()


@dataclass(frozen=True)
class StripeSet:
    """Every stripe, and what is drawn as more bumps join them."""

    stripes: Images
    outputs: Outputs

    def table(self) -> Rows:
        return self.outputs.table()


def stripe_set(evidence: Evidence) -> StripeSet:
    task = evidence.first(least(evidence.preset)).spec.task
    return StripeSet(task.render(single_values(task)), outputs(evidence))
