"""Your own decoder, to be diagnosed by composcope: any module that maps codes to images.

composcope diagnose examples/own_decoder.py:make_decoder --spec examples/own_decoder.toml --pick 0
composcope diagnose examples/own_decoder.py:make_sequential --spec examples/own_decoder.toml
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIZE = 16
CODE = 2 * SIZE


class Generator(nn.Module):
    """The decoder of a variational autoencoder: a mean image and a log variance, with batch norm and in-place ReLUs."""

    def __init__(self, code: int = CODE, width: int = 16) -> None:
        super().__init__()
        self.project = nn.Linear(code, width * (SIZE // 4) ** 2)
        self.up1 = self.up(width)
        self.up2 = self.up(width)
        self.mix = nn.Conv2d(width, width, 3, padding=1)
        self.mean = nn.Conv2d(width, 1, 3, padding=1)
        self.log_variance = nn.Conv2d(width, 1, 3, padding=1)

    @staticmethod
    def up(width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.ConvTranspose2d(width, width, 4, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Dropout(0.1),
        )

    def forward(self, code: Tensor) -> tuple[Tensor, Tensor]:
        maps = F.relu(self.project(code)).view(len(code), -1, SIZE // 4, SIZE // 4)
        maps = self.up2(self.up1(maps))
        maps = maps + F.relu(self.mix(maps))
        return torch.sigmoid(self.mean(maps)), self.log_variance(maps)


def make_decoder() -> nn.Module:
    """Returns (mean, log variance): `--pick 0` selects the mean as the image."""
    return Generator()


def make_sequential() -> nn.Module:
    """A plain nn.Sequential, whose layers are named by their index."""
    return nn.Sequential(
        nn.Linear(CODE, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, SIZE * SIZE),
        nn.Sigmoid(),
        nn.Unflatten(1, (1, SIZE, SIZE)),
    )
