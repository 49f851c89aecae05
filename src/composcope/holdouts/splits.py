"""The grid in two parts, and the check that every value of every factor is still seen in training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from composcope.errors import BadInput
from composcope.factors import Factor, Latents
from composcope.holdouts.given import GivenHoldout, as_holdout
from composcope.holdouts.regions import Mask, Nothing
from composcope.tasks.base import Task


@dataclass(frozen=True)
class Certificate:
    """What was checked about a split: parts are disjoint, they cover the grid, and which values are never seen."""

    disjoint: bool
    covers: bool
    unseen: Mapping[str, tuple[float, ...]]
    withheld: int

    @property
    def composition(self) -> bool:
        """Whether the held-out part tests composition: new combinations of values that are all seen."""
        return self.disjoint and self.covers and not self.unseen

    def __str__(self) -> str:
        if not self.withheld:
            return "nothing is held out: every combination is seen"
        if self.composition:
            return "composition: seen and held-out are disjoint and cover the grid; every factor value is seen"
        gaps = "; ".join(f"{name} = {_short(values)}" for name, values in self.unseen.items())
        return f"extrapolation, not composition: values never seen in training: {gaps}"


@dataclass(frozen=True)
class Split:
    """The grid in two parts: combinations available for training, and held-out ones."""

    latents: Latents
    mask: Mask
    certificate: Certificate

    @property
    def seen(self) -> Latents:
        return self.latents[~self.mask]

    @property
    def heldout(self) -> Latents:
        return self.latents[self.mask]


def split(task: Task, holdout: GivenHoldout) -> Split:
    """Split the task's grid into seen and held-out combinations, and certify the split.

    - `holdout`: a `Holdout`, or whatever `as_holdout` takes: a mask, a list of rows, a function.

    >>> from composcope.tasks.bump import BumpTask
    >>> from composcope.holdouts.regions import Square
    >>> parts = split(BumpTask(28), Square(6, 22))
    >>> len(parts.seen), len(parts.heldout), parts.certificate.composition
    (495, 289, True)
    """
    holdout = as_holdout(holdout, task)
    holdout.check(task.factors)
    latents = task.grid()
    mask = holdout.contains(latents, task.factors)
    if mask.all():
        raise BadInput(f"{holdout} holds out all {len(mask)} combinations; nothing is left to train on")
    if not mask.any() and not isinstance(holdout, Nothing):
        raise BadInput(f"{holdout} holds out none of the {len(mask)} combinations; use Nothing() if that is intended")
    return Split(latents, mask, certify(task.factors, latents, mask))


def certify(factors: Sequence[Factor], latents: Latents, mask: Mask) -> Certificate:
    """Count the combinations in each part and in both, and find factor values that only the held-out part has."""
    # Combinations are numbered in mixed radix and counted, rather than trusting the mask to split the grid: the grid
    # may be a user's table, and what matters for the claim of composition is which values were really seen.
    combination = torch.zeros(len(latents), dtype=torch.long)
    unseen = {}
    for factor, latent in zip(factors, latents.unbind(1), strict=True):
        values, index = latent.unique(return_inverse=True)
        combination = combination * len(values) + index
        missing = (index[mask].bincount(minlength=len(values)) > 0) & (
            index[~mask].bincount(minlength=len(values)) == 0
        )
        if missing.any():
            unseen[factor.name] = tuple(values[missing].tolist())
    seen, heldout = combination[~mask].unique(), combination[mask].unique()
    disjoint = not torch.isin(seen, heldout).any()
    return Certificate(disjoint, len(seen) + len(heldout) == len(latents), unseen, len(heldout))


def _short(values: Sequence[float]) -> str:
    texts = [f"{value:g}" for value in values]
    return ", ".join(texts) if len(texts) <= 6 else f"{texts[0]}, {texts[1]}, ..., {texts[-1]}"
