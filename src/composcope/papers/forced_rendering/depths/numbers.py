"""The numbers behind figure 10, images by depth; those of figures 2 and 11 to 14 are in layers.py and volumes.py."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.papers.forced_rendering.layers import group_and_label, join_networks
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.joining import pick_by_seed
from composcope.study.panel import Rows
from composcope.study.plan import Key
from composcope.tasks.base import Images

SHOWN = ((5 / 16, 8 / 16), (6 / 16, 12 / 16), (11 / 16, 6 / 16), (11 / 16, 11 / 16))
"""The held-out points whose images are shown, as shares of the hole's sides; at 28 x 28 those that the authors show."""


@dataclass(frozen=True)
class NetworkImages:
    """Images of one kind of network at some held-out points (smallest seed), and how good all its images are.

    - `group`: "bump", "rate" or "other decoders"; `label`: the network's name there.
    - `accuracy`, `heldout_mse`, `seen_mse`: one value per seed. `place`: the network's position in the plan.
    """

    group: str
    label: str
    images: Images
    accuracy: tuple[float, ...]
    heldout_mse: tuple[float, ...]
    seen_mse: tuple[float, ...]
    seeds: tuple[int, ...] = ()
    place: int = 0

    def joined(self, other: "NetworkImages") -> "NetworkImages":
        """The values of the seeds of both, and the images of the smallest seed."""
        rows, both = pick_by_seed(self.seeds, other.seeds), (self, other)
        return replace(
            both[rows[0][0]],
            accuracy=tuple(both[of].accuracy[row] for of, row in rows),
            heldout_mse=tuple(both[of].heldout_mse[row] for of, row in rows),
            seen_mse=tuple(both[of].seen_mse[row] for of, row in rows),
            seeds=tuple(both[of].seeds[row] for of, row in rows),
        )


@dataclass(frozen=True)
class Gallery:
    """Held-out images of networks of every depth and kind, below the truth."""

    latents: Float[Tensor, "shown factors"]
    truth: Images
    blank_mse: float
    networks: tuple[NetworkImages, ...]

    def joined(self, other: "Gallery") -> "Gallery":
        return replace(self, networks=join_networks(self.networks, other.networks))

    def seed_counts(self) -> list[int]:
        return [len(network.seeds) for network in self.networks]

    def table(self) -> Rows:
        """One row per network, means over seeds."""
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
    first = evidence.any_run
    rows = shown_points(first.split.latents, first.split.mask)
    return Gallery(
        first.split.latents[rows],
        first.truth[rows],
        first.error["blank_mse"],
        tuple(_network_images(key, runs, rows, place) for place, (key, runs) in enumerate(evidence.items()) if runs),
    )


def shown_points(latents: Float[Tensor, "n 2"], heldout: Bool[Tensor, "n"]) -> Int[Tensor, "shown"]:
    """Indices of the held-out points nearest to those of `SHOWN`."""
    inside = latents[heldout]
    low, high = inside.min(0).values, inside.max(0).values
    wanted = low + torch.tensor(SHOWN) * (high - low)
    return heldout.nonzero()[:, 0][torch.cdist(wanted, inside.float()).argmin(1)]


def _network_images(key: Key, runs: Sequence[Run], rows: Tensor, place: int) -> NetworkImages:
    accuracy, heldout_mse, seen_mse = (
        tuple(run.error[name] for run in runs) for name in ("accuracy", "heldout_mse", "seen_mse")
    )
    images, seeds = runs[0].draw()[rows], tuple(run.spec.seed for run in runs)
    return NetworkImages(*group_and_label(key, runs[0]), images, accuracy, heldout_mse, seen_mse, seeds, place)
