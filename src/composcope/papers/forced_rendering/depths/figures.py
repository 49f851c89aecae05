"""Figures 2 and 10 to 14: CNNs and MLPs of several depths with two codes, a transformer and a pixel-wise network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.decoders.base import Decoder
from composcope.decoders.mlp import MLP
from composcope.decoders.tokens import Pixelwise, Transformer
from composcope.papers.forced_rendering.base import PAPER_SEEDS, QUICK_SEEDS, base_spec, cnn
from composcope.papers.forced_rendering.base import SIZES as BASE
from composcope.papers.forced_rendering.depths.drawing import draw_gallery
from composcope.papers.forced_rendering.drawing import draw_one_code, draw_profiles, draw_volumes
from composcope.papers.forced_rendering.layers import (
    every_profile,
    factorizations,
    network_row,
    probes,
    profile_table,
    volume_table,
    volumes,
)
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Planner, Preset, label_of, of_preset, only, together
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
    - `mlp_seeds`: of MLPs that are compared with CNNs; `few_mlp_seeds`: of the others.
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
    few_mlp_seeds: tuple[int, ...]
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
        few_mlp_seeds=QUICK_SEEDS[:1],
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
        few_mlp_seeds=PAPER_SEEDS,
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
        few_mlp_seeds=(0,),
        transformer=(Transformer(depth=1, width=4), Training(steps=2, batch=4)),
        pixelwise=Pixelwise(depth=1, width=4),
        pixelwise_training=Training(steps=3, batch=4),
    ),
}


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
    shared, sizes = of_preset(BASE, preset), of_preset(SIZES, preset)
    return {
        DecoderKey("CNN", code, depth): tuple(
            base_spec(preset, code, seed, decoder=cnn(depth, shared.width))
            for seed in (shared.seeds if _has_all_seeds(sizes, code, depth) else shared.few_seeds)
        )
        for code in PAIR
        for depth in sizes.depths
    }


def _has_all_seeds(sizes: Sizes, code: str, depth: int) -> bool:
    return depth in sizes.several or (code == "rate" and depth in sizes.compared)


def mlps(preset: Preset) -> Plan:
    """MLPs by code and depth; those of the depth that claims are about also until they have learned what they saw."""
    sizes, depth_of_claims = of_preset(SIZES, preset), mlp_depth(preset)
    trainings = {DecoderKey("MLP", code, depth): sizes.mlp_training for code in PAIR for depth in sizes.mlp_depths}
    trainings |= {DecoderKey("MLP", code, depth_of_claims, longer=True): sizes.long_mlp_training for code in PAIR}
    return {
        key: tuple(
            replace(
                base_spec(preset, key.code, seed, decoder=MLP(depth=key.depth, width=sizes.mlp_widths[key.code])),
                training=training,
            )
            for seed in (sizes.mlp_seeds if key.depth == depth_of_claims else sizes.few_mlp_seeds)
        )
        for key, training in trainings.items()
    }


def mlp_depth(preset: Preset) -> int:
    """The depth of an MLP with as many hidden layers as the base CNN, whose first map is one more than its depth."""
    return of_preset(BASE, preset).depth + 1


def others(preset: Preset) -> Plan:
    """Decoders that know where each pixel is: a transformer with the bump code, a pixel-wise network with one-hot."""
    sizes, (seed, *_) = of_preset(SIZES, preset), of_preset(BASE, preset).few_seeds
    chosen: dict[str, tuple[str, Decoder, Training]] = {}
    if sizes.transformer is not None:
        chosen["transformer"] = ("bump", *sizes.transformer)
    chosen["pixel-wise"] = ("one-hot", sizes.pixelwise, sizes.pixelwise_training)
    return {
        name: (replace(base_spec(preset, code, seed, decoder=decoder), training=training),)
        for name, (code, decoder, training) in chosen.items()
    }


cnns_and_others = together(cnns, others)


def shallow(preset: Preset) -> DecoderKey:
    """The shallower of the rate code's CNNs that are compared."""
    return DecoderKey("CNN", "rate", of_preset(SIZES, preset).compared[0])


def deep(preset: Preset) -> DecoderKey:
    """The deeper of the rate code's CNNs that are compared."""
    return DecoderKey("CNN", "rate", of_preset(SIZES, preset).compared[1])


def compared(kind: Kind, code: str) -> Callable[[Preset], DecoderKey]:
    """The CNN of the base depth, or the MLP with as many hidden layers."""

    def key(preset: Preset) -> DecoderKey:
        return DecoderKey(kind, code, of_preset(BASE, preset).depth if kind == "CNN" else mlp_depth(preset))

    return key


def long_mlp(code: str) -> Callable[[Preset], DecoderKey]:
    """The MLP that is trained until it has learned what it saw."""
    return lambda preset: DecoderKey("MLP", code, mlp_depth(preset), longer=True)


shallow_and_deep = only(cnns, shallow, deep)
cnn_and_mlp = only(together(cnns, mlps), *(compared(kind, code) for kind in KINDS for code in PAIR))
# MLPs with as many hidden layers as the base CNN, at the authors' length and until they have learned.
long_mlps = only(mlps, *(key for code in PAIR for key in (compared("MLP", code), long_mlp(code))))


