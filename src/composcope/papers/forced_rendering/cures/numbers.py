"""What the overview of the cures shows: held-out images of each kind of run below the truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from composcope.factors import Latents
from composcope.papers.forced_rendering.cures.plan import blocks
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of
from composcope.tasks.base import Images

SHOWN = 6  # held-out combinations of each block


@dataclass(frozen=True)
class Block:
    """Kinds of runs that share task and holdout: some held-out combinations, the truth, and the first seed's images.

    - `accuracies`: share of all held-out images within 1 pixel of the true position, by kind of run and seed.
    """

    latents: Latents
    truth: Images
    images: Mapping[Key, Images]
    accuracies: Mapping[Key, tuple[float, ...]]


@dataclass(frozen=True)
class Cures:
    """The blocks, and one row of numbers per kind of run."""

    blocks: tuple[Block, ...]
    rows: Rows

    def table(self) -> Rows:
        return self.rows


def cures(evidence: Evidence) -> Cures:
    """Held-out images of every kind of run, and their errors."""
    shown = tuple(_block(evidence, list(plan)) for plan in blocks(evidence.preset))
    return Cures(shown, [_row(key, runs) for key, runs in evidence.items()])


def _block(evidence: Evidence, keys: Sequence[Key]) -> Block:
    """Combinations chosen at random, always the same."""
    first = evidence.first(keys[0])
    heldout = first.split.mask.nonzero()[:, 0]
    order = torch.randperm(len(heldout), generator=torch.Generator().manual_seed(1))[:SHOWN]
    rows = heldout[order.sort().values]
    return Block(
        first.split.latents[rows],
        first.truth[rows],
        {key: evidence.first(key).draw()[rows] for key in keys},
        {key: tuple(run.error["accuracy"] for run in evidence[key]) for key in keys},
    )


def _row(key: Key, runs: Sequence[Run]) -> dict[str, object]:
    """Means over seeds of the errors, and the range of the accuracy."""
    errors = [run.error for run in runs]
    mean = {name: sum(error[name] for error in errors) / len(errors) for name in errors[0]}
    accuracies = [error["accuracy"] for error in errors]
    return {
        "run": label_of(key),
        "seeds": len(runs),
        "seen MSE": mean["seen_mse"],
        "held-out MSE": mean["heldout_mse"],
        "blank MSE": mean["blank_mse"],
        "within 1 pixel": mean["accuracy"],
        "worst seed": min(accuracies),
        "best seed": max(accuracies),
    }
