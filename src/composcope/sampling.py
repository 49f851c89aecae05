"""Task and split -> the latents of the training set."""

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from composcope.components import Component, register
from composcope.errors import BadInput
from composcope.factors import Latents, combination_numbers, value_indices
from composcope.holdouts import Holdout, split
from composcope.tasks.base import Task

# More samples than fit into memory as images.
MAX_SAMPLES = 10_000_000


class Sampling(Component):
    """Chooses the training samples. A custom sampling implements `sample`; NaN marks an absent factor."""

    @abstractmethod
    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents: ...

    def check(self, task: Task, holdout: Holdout) -> None:
        """Raise ValueError if the task cannot be sampled this way."""

    def example_latents(self, task: Task) -> Latents:
        """A few latents with every pattern of absent factors that may occur, to check the task and encoding early."""
        return torch.cat([task.grid()[:1], task.draw(4, torch.Generator().manual_seed(0))])

    @property
    def random_absence(self) -> bool:
        """Whether it depends on the seed which samples with absent factors there are."""
        return True

    def count(self, task: Task, holdout: Holdout) -> int:
        """The number of training samples."""
        return len(self.sample(task, holdout, torch.Generator().manual_seed(0)))


@register("draws")
class Draws(Sampling):
    """n draws with replacement from the seen combinations: grid points, or real values if the task is continuous."""

    n: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 2000

    @property
    def random_absence(self) -> bool:
        return False

    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents:
        latents = torch.empty(0, len(task.factors))
        # Rejection sampling. The attempts are limited because a continuous task may leave a region of measure zero.
        for _ in range(1000):
            candidates = task.draw(max(self.n, 100), rng)
            latents = torch.cat([latents, candidates[~holdout.contains(candidates, task.factors)]])
            if len(latents) >= self.n:
                return latents[: self.n]
        raise BadInput(f"{holdout} leaves too little of {task}: {len(latents)} of {self.n} draws succeeded")

    def count(self, task: Task, holdout: Holdout) -> int:
        return self.n


@register("everything")
class Everything(Sampling):
    """Every seen grid point once."""

    @property
    def random_absence(self) -> bool:
        return False

    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents:
        return split(task, holdout).seen


@register("stripes")
class Stripes(Sampling):
    """The paper's data cure: every factor value alone, with the other factors absent, plus some seen combinations.

    - `stripes`: number of samples with absent factors, chosen at random; all by default (2N for an N x N bump task).
    - `bumps`: number of distinct seen combinations to add; or `fraction`: the fraction of them to add.
    - `subsets`: which factors are present in those samples: each "single" one, "all but one", or "all proper subsets".
      Values of two or more factors are shown together only if some seen combination has them together.

    >>> from composcope.holdouts import Square
    >>> from composcope.tasks.bump import BumpTask
    >>> Stripes(bumps=100).sample(BumpTask(28), Square(6, 22), torch.Generator()).shape
    torch.Size([156, 2])
    """

    stripes: Annotated[int, Field(ge=0, le=MAX_SAMPLES)] | None = None
    bumps: Annotated[int, Field(ge=0, le=MAX_SAMPLES)] | None = None
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    subsets: Literal["single", "all but one", "all proper subsets"] = "single"

    def __post_init__(self) -> None:
        if self.bumps is not None and self.fraction is not None:
            raise ValueError(f"bumps = {self.bumps} and fraction = {self.fraction:g}: give one of them, not both")
        if self.stripes == 0 and not self.bumps and not self.fraction:
            raise ValueError("stripes = 0 without bumps or fraction leaves nothing to train on")

    @property
    def random_absence(self) -> bool:
        return self.stripes is not None

    def check(self, task: Task, holdout: Holdout) -> None:
        self._available(task, holdout)

    def example_latents(self, task: Task) -> Latents:
        grid = task.grid()
        if self.subsets == "single":
            return torch.cat([single_values(task), grid[:1]])
        both_ends = grid[[0, -1]]
        return torch.cat([*(projected(both_ends, present) for present in self._present(task)), grid[:1]])

    def _present(self, task: Task) -> list[tuple[int, ...]]:
        """The columns of the factors that are present together, the fewest first."""
        count = len(task.factors)
        sizes = {"single": [1], "all but one": [count - 1], "all proper subsets": range(1, count)}[self.subsets]
        return [present for size in sizes for present in itertools.combinations(range(count), size)]

    def _available(
        self, task: Task, holdout: Holdout
    ) -> tuple[Float[Tensor, "stripes factors"], Float[Tensor, "seen factors"]]:
        """All samples with absent factors, and all seen combinations, if there are as many as are asked for."""
        if len(task.factors) < 2:
            raise ValueError(f"a stripe leaves out a factor, and {task.kind} has only {task.factors[0].name!r}")
        seen, present = split(task, holdout).seen, self._present(task)
        alone = [single_values(task)] if len(present[0]) == 1 else []
        stripes = torch.cat([*alone, *(projected(seen, columns) for columns in present if len(columns) > 1)])
        if self.stripes is not None and self.stripes > len(stripes):
            which = "one per factor value" if self.subsets == "single" else f"for {self.subsets}"
            raise ValueError(f"stripes = {self.stripes}: there are only {len(stripes)}, {which}")
        if self.bumps is not None and self.bumps > len(seen):
            raise ValueError(f"bumps = {self.bumps}: there are only {len(seen)} seen combinations")
        return stripes, seen

    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents:
        stripes, seen = self._available(task, holdout)
        if self.stripes is not None:
            stripes = stripes[torch.randperm(len(stripes), generator=rng)[: self.stripes].sort().values]
        bumps = round(self.fraction * len(seen)) if self.fraction is not None else self.bumps or 0
        return torch.cat([stripes, seen[torch.randperm(len(seen), generator=rng)[:bumps]]])


def projected(latents: Latents, present: Sequence[int]) -> Float[Tensor, "distinct factors"]:
    """The distinct combinations of the values in these columns, in their order, with the other factors absent.

    >>> projected(torch.tensor([[0.0, 1.0, 5.0], [0.0, 2.0, 5.0], [0.0, 2.0, 6.0]]), [0, 1])
    tensor([[0., 1., nan],
            [0., 2., nan]])
    """
    indices, sizes = value_indices(latents)
    number = combination_numbers(indices[:, present], [sizes[column] for column in present])
    number = number.unique(return_inverse=True)[1]
    # Rows of the same number have the same values in these columns, so any of them will do.
    rows = torch.zeros(int(number.max()) + 1, dtype=torch.long).scatter_(0, number, torch.arange(len(latents)))
    some = torch.full((len(rows), latents.shape[1]), torch.nan)
    some[:, present] = latents[rows][:, present]
    return some


def single_values(task: Task) -> Latents:
    """Every value of every factor alone, with the other factors absent: the stripes of a bump task."""
    rows = []
    for index, factor in enumerate(task.factors):
        latents = torch.full((factor.size, len(task.factors)), torch.nan)
        latents[:, index] = factor.tensor()
        rows.append(latents)
    return torch.cat(rows)
