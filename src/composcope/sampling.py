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
