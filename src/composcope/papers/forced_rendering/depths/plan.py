"""Which runs: CNNs and MLPs of several depths with two codes, a transformer and a pixel-wise network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from composcope.decoders.base import Decoder
from composcope.decoders.cnn import CNN
from composcope.decoders.mlp import MLP
from composcope.decoders.pixelwise import Pixelwise
from composcope.decoders.transformer import Transformer
from composcope.experiments.spec import Spec
from composcope.papers.forced_rendering import base
from composcope.papers.forced_rendering.base import base_spec
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.training import Training

PAIR = ("bump", "rate")


@dataclass(frozen=True)
class Sizes:
    """What this experiment is run at, beyond the base run.

    - `depths`: of CNNs and MLPs. `mlp_width`: units per layer.
    """

    depths: tuple[int, ...]
    mlp_width: int
    transformer: Transformer
    transformer_training: Training
    pixelwise: Pixelwise
    pixelwise_training: Training


SIZES = {
    "quick": Sizes(
        depths=(2, 3, 5),
        mlp_width=256,
        transformer=Transformer(depth=2, width=32),
        transformer_training=Training(steps=500, batch=8, lr=2e-3),
        pixelwise=Pixelwise(depth=2, width=64),
        pixelwise_training=Training(steps=3000, batch=16, weight_decay=1e-4),
    ),
    "paper": Sizes(
        depths=(2, 3, 4, 5, 6, 7, 8, 9, 10),
        mlp_width=256,
        transformer=Transformer(depth=3, width=128),
        transformer_training=Training(epochs=50),
        pixelwise=Pixelwise(depth=3, width=256),
        pixelwise_training=Training(epochs=2000, weight_decay=1e-4),
    ),
    "tiny": Sizes(
        depths=(1, 2),
        mlp_width=8,
        transformer=Transformer(depth=1, width=4),
        transformer_training=Training(steps=2, batch=4),
        pixelwise=Pixelwise(depth=1, width=4),
        pixelwise_training=Training(steps=3, batch=4),
    ),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset."""
    return SIZES[preset.name]


@dataclass(frozen=True)
class DecoderKey:
    """A kind of decoder with a code and a depth. In figures it belongs to its code's group.

    >>> DecoderKey("CNN", "bump", 3).label
    'bump, depth 3'
    """

    kind: Literal["CNN", "MLP"]
    code: str
    depth: int

    @property
    def group(self) -> str:
        return self.code

    @property
    def label_in_group(self) -> str:
        return f"depth {self.depth}"

    @property
    def label(self) -> str:
        return f"{self.group}, {self.label_in_group}"


def cnns(preset: Preset) -> Plan:
    """CNNs by code and depth."""
    sizes = base.sizes_of(preset)
    return {
        # Claim 5 compares depths of the rate code; otherwise claims rest on the base depth alone.
        DecoderKey("CNN", code, depth): _specs(
            preset,
            code,
            CNN(depth=depth, width=sizes.width),
            sizes.seeds if code == "rate" or depth == sizes.depth else sizes.few,
        )
        for code in PAIR
        for depth in sizes_of(preset).depths
    }


def mlps(preset: Preset) -> Plan:
    """MLPs by code and depth."""
    sizes, width = base.sizes_of(preset), sizes_of(preset).mlp_width
    return {
        DecoderKey("MLP", code, depth): _specs(
            preset, code, MLP(depth=depth, width=width), sizes.seeds if depth == sizes.depth else sizes.few
        )
        for code in PAIR
        for depth in sizes_of(preset).depths
    }


def _specs(preset: Preset, code: str, decoder: Decoder, seeds: Sequence[int]) -> tuple[Spec, ...]:
    return tuple(base_spec(preset, code, seed, decoder=decoder) for seed in seeds)


def others(preset: Preset) -> Plan:
    """Decoders that know where each pixel is: a transformer with the bump code, a pixel-wise network with one-hot."""
    sizes = sizes_of(preset)
    transformer = base_spec(preset, "bump", 0, decoder=sizes.transformer)
    pixelwise = base_spec(preset, "one-hot", 0, decoder=sizes.pixelwise)
    return {
        "transformer": (replace(transformer, training=sizes.transformer_training),),
        "pixel-wise": (replace(pixelwise, training=sizes.pixelwise_training),),
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
    """The rate code's shallowest CNN."""
    return DecoderKey("CNN", "rate", sizes_of(preset).depths[0])


def deep(preset: Preset) -> DecoderKey:
    """The rate code's deepest CNN."""
    return DecoderKey("CNN", "rate", sizes_of(preset).depths[-1])


def shallow_and_deep(preset: Preset) -> Plan:
    """The rate code's shallowest and deepest CNNs."""
    plan = rate_cnns(preset)
    return {key: plan[key] for key in (shallow(preset), deep(preset))}


def cnn_and_mlp(preset: Preset) -> Plan:
    """A CNN and an MLP of the same depth, both codes."""
    return _of_depth({**cnns(preset), **mlps(preset)}, base.sizes_of(preset).depth)


def _of_code(plan: Plan, code: str) -> Plan:
    return {key: specs for key, specs in plan.items() if isinstance(key, DecoderKey) and key.code == code}


def _of_depth(plan: Plan, depth: int) -> Plan:
    return {key: specs for key, specs in plan.items() if isinstance(key, DecoderKey) and key.depth == depth}
