"""The paper's decoder of rotated digits."""

import math
from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from composcope.components import register
from composcope.decoders.base import MOST_WIDTH, Decoder, ImageShape
from composcope.decoders.cnn import Crop
from composcope.fastconv import Conv3x3, Upsample2x


@register("digit_cnn")
class DigitCNN(Decoder):
    """Code -> a linear map -> two layers that double its size, with batch norm and ReLU -> image within 0..1.

    - `width`: channels of the map and of the first layer; the second has half as many.

    Weights start as Kaiming's normal distribution has them for ReLU, as in the authors' network, and biases at zero.

    >>> DigitCNN().build(code_sizes=(2,), image_shape=(1, 28, 28)).first[0]
    Linear(in_features=2, out_features=6272, bias=True)
    """

    width: Annotated[int, Field(ge=2, le=MOST_WIDTH)] = 128

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        channels, *size = image_shape
        start, half = [-(-side // 4) for side in size], self.width // 2
        crop = [Crop(size)] if size != [4 * side for side in start] else []
        layers = OrderedDict[str, nn.Module]()
        layers["first"] = nn.Sequential(
            nn.Linear(sum(code_sizes), self.width * math.prod(start)), nn.Unflatten(1, (self.width, *start))
        )
        layers["conv1"] = nn.Sequential(Upsample2x(self.width, self.width), nn.BatchNorm2d(self.width), nn.ReLU())
        layers["conv2"] = nn.Sequential(Upsample2x(self.width, half), *crop, nn.BatchNorm2d(half), nn.ReLU())
        layers["image"] = nn.Sequential(Conv3x3(half, channels), nn.Sigmoid())
        module = nn.Sequential(layers)
        module.apply(init_kaiming)
        return module


def init_kaiming(module: nn.Module) -> None:
    """Kaiming's start of a linear layer, by its inputs, or of a convolution, by the weight's first dimension."""
    if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
        mode: Literal["fan_in", "fan_out"] = "fan_in" if isinstance(module, nn.Linear) else "fan_out"
        nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
