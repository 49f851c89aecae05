"""Task and split -> the latents of the training set."""

from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field

from composcope.components import Component, register
from composcope.errors import BadInput
from composcope.factors import Latents
from composcope.holdouts import Holdout, split
from composcope.tasks.base import Task


class Sampling(Component):
    """Chooses what is trained on. A sampling of your own gives `sample`; NaN marks an absent factor."""

    @abstractmethod
    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents: ...

    def check(self, task: Task, holdout: Holdout) -> None:
        """Raise ValueError when the task cannot be sampled so."""

    def sorts(self, task: Task) -> Latents:
        """A combination of each sort that may come up, for trying whether task and encoding can take it."""
        return torch.cat([task.grid()[:1], task.draw(4, torch.Generator().manual_seed(0))])

    def count(self, task: Task, holdout: Holdout) -> int:
        """How many samples that gives."""
        return len(self.sample(task, holdout, torch.Generator().manual_seed(0)))


@register("draws")
class Draws(Sampling):
    """n draws with replacement from what is seen: grid points, or real-valued centres if the task is continuous."""

    n: Annotated[int, Field(ge=1)] = 2000

    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents:
        drawn = torch.empty(0, len(task.factors))
        for _ in range(1000):
            fresh = task.draw(max(self.n, 100), rng)
            drawn = torch.cat([drawn, fresh[~holdout.contains(fresh, task.factors)]])
            if len(drawn) >= self.n:
                return drawn[: self.n]
        raise BadInput(f"{holdout} leaves too little of {task} to draw {self.n} from")

    def count(self, task: Task, holdout: Holdout) -> int:
        return self.n


@register("everything")
class Everything(Sampling):
    """Every seen grid point once."""

    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents:
        return split(task, holdout).seen


@register("stripes")
class Stripes(Sampling):
    """The paper's cure by data: each factor value by itself, the other factors absent, and some seen combinations.

    - `stripes`: how many of them, chosen at random; all by default (2N for an N x N bump task).
    - `bumps`: how many different seen combinations to add, or `fraction`: which share of them.

    >>> from composcope.holdouts import Square
    >>> from composcope.tasks.bump import BumpTask
    >>> Stripes(bumps=100).sample(BumpTask(28), Square(6, 22), torch.Generator()).shape
    torch.Size([156, 2])
    """

    stripes: Annotated[int, Field(ge=0)] | None = None
    bumps: Annotated[int, Field(ge=0)] | None = None
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None

    def __post_init__(self) -> None:
        if self.bumps is not None and self.fraction is not None:
            raise ValueError(f"bumps = {self.bumps} and fraction = {self.fraction:g}: give one of them, not both")
        if self.stripes == 0 and not self.bumps and not self.fraction:
            raise ValueError("stripes = 0 without bumps or fraction leaves nothing to train on")

    def check(self, task: Task, holdout: Holdout) -> None:
        if len(task.factors) < 2:
            raise ValueError(f"a stripe leaves a factor out, and {task.kind} has only {task.factors[0].name!r}")
        stripes, seen = len(single_values(task)), len(split(task, holdout).seen)
        if self.stripes is not None and self.stripes > stripes:
            raise ValueError(f"stripes = {self.stripes}: there are only {stripes}, one for each factor value")
        if self.bumps is not None and self.bumps > seen:
            raise ValueError(f"bumps = {self.bumps}: there are only {seen} seen combinations")

    def sorts(self, task: Task) -> Latents:
        return torch.cat([single_values(task), task.grid()[:1]])

    def sample(self, task: Task, holdout: Holdout, rng: torch.Generator) -> Latents:
        self.check(task, holdout)
        stripes, seen = single_values(task), split(task, holdout).seen
        if self.stripes is not None:
            stripes = stripes[torch.randperm(len(stripes), generator=rng)[: self.stripes].sort().values]
        bumps = round(self.fraction * len(seen)) if self.fraction is not None else self.bumps or 0
        return torch.cat([stripes, seen[torch.randperm(len(seen), generator=rng)[:bumps]]])


def single_values(task: Task) -> Latents:
    """Every value of every factor by itself, with the other factors absent: a bump task's stripes."""
    rows = []
    for place, factor in enumerate(task.factors):
        alone = torch.full((factor.size, len(task.factors)), torch.nan)
        alone[:, place] = factor.tensor()
        rows.append(alone)
    return torch.cat(rows)
