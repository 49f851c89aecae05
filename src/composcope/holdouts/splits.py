"""The grid in two parts, and the check that every value of every factor is still seen in training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from composcope.errors import BadInput
from composcope.factors import Factor, Latents
from composcope.holdouts.difficulty import Difficulty, difficulty
from composcope.holdouts.given import GivenHoldout, as_holdout
from composcope.holdouts.leaks import Leaks, find_leaks
from composcope.holdouts.numbering import numbers, value_indices
from composcope.holdouts.regions import Mask, Nothing
from composcope.tasks.base import Task


@dataclass(frozen=True)
class Certificate:
    """What was checked about a split: parts are disjoint, they cover the grid, and which values are never seen.

    - `difficulty`: how many factors must be composed at once; None if nothing is held out.
    - `leaks`: held-out images that are also training images; None if there are none, or no training set was given.
    """

    disjoint: bool
    covers: bool
    unseen: Mapping[str, tuple[float, ...]]
    withheld: int
    difficulty: Difficulty | None = None
    leaks: Leaks | None = None

    @property
    def composition(self) -> bool:
        """Whether the held-out part tests composition: new combinations of values that are all seen."""
        return self.disjoint and self.covers and not self.unseen and not self.leaks

    def __str__(self) -> str:
        if not self.withheld:
            return "nothing is held out: every combination is seen"
        if self.composition:
            text = "composition: seen and held-out are disjoint and cover the grid; every factor value is seen"
            # Of two factors it is always both.
            return text if self.difficulty is None or self.difficulty.factors <= 2 else f"{text}; {self.difficulty}"
        if not self.unseen and self.leaks:
            return f"leak, not composition: {self.leaks}"
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
    indices, sizes = value_indices(latents)
    unseen = {}
    for factor, latent, index, size in zip(factors, latents.unbind(1), indices.unbind(1), sizes, strict=True):
        missing = (index[mask].bincount(minlength=size) > 0) & (index[~mask].bincount(minlength=size) == 0)
        if missing.any():
            unseen[factor.name] = tuple(latent.unique()[missing].tolist())
    combination = numbers(indices, sizes, range(len(sizes)))
    seen, heldout = combination[~mask].unique(), combination[mask].unique()
    disjoint = not torch.isin(seen, heldout).any()
    covers = len(seen) + len(heldout) == len(latents)
    return Certificate(disjoint, covers, unseen, len(heldout), difficulty(latents, mask))


def certify_training(task: Task, parts: Split, trained: Latents) -> Certificate:
    """The split's certificate, together with a comparison of the training images with the held-out ones."""
    return replace(parts.certificate, leaks=find_leaks(task, parts.heldout, trained))


def _short(values: Sequence[float]) -> str:
    texts = [f"{value:g}" for value in values]
    return ", ".join(texts) if len(texts) <= 6 else f"{texts[0]}, {texts[1]}, ..., {texts[-1]}"
