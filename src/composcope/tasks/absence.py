"""Images of combinations with absent factors: the maximum or the mean over all values of those factors."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.factors import Factor, Latents, absent, latent_grid
from composcope.tasks.base import Images, Task

Reduction = Literal["max", "mean"]
# Numbers in the images that are held at once besides the result: 64 MB.
MOST_NUMBERS = 2**24


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
    most = max(1, MOST_NUMBERS // max(1, latents.new_empty(task.image_shape).numel()))
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
