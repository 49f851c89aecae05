"""The grid in two parts, the check that every value is still seen in training, and how hard the held-out part is."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from composcope.errors import BadInput
from composcope.factors import Factor, Latents, combination_numbers, value_indices
from composcope.holdouts.given import GivenHoldout, as_holdout
from composcope.holdouts.leaks import Leaks, find_leaks
from composcope.holdouts.regions import Mask, Nothing
from composcope.tasks.base import Task

# Beyond this many factors there are too many subsets of them.
MAX_FACTORS = 12
# Below this many possible numbers, a table of those that occur is faster than sorting.
MAX_IN_TABLE = 2**22


@dataclass(frozen=True)
class Difficulty:
    """The least, greatest and mean over held-out combinations of the number of factors that are newly combined."""

    least: int
    most: int
    mean: float
    factors: int

    def __str__(self) -> str:
        one = self.least == self.most
        count = f"{self.least}" if one else f"{self.least} to {self.most}"
        mean = "" if one else f", {self.mean:.2f} on average"
        return f"{count} of {self.factors} factors must be composed at once{mean}"


def composed_at_once(latents: Latents, mask: Mask) -> Int[Tensor, "heldout"]:
    """For each held-out combination the smallest k such that k of its values never occur together in a seen one.

    1 means that a value itself is never seen; 2 that two values are never seen together; the number of factors that
    all values but one were seen together, whichever that one is. 0 where the combination is seen after all.

    >>> latents = torch.cartesian_prod(*[torch.arange(2.0)] * 3)
    >>> composed_at_once(latents, torch.tensor([False] * 7 + [True])).tolist()  # every pair of values is still seen
    [3]
    >>> composed_at_once(latents, torch.tensor([False] * 6 + [True] * 2)).tolist()  # the first two at 1, any third
    [2, 2]
    """
    indices, sizes = value_indices(latents)
    order = torch.zeros(int(mask.sum()), dtype=torch.long)
    for size in range(1, len(sizes) + 1):
        for columns in itertools.combinations(range(len(sizes)), size):
            rest = (order == 0).nonzero()[:, 0]
            if not len(rest):
                return order
            number = combination_numbers(indices[:, columns], [sizes[column] for column in columns])
            seen = _occur(number[mask][rest], number[~mask])
            order[rest[~seen]] = size
    return order


def _occur(wanted: Int[Tensor, "n"], among: Int[Tensor, "m"]) -> Mask:
    most = int(max(wanted.max(), among.max() if len(among) else 0)) + 1
    if most > MAX_IN_TABLE:
        return torch.isin(wanted, among)
    table = torch.zeros(most, dtype=torch.bool)
    table[among] = True
    return table[wanted]


def difficulty(latents: Latents, mask: Mask) -> Difficulty | None:
    """The summary for a split; None if nothing is held out or there are more than 12 factors."""
    if not mask.any() or latents.shape[1] > MAX_FACTORS:
        return None
    order = composed_at_once(latents, mask)
    return Difficulty(int(order.min()), int(order.max()), order.double().mean().item(), latents.shape[1])


@dataclass(frozen=True)
class Certificate:
    """What was checked about a split: parts are disjoint, they cover the grid, and which values are never seen.

    - `difficulty`: how many factors must be composed at once; None if nothing is held out.
    - `leaks`: held-out images that are also training images; None if there are none, or no training set was given.
    """

    disjoint: bool
    covers: bool
    missing: Mapping[str, tuple[float, ...]]
    heldout: int
    difficulty: Difficulty | None = None
    leaks: Leaks | None = None

    @property
    def composition(self) -> bool:
        """Whether the held-out part tests composition: new combinations of values that are all seen."""
        return self.disjoint and self.covers and not self.missing and not self.leaks

    def __str__(self) -> str:
        if not self.heldout:
            return "nothing is held out: every combination is seen"
        if self.composition:
            text = "composition: seen and held-out are disjoint and cover the grid; every factor value is seen"
            # Of two factors it is always both.
            return text if self.difficulty is None or self.difficulty.factors <= 2 else f"{text}; {self.difficulty}"
        if not self.missing and self.leaks:
            return f"leak, not composition: {self.leaks}"
        gaps = "; ".join(f"{name} = {_short(values)}" for name, values in self.missing.items())
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
    missing = {}
    for factor, latent, index, size in zip(factors, latents.unbind(1), indices.unbind(1), sizes, strict=True):
        only_heldout = (index[mask].bincount(minlength=size) > 0) & (index[~mask].bincount(minlength=size) == 0)
        if only_heldout.any():
            missing[factor.name] = tuple(latent.unique()[only_heldout].tolist())
    combination = combination_numbers(indices, sizes)
    seen, heldout = combination[~mask].unique(), combination[mask].unique()
    disjoint = not torch.isin(seen, heldout).any()
    covers = len(seen) + len(heldout) == len(latents)
    return Certificate(disjoint, covers, missing, len(heldout), difficulty(latents, mask))


def certify_training(task: Task, parts: Split, trained: Latents) -> Certificate:
    """The split's certificate, together with a comparison of the training images with the held-out ones."""
    return replace(parts.certificate, leaks=find_leaks(task, parts.heldout, trained))


def _short(values: Sequence[float]) -> str:
    texts = [f"{value:g}" for value in values]
    return ", ".join(texts) if len(texts) <= 6 else f"{texts[0]}, {texts[1]}, ..., {texts[-1]}"
