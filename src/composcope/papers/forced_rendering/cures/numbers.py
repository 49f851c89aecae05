"""The overview: what composes where bumps alone do not. Stripes in the data, or factors rendered in pixel space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from composcope.factors import Latents
from composcope.paper import depths, lowrank, stripes
from composcope.paper.evidence import Evidence, Plan, Rows, Run
from composcope.paper.preset import Preset
from composcope.tasks.base import Images

SHOWN = 6  # held-out combinations of each block


def groups(preset: Preset) -> dict[str, Plan]:
    """The runs by block and name; a block shares its task and holdout, and its first run is the one that fails."""
    amounts, none, most = stripes.amounts(preset), preset.bumps[0], preset.bumps[-1]
    ends = lowrank.ends(preset)
    return {
        "stripes": {
            f"{most} bumps alone": amounts[f"{most} bumps"],
            "stripes alone" if none == 0 else f"stripes + {none} bumps": amounts[f"stripes + {none}"],
            f"stripes + {most} bumps": amounts[f"stripes + {most}"],
            "pixel by pixel": depths.others(preset)["pixel-wise"],
        },
        "low rank": {"low rank, no penalty": ends["none"], "low rank, both penalties": ends["both"]},
    }


def plan(preset: Preset) -> Plan:
    """All of them."""
    return {name: specs for group in groups(preset).values() for name, specs in group.items()}


@dataclass(frozen=True)
class Block:
    """Runs that share task and holdout: some held-out combinations, the truth, and each run's images of the first seed.

    - `accuracies`: share of all held-out images drawn in place, by run and seed.
    """

    latents: Latents
    truth: Images
    images: Mapping[str, Images]
    accuracies: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Cures:
    """The blocks, and a row of numbers a run."""

    blocks: tuple[Block, ...]
    rows: Rows

    def table(self) -> Rows:
        return self.rows


def cures(evidence: Evidence) -> Cures:
    """Held-out images of every run, under the truth."""
    blocks = []
    for group in groups(evidence.preset).values():
        firsts = {name: evidence.first(name) for name in group}
        first = next(iter(firsts.values()))
        held = first.parts.mask.nonzero()[:, 0]
        order = torch.randperm(len(held), generator=torch.Generator().manual_seed(1))[:SHOWN]
        places = held[order.sort().values]
        blocks.append(
            Block(
                first.parts.latents[places],
                first.truth[places],
                {name: run.images[places] for name, run in firsts.items()},
                {name: tuple(run.error["accuracy"] for run in evidence[name]) for name in group},
            )
        )
    return Cures(tuple(blocks), [_row(name, runs) for name, runs in evidence.items()])


def _row(name: str, runs: Sequence[Run]) -> dict[str, object]:
    """Means over seeds of the errors, and the range of the accuracy."""
    errors = [run.error for run in runs]
    mean = {key: sum(error[key] for error in errors) / len(errors) for key in errors[0]}
    placed = [error["accuracy"] for error in errors]
    return {
        "run": name,
        "seeds": len(runs),
        "seen MSE": mean["seen_mse"],
        "held-out MSE": mean["heldout_mse"],
        "blank MSE": mean["blank_mse"],
        "in place": mean["accuracy"],
        "worst seed": min(placed),
        "best seed": max(placed),
    }
