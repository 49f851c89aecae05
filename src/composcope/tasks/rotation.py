"""The paper's second task: handwritten digits, rotated."""

import math
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import AfterValidator, Field
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, affine_grid, grid_sample

from composcope.components import Listed, register
from composcope.factors import Factor, Latents, absent, strictly_increasing
from composcope.tasks.base import Images, Task, over_values

SIDE = 28


@cache
def digits() -> Float[Tensor, "10 28 28"]:
    """The first example of each digit 0..9 in MNIST's training images, in 0..1 (source and licence: digits.md)."""
    with (files("composcope.tasks") / "digits.npy").open("rb") as file:
        return torch.from_numpy(np.load(file, allow_pickle=False)).float() / 255


@register("rotation")
class RotationTask(Task):
    """MNIST digits rotated counter-clockwise around the image's centre, with bilinear interpolation.

    Factors: the angle in degrees (circular, `angles` values) and, if there are several digits, the digit.

    - `side`: of the images in pixels; below 28, each pixel is the mean of the area that it covers.
    - `absent`: how an absent factor is drawn: as the "max" or "mean" over all of its values; refused by default.

    >>> RotationTask(digits=(4,), angles=444).factors
    (Factor("angle", 0, 0.810811, ..., 359.189, circular),)
    """

    digits: Annotated[
        tuple[Annotated[int, Field(ge=0, le=9)], ...], Listed, Field(min_length=1), AfterValidator(strictly_increasing)
    ] = (4,)
    angles: Annotated[int, Field(ge=2, le=36_000)] = 360
    side: Annotated[int, Field(ge=4, le=SIDE)] = SIDE
    absent: Literal["refuse", "max", "mean"] = "refuse"

    @property
    def factors(self) -> tuple[Factor, ...]:
        degrees = tuple(360 * step / self.angles for step in range(self.angles))
        angle = Factor("angle", degrees, "circular", 360.0)
        if len(self.digits) == 1:
            return (angle,)
        return (angle, Factor("digit", tuple(map(float, self.digits)), "categorical"))

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return (1, self.side, self.side)

    def render(self, latents: Latents) -> Images:
        if absent(latents).any():
            if self.absent == "refuse":
                raise ValueError(
                    "RotationTask cannot render an absent factor (NaN): it needs an angle and a digit, or absent='max'"
                )
            return over_values(self, latents, self.absent)
        angle = latents[:, 0] * (math.pi / 180)
        digit = latents[:, 1].round().long() if len(self.digits) > 1 else torch.full((len(latents),), self.digits[0])
        if not torch.isin(digit, torch.tensor(self.digits)).all():
            raise ValueError(
                f"RotationTask renders the digits {self.digits}; the latents contain {digit.unique().tolist()}"
            )
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        # Figures draw row 0 at the bottom, MNIST stores it at the top: flip the digits, so that they appear upright.
        # `source` maps each output pixel to its source pixel, so it holds the inverse rotation.
        source = torch.stack([torch.stack([cos, sin, zero], 1), torch.stack([-sin, cos, zero], 1)], 1)
        upright = digits()[digit.cpu()].flip(1).to(latents)[:, None]
        grid = affine_grid(source, list(upright.shape), align_corners=False)
        images = grid_sample(upright, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        # Rotated first and reduced afterwards, so that small images are as sharp as their pixels allow.
        return images if self.side == SIDE else adaptive_avg_pool2d(images, self.side)
