"""Controls that read images: the reverse map, and an autoencoder whose bottleneck is the code."""

from collections import OrderedDict
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import MAX_WIDTH, Codes, Decoder, Images, ImageShape, check_network


@register("image_encoder")
class ImageEncoder(Decoder):
    """A control that learns the reverse map, images to codes: two convolutions of stride 2 and a linear layer."""

    draws: ClassVar[bool] = False

    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 32

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        channels, height, width = image_shape
        cells = -(-height // 4) * -(-width // 4)  # each convolution of stride 2 halves the size, rounded up
        layers = OrderedDict[str, nn.Module]()
        layers["conv1"] = nn.Sequential(nn.Conv2d(channels, self.width, 3, stride=2, padding=1), nn.ReLU())
        layers["conv2"] = nn.Sequential(nn.Conv2d(self.width, self.width, 3, stride=2, padding=1), nn.ReLU())
        layers["code"] = nn.Sequential(nn.Flatten(), nn.Linear(self.width * cells, sum(code_sizes)))
        return nn.Sequential(layers)

    def pairs(self, codes: Codes, images: Images) -> tuple[Tensor, Tensor]:
        return images, codes

    def drawer(self, module: nn.Module) -> None:
        return None

    def reader(self, module: nn.Module) -> nn.Module:
        return module


@register("autoencoder")
class Autoencoder(Decoder):
    """An image encoder and a decoder trained together, with the disentangled code as the bottleneck.

    The loss is the mean squared error over the units of the bottleneck and the pixels of the image together.
    """

    decoder: Decoder
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 32

    def __post_init__(self) -> None:
        check_network(self.decoder)

    @property
    def embeds(self) -> bool:  # type: ignore[override]
        return self.decoder.embeds

    @property
    def polarity(self) -> Literal["dark", "bright"] | None:  # type: ignore[override]
        return self.decoder.polarity

    def check(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> None:
        self.decoder.check(code_sizes, image_shape)

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Module:
        encoder = ImageEncoder(self.width).build(code_sizes, image_shape)
        return Bottleneck(encoder, self.decoder.build(code_sizes, image_shape))

    def pairs(self, codes: Codes, images: Images) -> tuple[Tensor, Tensor]:
        # One target for both parts, laid out like Bottleneck's output, so that the ordinary loss trains them together.
        return images, torch.cat([codes, images.flatten(1)], 1)

    def drawer(self, module: nn.Module) -> nn.Module:
        return module.get_submodule("decoder")

    def reader(self, module: nn.Module) -> nn.Module:
        return module.get_submodule("encoder")


class Bottleneck(nn.Module):
    """Images -> the code and the image reconstructed from it, flattened and concatenated."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, images: Images) -> Float[Tensor, "n code_and_pixels"]:
        codes = self.encoder(images)
        return torch.cat([codes, self.decoder(codes).flatten(1)], 1)
