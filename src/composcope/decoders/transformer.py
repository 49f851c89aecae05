"""A transformer over pixels."""

from collections import OrderedDict
from typing import Annotated

from pydantic import Field
from torch import nn

from composcope.components import register
from composcope.decoders.base import MOST_DEPTH, MOST_WIDTH, Decoder, ImageShape
from composcope.decoders.tokens import Pixels, Tokens, check_width


@register("transformer")
class Transformer(Decoder):
    """One token per pixel through `depth` layers of self-attention, without dropout.

    Attention compares every pixel with every other, so memory and time grow with the fourth power of the image's side.
    """

    depth: Annotated[int, Field(ge=1, le=MOST_DEPTH)] = 3
    width: Annotated[int, Field(ge=4, le=MOST_WIDTH)] = 128
    heads: Annotated[int, Field(ge=1, le=MOST_WIDTH)] = 4

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
