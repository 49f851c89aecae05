"""The fully connected decoder."""

from collections import OrderedDict
from math import prod
from typing import Annotated

from pydantic import Field
from torch import nn

from composcope.components import register
from composcope.decoders.base import MAX_DEPTH, MAX_WIDTH, Decoder, ImageShape


@register("mlp")
class MLP(Decoder):
    """`depth` linear layers of `width` units with ReLU, then one linear layer to all pixels."""

    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 3
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 256

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        layers = OrderedDict[str, nn.Module]()
        inputs = sum(code_sizes)
        for level in range(1, self.depth + 1):
            layers[f"hidden{level}"] = nn.Sequential(nn.Linear(inputs, self.width), nn.ReLU())
            inputs = self.width
        layers["image"] = nn.Sequential(nn.Linear(inputs, prod(image_shape)), nn.Unflatten(1, image_shape))
        return nn.Sequential(layers)
