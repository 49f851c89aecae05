"""Which runs: CNNs and MLPs of several depths with two codes, a transformer and a pixel-wise network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from composcope.decoders.base import Decoder
from composcope.decoders.mlp import MLP
from composcope.decoders.tokens import Pixelwise, Transformer
from composcope.papers.forced_rendering import base
from composcope.papers.forced_rendering.base import base_spec
from composcope.papers.forced_rendering.presets import PAPER_SEEDS, QUICK_SEEDS
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.training import Training

PAIR = ("bump", "rate")
Kind = Literal["CNN", "MLP"]
KINDS: tuple[Kind, ...] = ("CNN", "MLP")


@dataclass(frozen=True)
class Sizes:
    """What this experiment is run at, beyond the base run.

    - `depths`: of CNNs. `compared`: the two depths of rate codes that claim 5 compares. `several`: the depths that have
      all seeds for both codes; the others illustrate.
    - `mlp_depths`, `mlp_widths` by code, `mlp_training`: of MLPs; `long_mlp_training`: until they have learned what
      they saw, which the authors' have not.
    - `mlp_seeds`: of MLPs that are compared with CNNs; `mlp_few`: of the others.
    - `transformer`, `pixelwise`: decoders on which no claim rests, trained for less than the authors did. The quick
      preset has no time for a transformer that learns what it sees.
    """

    depths: tuple[int, ...]
    compared: tuple[int, int]
    several: tuple[int, ...]
    mlp_depths: tuple[int, ...]
    mlp_widths: Mapping[str, int]
    mlp_training: Training
    long_mlp_training: Training
    mlp_seeds: tuple[int, ...]
    mlp_few: tuple[int, ...]
    pixelwise: Pixelwise
    pixelwise_training: Training
    transformer: tuple[Transformer, Training] | None = None


SIZES = {
    "quick": Sizes(
        depths=(2, 3, 4),
        compared=(2, 4),
        several=(3,),
        mlp_depths=(3, 4, 5),
        mlp_widths={"bump": 256, "rate": 128},
        mlp_training=Training(steps=1260),
        long_mlp_training=Training(steps=5000),
        mlp_seeds=QUICK_SEEDS,
        mlp_few=QUICK_SEEDS[:1],
        pixelwise=Pixelwise(depth=2, width=64),
        pixelwise_training=Training(steps=3000, batch=16, weight_decay=1e-4),
    ),
    "paper": Sizes(
        depths=(2, 3, 4, 5, 6, 7, 8, 9, 10),
        compared=(2, 6),
        several=(2, 3, 4, 5, 6),
        mlp_depths=(3, 4, 5, 6, 7),
        mlp_widths={"bump": 256, "rate": 128},
        mlp_training=Training(epochs=20),
        # Seed 0, after 400 epochs: 0.06 of a blank image's error left with the bump code, 0.19 with the rate code.
        long_mlp_training=Training(epochs=800),
        mlp_seeds=PAPER_SEEDS,
        mlp_few=PAPER_SEEDS,
        transformer=(Transformer(depth=2, width=128), Training(epochs=5)),
        pixelwise=Pixelwise(depth=2, width=256),
        pixelwise_training=Training(steps=2000, weight_decay=1e-4),
    ),
    "tiny": Sizes(
        depths=(1, 2),
        compared=(1, 2),
        several=(2,),
        mlp_depths=(2, 3),
        mlp_widths={"bump": 8, "rate": 8},
        mlp_training=Training(steps=5, batch=8),
        long_mlp_training=Training(steps=8, batch=8),
        mlp_seeds=(0, 1),
        mlp_few=(0,),
        transformer=(Transformer(depth=1, width=4), Training(steps=2, batch=4)),
        pixelwise=Pixelwise(depth=1, width=4),
        pixelwise_training=Training(steps=3, batch=4),
    ),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset, with the preset's seeds if it brings its own."""
    sizes = SIZES[preset.name]
    return replace(sizes, mlp_seeds=preset.seeds_or(sizes.mlp_seeds), mlp_few=preset.seeds_or(sizes.mlp_few))


@dataclass(frozen=True)
class DecoderKey:
    """A kind of decoder with a code and a depth. In figures it belongs to its code's group.

    >>> DecoderKey("CNN", "bump", 3).label
    'bump, depth 3'
    """

    kind: Kind
    code: str
    depth: int
    longer: bool = False

    @property
    def group(self) -> str:
        return self.code

    @property
    def label_in_group(self) -> str:
        return f"depth {self.depth}{', trained longer' if self.longer else ''}"

    @property
    def label(self) -> str:
        return f"{self.group}, {self.label_in_group}"


def cnns(preset: Preset) -> Plan:
    """CNNs by code and depth."""
    shared, sizes = base.sizes_of(preset), sizes_of(preset)
    return {
        DecoderKey("CNN", code, depth): tuple(
            base_spec(preset, code, seed, decoder=base.cnn(depth, shared.width))
            for seed in (shared.seeds if _has_all_seeds(sizes, code, depth) else shared.few)
        )
        for code in PAIR
        for depth in sizes.depths
    }


