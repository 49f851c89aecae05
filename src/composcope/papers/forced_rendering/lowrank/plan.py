"""Which low-rank decoders are trained: no penalty, each penalty alone, both."""

from dataclasses import dataclass, replace
from functools import cache

from composcope.decoders.lowrank import LowRank
from composcope.encodings import OneHot
from composcope.holdouts import Corner
from composcope.papers.forced_rendering.presets import QUICK_SEEDS
from composcope.penalties import Entropy, Penalty, Variance
from composcope.runs.spec import Spec
from composcope.sampling import Everything
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.tasks.bump import BumpTask
from composcope.training import Training

ABLATION: dict[str, tuple[Penalty, ...]] = {
    "none": (),
    "entropy": (Entropy(0.1),),
    "variance": (Variance(0.01),),
    "both": (Entropy(0.1), Variance(0.01)),
}


@dataclass(frozen=True)
class Sizes:
    """What the low-rank decoders are trained at; the corner is held out."""

    size: int
    corner: Corner
    training: Training
    seeds: tuple[int, ...]


# The authors' network, loss and length. Their code runs no penalty and both; the paper's ablation has all four.
SIZES = {
    "quick": Sizes(16, Corner(6), Training(epochs=600, weight_decay=1e-4), seeds=QUICK_SEEDS),
    "paper": Sizes(32, Corner(12), Training(epochs=1000, weight_decay=1e-4), seeds=tuple(range(20, 35))),
    "tiny": Sizes(8, Corner(3), Training(steps=5), seeds=(0, 1)),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset, with the preset's seeds if it brings its own."""
    sizes = SIZES[preset.name]
    return replace(sizes, seeds=preset.seeds_or(sizes.seeds))


@cache
def lowrank_spec(preset: Preset, penalties: str, seed: int) -> Spec:
    """A bright, wider bump, a corner held out, one-hot codes."""
    sizes = sizes_of(preset)
    return Spec(
        task=BumpTask(sizes.size, sigma=1.5, polarity="bright"),
        holdout=sizes.corner,
        encoding=OneHot(),
        decoder=LowRank(init="authors", activate_embedding=True),
        sampling=Everything(),
        training=sizes.training,
        penalties=ABLATION[penalties],
        seed=seed,
    )


def ablation(preset: Preset) -> Plan:
    """No penalty, each alone, both."""
    seeds = sizes_of(preset).seeds
    return {name: tuple(lowrank_spec(preset, name, seed) for seed in seeds) for name in ABLATION}


def none_and_both(preset: Preset) -> Plan:
    """Without penalties and with both."""
    return {name: specs for name, specs in ablation(preset).items() if name in ("none", "both")}


def both(preset: Preset) -> Plan:
    """Both penalties."""
    return {"both": ablation(preset)["both"]}