def of_code(code: str) -> Planner:
    """The CNNs of all depths with one code."""

    def plan(preset: Preset) -> Plan:
        return {key: specs for key, specs in cnns(preset).items() if isinstance(key, DecoderKey) and key.code == code}

    return plan


SHOWN = ((5 / 16, 8 / 16), (6 / 16, 12 / 16), (11 / 16, 6 / 16), (11 / 16, 11 / 16))
"""The held-out points whose images are shown, as shares of the hole's sides; at 28 x 28 those that the authors show."""


def gallery(evidence: Evidence) -> Numbers:
    """Errors of every network, and its images at the same held-out points."""
    any_run = evidence.any_run
    points = shown_points(any_run.split.latents, any_run.split.mask)
    rows = [
        {**network_row(key, run), **{name: run.error[name] for name in ("accuracy", "heldout_mse", "seen_mse")}}
        for key, runs in evidence.items()
        for run in runs
    ]
    first = {label_of(key): {"images": runs[0].draw()[points]} for key, runs in evidence.items() if runs}
    common = {
        "points": any_run.split.latents[points],
        "truth": any_run.truth[points],
        "blank MSE": any_run.error["blank_mse"],
    }
    return Numbers(rows, first, common)


def gallery_table(numbers: Numbers) -> Rows:
    """One row per network, means over seeds."""
    return [
        {
            "network": f"{numbers.of(kind)[0]['group']}, {numbers.of(kind)[0]['label']}",
            "seeds": len(numbers.of(kind)),
            "held-out within 1 pixel": fmean(numbers.column("accuracy", kind)),
            "held-out MSE": fmean(numbers.column("heldout_mse", kind)),
            "blank MSE": numbers.common["blank MSE"],
            "seen MSE": fmean(numbers.column("seen_mse", kind)),
        }
        for kind in numbers.kinds
    ]


def shown_points(latents: Float[Tensor, "n 2"], heldout: Bool[Tensor, "n"]) -> Int[Tensor, "shown"]:
    """Indices of the held-out points nearest to those of `SHOWN`."""
    inside = latents[heldout]
    low, high = inside.min(0).values, inside.max(0).values
    wanted = low + torch.tensor(SHOWN) * (high - low)
    return heldout.nonzero()[:, 0][torch.cdist(wanted, inside.float()).argmin(1)]


BY_LAYER = {"layer-scale": partial(draw_volumes, scale="layer")}

PANELS = (
    Panel(
        "2a",
        "Linear probes by layer, bump code",
        "How well a linear readout recovers x and y from each layer: scored on its own points, as in the paper (1 for "
        "any layer with more units than points), on other points, and on held-out ones.",
        of_code("bump"),
        probes,
        draw_one_code,
        profile_table,
        partial=True,
    ),
    Panel(
        "2b",
        "Linear probes by layer, rate code",
        "The same for the rate code, whose two numbers have to be expanded most.",
        of_code("rate"),
        probes,
        draw_one_code,
        profile_table,
        partial=True,
    ),
    Panel(
        "2c",
        "Factorization by layer, bump code",
        "How close to right angles x and y stay in each layer, by the authors' measure and by the paper's formula; "
        "grey lines are the same networks before training.",
        of_code("bump"),
        factorizations,
        draw_one_code,
        profile_table,
        partial=True,
    ),
    Panel(
        "2d",
        "Factorization by layer, rate code",
        "At which layers the score falls, and by how much at once, for shallow and for deep networks.",
        of_code("rate"),
        factorizations,
        draw_one_code,
        profile_table,
        partial=True,
    ),
    Panel(
        "2e",
        "Volume by layer, bump code",
        "Whether the held-out square (outlined) gets less volume (purple) or more (green) than what was seen.",
        only(cnns, compared("CNN", "bump")),
        volumes,
        draw_volumes,
        volume_table,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "2f",
        "Volume by layer, rate code",
        "The same for the rate code, whose volume is even at the input.",
        only(cnns, compared("CNN", "rate")),
        volumes,
        draw_volumes,
        volume_table,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "10",
        "Held-out images by depth",
        "Images of networks of every depth at four held-out points; rings mark the true positions.",
        cnns_and_others,
        gallery,
        draw_gallery,
        gallery_table,
        no_claim="The paper shows it as an illustration; that every code fails is claim 1.",
        partial=True,
        first_seed="images",
    ),
    Panel(
        "11",
        "Volume by layer, CNNs of all depths and other decoders",
        "In which layers the held-out square begins to differ from what was seen, and whether depth changes that.",
        cnns_and_others,
        volumes,
        draw_volumes,
        volume_table,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "12",
        "Probes and factorization, CNNs of all depths and other decoders",
        "Whether the scores fall at a fixed layer or towards the image; grey lines are the networks before training.",
        cnns_and_others,
        every_profile,
        draw_profiles,
        profile_table,
        partial=True,
    ),
    Panel(
        "13",
        "Volume by layer, MLPs of all depths",
        "Whether MLPs give the held-out square less volume or more, beside the CNNs of figure 11.",
        mlps,
        volumes,
        draw_volumes,
        volume_table,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "14",
        "Probes and factorization, MLPs of all depths",
        "How evenly and how far the scores fall, beside the CNNs of figure 12.",
        mlps,
        every_profile,
        draw_profiles,
        profile_table,
        partial=True,
    ),
)
