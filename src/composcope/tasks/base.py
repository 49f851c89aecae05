"""The task role: factors, and how a combination of their values becomes an image."""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.components import Component
from composcope.factors import Factor, Latents, latent_grid

Images = Float[Tensor, "n channels height width"]


class Task(Component):
    """Images generated from independent factors. A custom task implements `factors`, `image_shape` and `render`.

    - `background`: an empty image: one value, or a tensor that broadcasts to an image (one value per channel, say);
      `dark`: whether objects are darker than it instead of brighter.
    - `positions`: names of the factors that `locate` reads from an image, none by default.
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
        """The position of the object in each image, one column per name in `positions`."""
        raise ValueError(f"{self.kind}: this task has no position to read from an image")

    @property
    def dark(self) -> bool:
        return False

    @property
    def background(self) -> float | Tensor:
        return 1.0 if self.dark else 0.0

    def foreground(self, images: Images) -> Images:
        """The object on a background of zero: background - image if dark, image - background if bright."""
        background = self.background
        if isinstance(background, Tensor):
            background = background.to(images.device)
        return background - images if self.dark else images - background

    def blank(self, n: int) -> Images:
        """n images of background only."""
        return torch.as_tensor(self.background, dtype=torch.float32).expand(n, *self.image_shape).clone()

    def grid(self) -> Latents:
        """Every combination of factor values; the first factor varies slowest."""
        return latent_grid(self.factors)

    def draw(self, n: int, rng: torch.Generator) -> Latents:
        """n random combinations, with replacement; grid points by default."""
        grid = self.grid()
        return grid[torch.randint(len(grid), (n,), generator=rng)]
