"""The spatial broadcast decoder: every pixel is told the whole code and where it is."""

from collections import OrderedDict
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import MAX_DEPTH, MAX_WIDTH, Codes, Decoder, ImageShape
from composcope.fastconv import Conv3x3


@register("spatial_broadcast")
class SpatialBroadcast(Decoder):
    """The code repeated at every pixel, with the pixel's coordinates as two more channels, then 3x3 convolutions.

    - `depth`: hidden layers of `width` channels, each followed by ReLU, all at the image's size.

    >>> SpatialBroadcast().build(code_sizes=(12, 12), image_shape=(1, 12, 12)).broadcast(torch.zeros(5, 24)).shape
    torch.Size([5, 26, 12, 12])
    """

    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 3
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 32

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        channels, height, width = image_shape
        layers = OrderedDict[str, nn.Module](broadcast=Broadcast(height, width))
        inputs = sum(code_sizes) + 2
        for level in range(1, self.depth + 1):
            layers[f"conv{level}"] = Conv3x3(inputs, self.width, relu=True)
            inputs = self.width
        layers["image"] = Conv3x3(self.width, channels)
        return nn.Sequential(layers)


class Broadcast(nn.Module):
    """Codes -> maps of the image's size: one constant channel per code unit, and the coordinates."""

    position: Tensor

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.register_buffer("position", coordinates(height, width), persistent=False)  # follows from the sizes

    def forward(self, codes: Codes) -> Float[Tensor, "n channels height width"]:
        maps = codes[:, :, None, None].expand(-1, -1, *self.position.shape[1:])
        return torch.cat([maps, self.position.to(maps).expand(len(codes), -1, -1, -1)], 1)


def coordinates(height: int, width: int) -> Float[Tensor, "2 height width"]:
    """Column and row of every pixel, each from -1 to 1.

    >>> coordinates(2, 3)[0]
    tensor([[-1.,  0.,  1.],
            [-1.,  0.,  1.]])
    """
    rows, columns = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    return torch.stack([columns, rows])
