"""A network that computes every pixel independently from the code and the pixel's position."""

from collections import OrderedDict
from typing import Annotated

from pydantic import Field
from torch import nn

from composcope.components import register
from composcope.decoders.base import MOST_DEPTH, MOST_WIDTH, Decoder, ImageShape
from composcope.decoders.tokens import Pixels, Tokens, check_width
from composcope.fastconv import PReLU


@register("pixelwise")
class Pixelwise(Decoder):
    """One token per pixel through `depth` linear layers with PReLU, shared by all pixels, without mixing them."""

    depth: Annotated[int, Field(ge=1, le=MOST_DEPTH)] = 3
    width: Annotated[int, Field(ge=4, le=MOST_WIDTH)] = 256

    def __post_init__(self) -> None:
        check_width(self.width)

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        layers = OrderedDict[str, nn.Module](tokens=Tokens(sum(code_sizes), self.width, image_shape))
        for level in range(1, self.depth + 1):
            layers[f"hidden{level}"] = nn.Sequential(nn.Linear(self.width, self.width), PReLU())
        layers["image"] = Pixels(self.width, image_shape)
        return nn.Sequential(layers)
