"""Conditional flow matching: a small U-Net draws an image from noise in several steps, each told the code."""

import math
from collections import OrderedDict
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import MAX_WIDTH, Codes, Decoder, Images, ImageShape
from composcope.decoders.cnn import FirstMap
from composcope.decoders.spatial_broadcast import Broadcast
from composcope.fastconv import Conv3x3, Upsample2x

# Of the time t in 0..1: sines and cosines of so many harmonics of a half turn.
HARMONICS = 4


class UNet(nn.Module):
    """An image, a time in 0..1 and maps of the image's size -> an image."""

    def __init__(self, channels: int, maps: int, width: int) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1 + 2 * HARMONICS, 2 * width), nn.ReLU(), nn.Linear(2 * width, 2 * width))
        self.enter = Conv3x3(channels + maps, width, relu=True)
        self.down1 = Halve(width, 2 * width)
        self.down2 = Halve(2 * width, 2 * width)
        self.middle = Conv3x3(2 * width, 2 * width, relu=True)
        self.up2 = Upsample2x(2 * width, 2 * width, relu=True)
        self.join2 = Conv3x3(4 * width, 2 * width, relu=True)
        self.up1 = Upsample2x(2 * width, width, relu=True)
        self.join1 = Conv3x3(2 * width, width, relu=True)
        self.leave = Conv3x3(width, channels)

    def forward(self, images: Images, time: Float[Tensor, "n"], maps: Float[Tensor, "n maps height width"]) -> Images:
        whole = self.enter(torch.cat([images, maps], 1))
        half = self.down1(whole)
        quarter = self.down2(half) + self.time(time_features(time))[:, :, None, None]
        half = self.join2(torch.cat([half, cropped(self.up2(self.middle(quarter)), half)], 1))
        whole = self.join1(torch.cat([whole, cropped(self.up1(half), whole)], 1))
        image: Tensor = self.leave(whole)
        return image


class Halve(nn.Sequential):
    """A 3x3 convolution of stride 2 with ReLU: half the size, rounded up."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU())


def time_features(time: Float[Tensor, "n"]) -> Float[Tensor, "n features"]:
    """t, and sin(pi k t) and cos(pi k t) for k = 1 .. HARMONICS."""
    phases = time[:, None] * math.pi * torch.arange(1, HARMONICS + 1, dtype=time.dtype, device=time.device)
    return torch.cat([time[:, None], phases.sin(), phases.cos()], 1)


def cropped(maps: Float[Tensor, "n c h w"], like: Float[Tensor, "n d h2 w2"]) -> Float[Tensor, "n c h2 w2"]:
    """The maps without the last row or column that doubling a size rounded up has added."""
    return maps[:, :, : like.shape[2], : like.shape[3]]


@register("flow_matching")
class FlowMatching(Decoder):
    """A small U-Net that predicts the image from a mixture of image and noise, its share t, and maps of the code.

    Trained on |U((1 - t) e + t x, t, maps(z)) - x|^2 with noise e and a uniform t. An image is drawn in `steps` Euler
    steps of dx / dt = (U(x, t, maps(z)) - x) / (1 - t), from noise at t = 0 to the image at t = 1.

    - `width`: channels of the U-Net, and of the maps: every code unit has a learned map of the image's size in each.
    - `coordinates`: instead of learned maps, the code repeated at every pixel and the pixel's coordinates, as in
      `SpatialBroadcast`.
    - `noise`: the seed of the noise that all images are drawn from, so that the same code gives the same image.
    """

    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 16
    steps: Annotated[int, Field(ge=1, le=1000)] = 15
    coordinates: bool = False
    noise: Annotated[int, Field(ge=0, lt=2**63)] = 0

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        units, size = sum(code_sizes), image_shape[1:]
        maps = Broadcast(*size) if self.coordinates else FirstMap(units, self.width, size)
        unet = UNet(image_shape[0], units + 2 if self.coordinates else self.width, self.width)
        noise = torch.randn(1, *image_shape, generator=torch.Generator().manual_seed(self.noise))
        return nn.Sequential(OrderedDict(maps=maps, image=Sampler(unet, noise, self.steps)))

    def loss(self, module: nn.Module, codes: Codes, images: Images, rng: torch.Generator) -> Float[Tensor, ""]:
        sampler = module.get_submodule("image")
        assert isinstance(sampler, Sampler)
        time = torch.rand(len(images), generator=rng).to(images)
        noise = torch.randn(images.shape, generator=rng).to(images)
        share = time[:, None, None, None]
        predicted = sampler.unet((1 - share) * noise + share * images, time, module.get_submodule("maps")(codes))
        return nn.functional.mse_loss(predicted, images)


class Sampler(nn.Module):
    """Maps of the code -> an image, in Euler steps from the same noise for every code."""

    noise: Tensor

    def __init__(self, unet: nn.Module, noise: Float[Tensor, "1 channels height width"], steps: int) -> None:
        super().__init__()
        self.unet, self.steps = unet, steps
        # Stored with the weights: another version of PyTorch may draw other numbers from the same seed.
        self.register_buffer("noise", noise)

    def forward(self, maps: Float[Tensor, "n maps height width"]) -> Images:
        images = self.noise.expand(len(maps), -1, -1, -1)
        for step in range(self.steps):
            time = maps.new_full((len(maps),), step / self.steps)
            # A step of 1 / steps along (clean - image) / (1 - t), where 1 - t is (steps - step) / steps.
            images = images + (self.unet(images, time, maps) - images) / (self.steps - step)
        return images
