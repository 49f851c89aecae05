"""The paper's convolutional decoders, of bumps and of rotated digits."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from typing import Annotated, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import MAX_DEPTH, MAX_WIDTH, Decoder, ImageShape, init_as_transposed
from composcope.fastconv import Conv3x3, Part, Shape, Unknown, Upsample2x, recipe


@register("cnn")
class CNN(Decoder):
    """Code -> a small map of `width` channels -> upsampling to the image's size -> 3x3 layers -> image.

    - `depth`: layers between the first map and the image, each followed by ReLU. The first two double the map's size
      (at depth 1 there is only one), the others keep it.
    - `batch_norm`: batch normalisation before each ReLU; `output`: "sigmoid" keeps the image within 0..1.
    - `last_init`: "transposed" initialises the last layer like a transposed convolution, as in the authors' network.

    >>> CNN(depth=4, width=64).build(code_sizes=(28, 28), image_shape=(1, 28, 28)).first[0]
    FirstMap(56, 64, kernel_size=(7, 7), stride=(1, 1))
    """

    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 4
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 64
    batch_norm: bool = False
    output: Literal["linear", "sigmoid"] = "linear"
    last_init: Literal["conv", "transposed"] = "conv"

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        channels, *size = image_shape
        # Start at the image's size divided by 2^doublings, rounded up: 28 -> maps of 7, 14, 28. A size that is not
        # divisible overshoots and is cropped after the last doubling: 13 -> maps of 4, 8, 16, cropped to 13.
        doublings = min(self.depth, 2)
        start = tuple(-(-side // 2**doublings) for side in size)
        layers = OrderedDict[str, nn.Module]()
        layers["first"] = nn.Sequential(FirstMap(sum(code_sizes), self.width, start), *self.ending(nn.ReLU()))
        fused = not self.batch_norm  # the convolution can apply ReLU itself unless batch norm comes in between
        for level in range(1, self.depth + 1):
            if level <= doublings:
                parts: list[nn.Module] = [Upsample2x(self.width, self.width, relu=fused)]
                overshoots = level == doublings and size != [side * 2**doublings for side in start]
                parts += [Crop(size)] if overshoots else []
            else:
                parts = [Conv3x3(self.width, self.width, relu=fused)]
            layers[f"conv{level}"] = nn.Sequential(*parts, *self.ending())
        sigmoid = [nn.Sigmoid()] if self.output == "sigmoid" else []
        last = Conv3x3(self.width, channels)
        if self.last_init == "transposed":
            init_as_transposed(last)
        layers["image"] = nn.Sequential(last, *sigmoid)
        return nn.Sequential(layers)

    def ending(self, *relu: nn.Module) -> Sequence[nn.Module]:
        """The modules after a convolution: batch norm and ReLU, or the given ReLU if it is not fused."""
        return [nn.BatchNorm2d(self.width), nn.ReLU()] if self.batch_norm else relu


class FirstMap(nn.ConvTranspose2d):
    """A transposed convolution of a 1x1 map, computed as a matrix product: each output depends on one input pixel."""

    def __init__(self, code: int, width: int, size: tuple[int, ...]) -> None:
        super().__init__(code, width, (size[0], size[1]))

    def forward(
        self, code: Float[Tensor, "n code"], output_size: list[int] | None = None
    ) -> Float[Tensor, "n width h w"]:
        maps = (code @ self.weight.flatten(1)).unflatten(1, self.weight.shape[1:])
        assert self.bias is not None
        return maps + self.bias[:, None, None]


class Crop(nn.Module):
    """The central part of a map that is larger than the image."""

    def __init__(self, size: list[int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, maps: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h2 w2"]:
        height, width = self.size
        top, left = (maps.shape[2] - height) // 2, (maps.shape[3] - width) // 2
        return maps[:, :, top : top + height, left : left + width]


@recipe(FirstMap)
def _first_map(module: FirstMap, shape: Shape) -> Sequence[Part]:
    code, width, *size = module.weight.shape
    if shape != (code,) or module.bias is None:
        raise Unknown(f"{module} does not fit its input")
    return [Part("first_map", (code, width, prod(size)), (module.weight, module.bias), (width, *size))]


@recipe(Crop)
def _crop(module: Crop, shape: Shape) -> Sequence[Part]:
    (channels, height, width), (rows, cols) = shape, module.size
    sizes = (channels, height, width, (height - rows) // 2, (width - cols) // 2, rows, cols)
    if rows > height or cols > width:
        raise Unknown(f"{module} does not fit its input")
    return [Part("crop", sizes, shape=(channels, rows, cols))]


@register("digit_cnn")
class DigitCNN(Decoder):
    """Code -> a linear map -> two layers that double its size, with batch norm and ReLU -> image within 0..1.

    - `width`: channels of the map and of the first layer; the second has half as many.

    Weights start as Kaiming's normal distribution has them for ReLU, as in the authors' network, and biases at zero.

    >>> DigitCNN().build(code_sizes=(2,), image_shape=(1, 28, 28)).first[0]
    Linear(in_features=2, out_features=6272, bias=True)
    """

    width: Annotated[int, Field(ge=2, le=MAX_WIDTH)] = 128

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
