"""A small U-Net for images of any size: two halvings and back, with skip connections."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.decoders.base import Images
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
