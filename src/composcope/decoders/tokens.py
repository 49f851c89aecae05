"""One token a pixel: the code, projected, plus where the pixel is."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.decoders.base import ImageShape


def check_width(width: int) -> None:
    """A position in two dimensions takes a sine and a cosine for each of them."""
    if width % 4:
        raise ValueError(f"width = {width}: must be a multiple of 4, for sines and cosines of row and column")


def positions(height: int, width: int, size: int, base: float = 10000.0) -> Float[Tensor, "pixels size"]:
    """sin and cos of row and of column times base^(-i / (size / 4)), a quarter of the size each."""
    rates = base ** (-torch.arange(size // 4) / (size // 4))
    rows = torch.arange(height).repeat_interleave(width)[:, None] * rates
    columns = torch.arange(width).repeat(height)[:, None] * rates
    return torch.cat([rows.sin(), rows.cos(), columns.sin(), columns.cos()], 1)


class Tokens(nn.Module):
    """Codes (n, code) -> tokens (n, pixels, width)."""

    position: Tensor

    def __init__(self, code: int, width: int, image_shape: ImageShape) -> None:
        super().__init__()
        self.project = nn.Linear(code, width)
        self.register_buffer("position", positions(*image_shape[1:], width), persistent=False)

    def forward(self, code: Float[Tensor, "n code"]) -> Float[Tensor, "n pixels width"]:
        return self.project(code)[:, None] + self.position


class Pixels(nn.Module):
    """Tokens -> image, each token giving its own pixel."""

    def __init__(self, width: int, image_shape: ImageShape) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.paint = nn.Linear(width, image_shape[0])

    def forward(self, tokens: Float[Tensor, "n pixels width"]) -> Float[Tensor, "n channels height columns"]:
        return self.paint(tokens).transpose(1, 2).unflatten(2, self.image_shape[1:])
