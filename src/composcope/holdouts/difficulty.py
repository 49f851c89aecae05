"""How many factors must be composed at once to draw what is held out."""

import itertools
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from composcope.factors import Latents
from composcope.holdouts.numbering import numbers, value_indices
from composcope.holdouts.regions import Mask

# Beyond this many factors there are too many subsets of them.
MOST_FACTORS = 12
# Below this many possible numbers, a table of those that occur is faster than sorting.
MOST_IN_TABLE = 2**22


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
    seen, heldout = indices[~mask], indices[mask]
    order = torch.zeros(len(heldout), dtype=torch.long)
    for size in range(1, len(sizes) + 1):
        for columns in itertools.combinations(range(len(sizes)), size):
            left = (order == 0).nonzero()[:, 0]
            if not len(left):
                return order
            known = _occur(numbers(heldout[left], sizes, columns), numbers(seen, sizes, columns))
            order[left[~known]] = size
    return order


def _occur(wanted: Int[Tensor, "n"], among: Int[Tensor, "m"]) -> Mask:
    most = int(max(wanted.max(), among.max() if len(among) else 0)) + 1
    if most > MOST_IN_TABLE:
        return torch.isin(wanted, among)
    table = torch.zeros(most, dtype=torch.bool)
    table[among] = True
    return table[wanted]


def difficulty(latents: Latents, mask: Mask) -> Difficulty | None:
    """The summary for a split; None if nothing is held out or there are more than 12 factors."""
    if not mask.any() or latents.shape[1] > MOST_FACTORS:
        return None
    order = composed_at_once(latents, mask)
    return Difficulty(int(order.min()), int(order.max()), order.double().mean().item(), latents.shape[1])
