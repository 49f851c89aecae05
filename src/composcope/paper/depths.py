"""Figures 2 and 10 to 14: what happens from layer to layer, for networks of several depths and kinds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.decoders.cnn import CNN
from composcope.decoders.mlp import MLP
from composcope.decoders.pixelwise import Pixelwise
from composcope.decoders.transformer import Transformer
from composcope.paper import codes
from composcope.paper.evidence import Evidence, Plan, Rows, Run
from composcope.paper.layers import group_and_label
from composcope.paper.preset import Preset
from composcope.tasks.base import Images

PAIR = ("bump", "rate")
SHOWN = ((0.0, 0.5), (0.25, 0.75), (0.5, 0.5), (0.75, 0.25))
"""The held-out points whose images are shown, as shares of the hole's sides; the third is its middle."""


def cnns(preset: Preset) -> Plan:
    """CNNs by code and depth, as "bump, depth 3"."""
    return {
        f"{code}, depth {depth}": tuple(
            codes.spec(preset, code, seed, decoder=CNN(depth=depth, width=preset.width))
            for seed in (preset.seeds if code == "rate" or depth == preset.depth else preset.few)
        )
        for code in PAIR
        for depth in preset.depths
    }


def mlps(preset: Preset) -> Plan:
    """MLPs by code and depth, as "bump, depth 3"."""
    return {
        f"{code}, depth {depth}": tuple(
            codes.spec(preset, code, seed, decoder=MLP(depth=depth, width=preset.mlp_width))
            for seed in (preset.seeds if depth == preset.depth else preset.few)
        )
        for code in PAIR
        for depth in preset.depths
    }


def others(preset: Preset) -> Plan:
    """Decoders that know where each pixel is: a transformer and a pixel-wise network, bump code and one-hot."""
    depth, width = preset.transformer
    transformer = replace(
        codes.spec(preset, "bump", 0, decoder=Transformer(depth=depth, width=width)),
        training=preset.transformer_training,
    )
    depth, width = preset.pixelwise
    pixelwise = replace(
        codes.spec(preset, "one-hot", 0, decoder=Pixelwise(depth=depth, width=width)),
        training=preset.pixelwise_training,
    )
    return {"transformer": (transformer,), "pixel-wise": (pixelwise,)}


def with_others(preset: Preset) -> Plan:
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
    return _of_depth(bump_cnns(preset), preset.depth)


def rate_cnn(preset: Preset) -> Plan:
    """The CNN of the depth that other figures use, rate code."""
    return _of_depth(rate_cnns(preset), preset.depth)


def shallow_and_deep(preset: Preset) -> Plan:
    """The rate code's CNNs of the least and of the largest depth."""
    plan = rate_cnns(preset)
    return {
        "shallow": plan[f"rate, depth {preset.depths[0]}"],
        "deep": plan[f"rate, depth {preset.depths[-1]}"],
    }


def cnn_and_mlp(preset: Preset) -> Plan:
    """A CNN and an MLP of the same depth, both codes, as "CNN, bump"."""
    both = {"CNN": _of_depth(cnns(preset), preset.depth), "MLP": _of_depth(mlps(preset), preset.depth)}
    return {
        f"{kind}, {code}": specs for kind, plan in both.items() for code, specs in zip(PAIR, plan.values(), strict=True)
    }


def _of_code(plan: Plan, code: str) -> Plan:
    return {name: specs for name, specs in plan.items() if name.startswith(f"{code}, ")}


def _of_depth(plan: Plan, depth: int) -> Plan:
    return {name: specs for name, specs in plan.items() if name.endswith(f", depth {depth}")}


@dataclass(frozen=True)
class Drawn:
    """What networks of one name draw at some held-out points (the least seed), and how good their images are.

    - `group`: "bump", "rate" or "other decoders"; `label`: the network's name there.
    - `accuracy`, `heldout_mse`, `seen_mse`: one value a seed.
    """

    group: str
    label: str
    images: Images
    accuracy: tuple[float, ...]
    heldout_mse: tuple[float, ...]
    seen_mse: tuple[float, ...]


@dataclass(frozen=True)
class Gallery:
    """Held-out images of networks of every depth and kind, below the truth."""

    latents: Float[Tensor, "shown factors"]
    truth: Images
    blank_mse: float
    networks: tuple[Drawn, ...]

    def table(self) -> Rows:
        """One row a network, means over seeds."""
        return [
            {
                "network": f"{network.group}, {network.label}",
                "seeds": len(network.accuracy),
                "held-out within 1 pixel": fmean(network.accuracy),
                "held-out MSE": fmean(network.heldout_mse),
                "blank MSE": self.blank_mse,
                "seen MSE": fmean(network.seen_mse),
            }
            for network in self.networks
        ]


def gallery(evidence: Evidence) -> Gallery:
    """Images at the same held-out points by every network."""
    first = evidence.first(next(iter(evidence)))
    rows = shown_points(first.parts.latents, first.parts.mask)
    return Gallery(
        first.parts.latents[rows],
        first.truth[rows],
        first.error["blank_mse"],
        tuple(_drawn(name, runs, rows) for name, runs in evidence.items()),
    )


def shown_points(latents: Float[Tensor, "n 2"], heldout: Bool[Tensor, "n"]) -> Int[Tensor, "shown"]:
    """Rows of the held-out points nearest to the places `SHOWN`."""
    inside = latents[heldout]
    low, high = inside.min(0).values, inside.max(0).values
    wanted = low + torch.tensor(SHOWN) * (high - low)
    return heldout.nonzero()[:, 0][torch.cdist(wanted, inside.float()).argmin(1)]


def _drawn(name: str, runs: Sequence[Run], rows: Tensor) -> Drawn:
    accuracy, heldout_mse, seen_mse = (
        tuple(run.error[key] for run in runs) for key in ("accuracy", "heldout_mse", "seen_mse")
    )
    return Drawn(*group_and_label(name, runs[0]), runs[0].images[rows], accuracy, heldout_mse, seen_mse)
