"""Training images that show what is held out.

A combination with an absent factor is no held-out combination, but its image may be one: where the largest scale is
held out, the maximum over all scales is the shape at that scale.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from composcope.factors import Factor, Latents, absent, combination_numbers, value_indices
from composcope.tasks.base import Task

# Two images are the same if their mean squared difference is at most this part of the held-out image's own square:
# two bumps of one brightness and of 1 % more.
SAME = 1e-4
# Random projections by which images are compared before pixels are; four times the tolerance, so that what is equal in
# pixels is not missed: the mean of 32 squares exceeds four times its expectation in 1 of 10^14 cases.
PROJECTIONS, MARGIN = 32, 4.0
# Numbers in the images of a grid up to which complete combinations are compared too, and those drawn at once.
MAX_NUMBERS, DRAWN_AT_ONCE = 2**24, 2**22


@dataclass(frozen=True)
class Leaks:
    """How many of the held-out images are also training images, of how many, and one example in words."""

    count: int
    of: int
    example: str

    def __str__(self) -> str:
        return f"{self.count} of {self.of} held-out images are also training images: {self.example}"


def find_leaks(
    task: Task, heldout: Float[Tensor, "heldout factors"], trained: Float[Tensor, "trained factors"], same: float = SAME
) -> Leaks | None:
    """The held-out images that equal a training image; None if there are none.

    - `trained`: the latents of the training set. Those with an absent factor are always compared, complete ones only
      where the images of all of the task's combinations have at most 2^24 numbers: they can only be equal if the task
      draws two combinations alike.
    - `same`: greatest mean squared difference of equal images, as a part of that of a blank image.

    >>> from composcope.tasks.sprites import SpriteTask
    >>> task = SpriteTask(16, shapes=("square", "heart"), scales=(3, 5))
    >>> nan = torch.nan
    >>> print(find_leaks(task, torch.tensor([[1.0, 5.0]]), torch.tensor([[0.0, nan], [1.0, nan]])))
    1 of 1 held-out images are also training images: shape = heart, scale absent looks like shape = heart, scale = 5
    """
    some = math.prod(task.image_shape) * math.prod(factor.size for factor in task.factors) > MAX_NUMBERS
    rows = _distinct(trained[absent(trained).any(1)] if some else trained)
    if not len(rows) or not len(heldout):
        return None
    directions = torch.randn(math.prod(task.image_shape), PROJECTIONS, generator=torch.Generator().manual_seed(0))
    projected, blank = _projected(task, heldout, directions)
    leaked: dict[int, int] = {}
    for start, part in _parts(task, rows):
        distance = torch.cdist(_projected(task, part, directions)[0], projected).square()
        pairs = (distance <= MARGIN * same * blank * PROJECTIONS).nonzero()
        for row, held in _equal(task, part, heldout, pairs, same * blank):
            leaked.setdefault(held, start + row)
    if not leaked:
        return None
    held, row = min(leaked.items())
    example = f"{_words(rows[row], task.factors)} looks like {_words(heldout[held], task.factors)}"
    return Leaks(len(leaked), len(heldout), example)


def _distinct(latents: Latents) -> Float[Tensor, "distinct factors"]:
    """Each combination once; absent factors are a value of their own."""
    filled = torch.where(absent(latents), torch.finfo(latents.dtype).max, latents)
    if not len(filled):
        return latents
    indices, sizes = value_indices(filled)
    number = combination_numbers(indices, sizes).unique(return_inverse=True)[1]
    first = torch.full((int(number.max()) + 1,), len(latents))
    return latents[first.scatter_reduce_(0, number, torch.arange(len(latents)), "amin")]


def _parts(task: Task, latents: Latents) -> Iterator[tuple[int, Latents]]:
    """Some combinations at a time, with the number of the first."""
    count = max(1, DRAWN_AT_ONCE // math.prod(task.image_shape))
    for start in range(0, len(latents), count):
        yield start, latents[start : start + count]


def _projected(
    task: Task, latents: Latents, directions: Float[Tensor, "numbers k"]
) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n"]]:
    """The images' foregrounds along some directions, and their squared lengths."""
    along, length = [], []
    for _, part in _parts(task, latents):
        foreground = task.foreground(task.render(part).float()).flatten(1)
        along.append(foreground @ directions)
        length.append(foreground.square().sum(1))
    return torch.cat(along), torch.cat(length)


def _equal(
    task: Task,
    trained: Float[Tensor, "trained factors"],
    heldout: Float[Tensor, "heldout factors"],
    pairs: Int[Tensor, "pairs 2"],
    most: Float[Tensor, "heldout"],
) -> Iterator[tuple[int, int]]:
    """The pairs whose images differ by no more than `most`, the greatest squared distance for each held-out one."""
    for some in pairs.split(max(1, DRAWN_AT_ONCE // math.prod(task.image_shape))):
        difference = task.render(trained[some[:, 0]]) - task.render(heldout[some[:, 1]])
        near = difference.flatten(1).square().sum(1) <= most[some[:, 1]]
        yield from map(tuple, some[near].tolist())


def _words(latents: Float[Tensor, "factors"], factors: Sequence[Factor]) -> str:
    words = []
    for factor, value in zip(factors, latents.tolist(), strict=True):
        label = factor.label(value)
        text = label if isinstance(label, str) else f"{label:g}"
        words.append(f"{factor.name} absent" if math.isnan(value) else f"{factor.name} = {text}")
    return ", ".join(words)
