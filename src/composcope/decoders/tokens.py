"""Decoders with one token per pixel: the projected code plus the pixel's position."""

from collections import OrderedDict
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import MAX_DEPTH, MAX_WIDTH, Decoder, ImageShape
from composcope.fastconv import PReLU


def check_width(width: int) -> None:
    """Raise ValueError unless the width holds a sine and a cosine of both row and column."""
    if width % 4:
        raise ValueError(f"width = {width}: must be a multiple of 4, for the sine and cosine of row and column")


def positions(height: int, width: int, size: int, base: float = 10000.0) -> Float[Tensor, "pixels size"]:
    """sin and cos of row and of column times base^(-i / (size / 4)), each a quarter of the size."""
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
        # Not persistent: it follows from the sizes, so it need not be stored with the weights.
        self.register_buffer("position", positions(*image_shape[1:], width), persistent=False)

    def forward(self, code: Float[Tensor, "n code"]) -> Float[Tensor, "n pixels width"]:
        return self.project(code)[:, None] + self.position


class Pixels(nn.Module):
    """Tokens -> image, one pixel per token."""

    def __init__(self, width: int, image_shape: ImageShape) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.paint = nn.Linear(width, image_shape[0])

    def forward(self, tokens: Float[Tensor, "n pixels width"]) -> Float[Tensor, "n channels height columns"]:
        return self.paint(tokens).transpose(1, 2).unflatten(2, self.image_shape[1:])


@register("pixelwise")
class Pixelwise(Decoder):
    """One token per pixel through `depth` linear layers with PReLU, shared by all pixels, without mixing them."""

    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 3
    width: Annotated[int, Field(ge=4, le=MAX_WIDTH)] = 256

    def __post_init__(self) -> None:
        check_width(self.width)

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        layers = OrderedDict[str, nn.Module](tokens=Tokens(sum(code_sizes), self.width, image_shape))
        for level in range(1, self.depth + 1):
            layers[f"hidden{level}"] = nn.Sequential(nn.Linear(self.width, self.width), PReLU())
        layers["image"] = Pixels(self.width, image_shape)
        return nn.Sequential(layers)


@register("transformer")
class Transformer(Decoder):
    """One token per pixel through `depth` layers of self-attention, without dropout.

    Attention compares every pixel with every other, so memory and time grow with the fourth power of the image's side.
    """

    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 3
    width: Annotated[int, Field(ge=4, le=MAX_WIDTH)] = 128
    heads: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 4

    def __post_init__(self) -> None:
        check_width(self.width)
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads} does not divide width = {self.width}")

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        layers = OrderedDict[str, nn.Module](tokens=Tokens(sum(code_sizes), self.width, image_shape))
        for level in range(1, self.depth + 1):
            layers[f"attention{level}"] = nn.TransformerEncoderLayer(
                self.width, self.heads, dim_feedforward=4 * self.width, dropout=0.0, batch_first=True
            )
        layers["image"] = Pixels(self.width, image_shape)
        return nn.Sequential(layers)
