"""The paper's convolutional decoder."""

from collections import OrderedDict
from typing import Annotated, Literal

from einops import rearrange
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import Decoder, ImageShape


@register("cnn")
class CNN(Decoder):
    """Code -> a small map of `width` channels -> doublings until the image's size, then 3x3 layers -> the image.

    - `depth`: layers between the first map and the image. The first two double the map (one of them at depth 1), the
      others keep its size; ReLU after each.
    - `batch_norm`: normalise before each ReLU; `output`: "sigmoid" keeps the image within 0..1.

    >>> CNN(depth=4, width=64).build(code_sizes=(28, 28), image_shape=(1, 28, 28))[0]
    FirstMap(56, 64, kernel_size=(7, 7), stride=(1, 1))
    """

    depth: Annotated[int, Field(ge=1)] = 4
    width: Annotated[int, Field(ge=1)] = 64
    batch_norm: bool = False
    output: Literal["linear", "sigmoid"] = "linear"

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        channels, *size = image_shape
        doublings = min(self.depth, 2)
        start = tuple(-(-side // 2**doublings) for side in size)
        layers = OrderedDict[str, nn.Module]()
        layers["first"] = self.layer(FirstMap(sum(code_sizes), self.width, start))
        for level in range(1, self.depth + 1):
            if level <= doublings:
                grow: list[nn.Module] = [nn.ConvTranspose2d(self.width, self.width, 4, stride=2, padding=1)]
                layers[f"conv{level}"] = self.layer(*grow, *([Crop(size)] if level == doublings else []))
            else:
                layers[f"conv{level}"] = self.layer(nn.Conv2d(self.width, self.width, 3, padding=1))
        last: list[nn.Module] = [nn.Conv2d(self.width, channels, 3, padding=1)]
        layers["image"] = nn.Sequential(*last, *([nn.Sigmoid()] if self.output == "sigmoid" else []))
        return nn.Sequential(layers)

    def layer(self, *parts: nn.Module) -> nn.Sequential:
        norm = [nn.BatchNorm2d(self.width)] if self.batch_norm else []
        return nn.Sequential(*parts, *norm, nn.ReLU())


class FirstMap(nn.ConvTranspose2d):
    """A transposed convolution of a 1x1 map: every weight meets one input, so it is a matrix product."""

    def __init__(self, code: int, width: int, size: tuple[int, ...]) -> None:
        super().__init__(code, width, (size[0], size[1]))

    def forward(
        self, code: Float[Tensor, "n code"], output_size: list[int] | None = None
    ) -> Float[Tensor, "n width h w"]:
        rows, columns = self.kernel_size
        maps = rearrange(code @ self.weight.flatten(1), "n (c h w) -> n c h w", h=rows, w=columns)
        assert self.bias is not None
        return maps + self.bias[:, None, None]


class Crop(nn.Module):
    """The middle of a map that came out larger than the image."""

    def __init__(self, size: list[int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, maps: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h2 w2"]:
        height, width = self.size
        top, left = (maps.shape[2] - height) // 2, (maps.shape[3] - width) // 2
        return maps[:, :, top : top + height, left : left + width]
