"""The task role: factors, and how a combination of their values becomes an image."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.components import Component
from composcope.factors import Factor, Latents, absent, latent_grid

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


def learned_background(images: Images, dark: bool = False) -> Tensor:
    """For each channel the median of the border pixels, (channels, 1, 1): objects seldom cover the border.

    0 (dark: 1) or the least (dark: greatest) value instead, if one of these is within 1 % of the images' range.
    """
    border = torch.ones(images.shape[2:], dtype=torch.bool)
    border[1:-1, 1:-1] = False
    median = images[:, :, border].transpose(0, 1).flatten(1).median(1).values
    # Objects that fade out, as bumps do, leave a little everywhere: an extreme value nearby is the background.
    # Channel by channel: all at once would copy the images.
    extreme = torch.stack([channel.amax() if dark else channel.amin() for channel in images.unbind(1)])
    nearby = 0.01 * (images.max() - images.min())
    usual = torch.full_like(median, 1.0 if dark else 0.0)
    for value in (extreme, usual):
        median = torch.where((median - value).abs() <= nearby, value, median)
    return median[:, None, None]


Reduction = Literal["max", "mean"]
# Numbers in the images that are held at once besides the result: 64 MB.
MAX_NUMBERS = 2**24


def over_values(task: Task, latents: Latents, reduction: Reduction) -> Images:
    """Each combination drawn with its absent factors (NaN) at all of their values at once.

    The images are reduced pixel by pixel: the greatest foreground (dark: the least image), or the mean. All values of
    the factor count, whether or not they are held out.

    >>> from composcope.tasks.bump import BumpTask
    >>> task = BumpTask(8, polarity="bright")
    >>> row = torch.tensor([[3.0, torch.nan]])
    >>> torch.equal(over_values(task, row, "max"), task.render(row))
    True
    """
    missing = absent(latents)
    images = latents.new_empty(len(latents), *task.image_shape)
    patterns, pattern = missing.unique(dim=0, return_inverse=True)
    for number, gone in enumerate(patterns):
        rows = (pattern == number).nonzero()[:, 0]
        if gone.any():
            distinct, repeat = latents[rows].nan_to_num(0.0).unique(dim=0, return_inverse=True)
            images[rows] = _reduced(task, distinct, gone, reduction)[repeat]
        else:
            images[rows] = task.render(latents[rows])
    return images


def _reduced(task: Task, latents: Latents, gone: Tensor, reduction: Reduction) -> Images:
    """The images of combinations that lack the same factors; what they have in those columns does not matter."""
    columns = gone.nonzero()[:, 0]
    factors: list[Factor] = [task.factors[column] for column in columns.tolist()]
    values = latent_grid(factors).to(latents)
    most = max(1, MAX_NUMBERS // max(1, latents.new_empty(task.image_shape).numel()))
    parts = []
    for rows in latents.split(max(1, most // len(values))):
        total: Tensor | None = None
        for block in values.split(most):
            images = task.render(_completed(rows, columns, block))
            images = images.reshape(len(rows), len(block), *task.image_shape)
            if reduction == "mean":
                part = images.sum(1)
                total = part if total is None else total + part
            else:
                # The greatest foreground is the least image where objects are darker than the background.
                part = images.amin(1) if task.dark else images.amax(1)
                pick = torch.minimum if task.dark else torch.maximum
                total = part if total is None else pick(total, part)
        assert total is not None  # every factor has a value
        parts.append(total / len(values) if reduction == "mean" else total)
    return torch.cat(parts)


def _completed(rows: Latents, columns: Tensor, values: Float[Tensor, "values absent"]) -> Tensor:
    """Every row with every combination of the absent factors' values; the row varies slowest."""
    complete = rows.repeat_interleave(len(values), 0)
    complete[:, columns] = values.repeat(len(rows), 1)
    return complete