def _has_all_seeds(sizes: Sizes, code: str, depth: int) -> bool:
    return depth in sizes.several or (code == "rate" and depth in sizes.compared)


def mlps(preset: Preset) -> Plan:
    """MLPs by code and depth; those of the depth that claims are about also until they have learned what they saw."""
    sizes, judged = sizes_of(preset), mlp_depth(preset)
    trainings = {DecoderKey("MLP", code, depth): sizes.mlp_training for code in PAIR for depth in sizes.mlp_depths}
    trainings |= {DecoderKey("MLP", code, judged, longer=True): sizes.long_mlp_training for code in PAIR}
    return {
        key: tuple(
            replace(
                base_spec(preset, key.code, seed, decoder=MLP(depth=key.depth, width=sizes.mlp_widths[key.code])),
                training=training,
            )
            for seed in (sizes.mlp_seeds if key.depth == judged else sizes.mlp_few)
        )
        for key, training in trainings.items()
    }


def long_mlps(preset: Preset) -> Plan:
    """MLPs with as many hidden layers as the base CNN, at the authors' length and until they have learned."""
    plan = mlps(preset)
    return {key(preset): plan[key(preset)] for code in PAIR for key in (judged("MLP", code), long_mlp(code))}


def mlp_depth(preset: Preset) -> int:
    """The depth of an MLP with as many hidden layers as the base CNN, whose first map is one more than its depth."""
    return base.sizes_of(preset).depth + 1


def others(preset: Preset) -> Plan:
    """Decoders that know where each pixel is: a transformer with the bump code, a pixel-wise network with one-hot."""
    sizes, (seed, *_) = sizes_of(preset), base.sizes_of(preset).few
    chosen: dict[str, tuple[str, Decoder, Training]] = {}
    if sizes.transformer is not None:
        chosen["transformer"] = ("bump", *sizes.transformer)
    chosen["pixel-wise"] = ("one-hot", sizes.pixelwise, sizes.pixelwise_training)
    return {
        name: (replace(base_spec(preset, code, seed, decoder=decoder), training=training),)
        for name, (code, decoder, training) in chosen.items()
    }


def cnns_and_others(preset: Preset) -> Plan:
    """CNNs of all depths, the transformer and the pixel-wise network."""
    return {**cnns(preset), **others(preset)}


def bump_cnns(preset: Preset) -> Plan:
    """CNNs of all depths, bump code."""
    return _of_code(cnns(preset), "bump")


def rate_cnns(preset: Preset) -> Plan:
    """CNNs of all depths, rate code."""
    return _of_code(cnns(preset), "rate")


def bump_cnn(preset: Preset) -> Plan:
    """The CNN of the depth that other figures use, bump code."""
    return _of_depth(bump_cnns(preset), base.sizes_of(preset).depth)


def rate_cnn(preset: Preset) -> Plan:
    """The CNN of the depth that other figures use, rate code."""
    return _of_depth(rate_cnns(preset), base.sizes_of(preset).depth)


def shallow(preset: Preset) -> DecoderKey:
    """The shallower of the rate code's CNNs that are compared."""
    return DecoderKey("CNN", "rate", sizes_of(preset).compared[0])


def deep(preset: Preset) -> DecoderKey:
    """The deeper of the rate code's CNNs that are compared."""
    return DecoderKey("CNN", "rate", sizes_of(preset).compared[1])


def shallow_and_deep(preset: Preset) -> Plan:
    """The rate code's CNNs of the two depths that are compared."""
    plan = rate_cnns(preset)
    return {key: plan[key] for key in (shallow(preset), deep(preset))}


def judged(kind: Kind, code: str) -> Callable[[Preset], DecoderKey]:
    """The CNN of the base depth, or the MLP with as many hidden layers."""

    def key(preset: Preset) -> DecoderKey:
        return DecoderKey(kind, code, base.sizes_of(preset).depth if kind == "CNN" else mlp_depth(preset))

    return key


def long_mlp(code: str) -> Callable[[Preset], DecoderKey]:
    """The MLP that is trained until it has learned what it saw."""
    return lambda preset: DecoderKey("MLP", code, mlp_depth(preset), longer=True)


def cnn_and_mlp(preset: Preset) -> Plan:
    """A CNN and an MLP with as many hidden layers, both codes."""
    plan = {**cnns(preset), **mlps(preset)}
    keys = [judged(kind, code)(preset) for kind in KINDS for code in PAIR]
    return {key: plan[key] for key in keys}


def _of_code(plan: Plan, code: str) -> Plan:
    return {key: specs for key, specs in plan.items() if isinstance(key, DecoderKey) and key.code == code}


def _of_depth(plan: Plan, depth: int) -> Plan:
    return {key: specs for key, specs in plan.items() if isinstance(key, DecoderKey) and key.depth == depth}
