"""What a task is: factors, and how a combination of their values becomes an image."""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.components import Component
from composcope.factors import Factor, Latents, latent_grid

Images = Float[Tensor, "n channels height width"]


class Task(Component):
    """A world of independent factors. A task of your own gives `factors`, `image_shape` and `render`.

    - `background`: the value of an empty pixel; `dark`: whether things are drawn below it instead of above.
    - `positions`: names of the factors that `locate` reads off an image, none by default.
    """

    positions: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def factors(self) -> tuple[Factor, ...]: ...

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, int, int]: ...

    @abstractmethod
    def render(self, latents: Latents) -> Images: ...

    def locate(self, images: Images) -> Float[Tensor, "n axes"]:
        """Where the thing is drawn, in the order of `positions`."""
        raise ValueError(f"{self.kind}: this task tells no position from an image")

    @property
    def dark(self) -> bool:
        return False

    @property
    def background(self) -> float:
        return 1.0 if self.dark else 0.0

    def foreground(self, images: Images) -> Images:
        """What is drawn, positive on an empty ground: background - image when dark, image - background when bright."""
        return self.background - images if self.dark else images - self.background

    def blank(self, n: int) -> Images:
        """n empty images."""
        return torch.full((n, *self.image_shape), self.background)

    def grid(self) -> Latents:
        """Every combination, the first factor slowest."""
        return latent_grid(self.factors)

    def draw(self, n: int, rng: torch.Generator) -> Latents:
        """n combinations at random, with replacement: by default, grid points."""
        grid = self.grid()
        return grid[torch.randint(len(grid), (n,), generator=rng)]
