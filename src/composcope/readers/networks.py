"""The network of every reader, how it is trained, and what is done to images so that defects do not confuse it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean as mean
from typing import Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, conv2d, pad

from composcope.tasks.base import Images

# Larger images are averaged down to this side: readers of whole objects need no more, and take a tenth of the time.
MAX_SIDE = 64
# A network ends with maps of at most this side, so that it can still tell where something is.
LAST_SIDE = 7
CHUNK = 256  # images at a time
BATCH, RATE = 64, 5e-3
# Training stops once the augmented batches of the last steps are classified this well, or no better than those of as
# many steps before; then the rate falls.
ENOUGH, RECENT, LAST_STEPS = 0.985, 30, 60
PATIENCE, LEAST_GAIN = 150, 0.005
MAX_STEPS = 1200
STANDARD_STEPS = 250  # what is expected before anything is known, for the time left

# What happens to every training image. Generators blur, add noise and fade; their images must be readable all the same.
MAX_BLUR = 0.07  # standard deviation, as a share of the image's side
MAX_NOISE = 0.15
CONTRAST, BRIGHTNESS, CHANNELS = (0.6, 1.25), 0.1, 0.1

OnStep = Callable[[int, int], None]
"""Called after every step with the steps done and those expected in all."""
Batch = Callable[[torch.Generator], tuple[Images, Int[Tensor, "n"], Float[Tensor, "n classes"]]]
"""Draws images, their classes, and what is added to each class's score: 0, or -inf where the class does not compete."""


@dataclass(frozen=True)
class Scale:
    """The range of the real images' pixels, and the side to which they are reduced."""

    low: float
    high: float
    size: tuple[int, int]

    @classmethod
    def of(cls, images: Images) -> Self:
        low, high = images.min().item(), images.max().item()
        shrink = max(1.0, max(images.shape[2:]) / MAX_SIDE)
        height, width = (max(1, round(side / shrink)) for side in images.shape[2:])
        return cls(low, high if high > low else low + 1, (height, width))

    def __call__(self, images: Images) -> Float[Tensor, "n channels rows columns"]:
        """The images in 0..1 and at most `MAX_SIDE` wide; what is far out of the range is cut off."""
        scaled = ((images.float() - self.low) / (self.high - self.low)).clamp(-0.25, 1.25)
        return scaled if images.shape[2:] == self.size else adaptive_avg_pool2d(scaled, self.size)


def blurred(images: Images, sigma: float) -> Images:
    """Convolved with a Gaussian of this standard deviation in pixels; the edges continue outwards."""
    reach = max(1, round(2.5 * sigma))
    weights = torch.exp(-(torch.arange(-reach, reach + 1).float() ** 2) / (2 * sigma**2))
    weights = weights / weights.sum()
    channels = images.shape[1]
    kernel = weights.expand(channels, 1, -1)
    wide = pad(images, (reach, reach, reach, reach), mode="replicate")
    return conv2d(conv2d(wide, kernel[..., None, :], groups=channels), kernel[..., None], groups=channels)


def augmented(images: Images, rng: torch.Generator) -> Images:
    """Images with other contrast, brightness and slightly other channels, half of them blurred, half noisy.

    A third stay as they are: readers must be at their best on images without defects.
    """
    count, channels, height, width = images.shape
    low, high = CONTRAST
    gain = low + (high - low) * torch.rand(count, 1, 1, 1, generator=rng)
    gain = gain * (1 + CHANNELS * (2 * torch.rand(count, channels, 1, 1, generator=rng) - 1))
    shift = BRIGHTNESS * (2 * torch.rand(count, 1, 1, 1, generator=rng) - 1)
    middle = images.mean((1, 2, 3), keepdim=True)
    changed = (images - middle) * gain + middle + shift
    sigma = 0.3 + MAX_BLUR * min(height, width) * torch.rand((), generator=rng).item()
    some = torch.randperm(count, generator=rng)[: count // 2]
    if min(height, width) >= 4:
        changed[some] = blurred(changed[some], sigma)
    noisy = torch.rand(count, 1, 1, 1, generator=rng) < 0.5
    spread = MAX_NOISE * torch.rand(count, 1, 1, 1, generator=rng) * noisy
    changed = changed + spread * torch.randn(changed.shape, generator=rng)
    return torch.where(torch.rand(count, 1, 1, 1, generator=rng) < 1 / 3, images, changed)


def fineness(images: Images) -> Float[Tensor, "n"]:
    """How much neighbouring pixels differ, relative to how much all pixels do: low if blurred, high if noisy."""
    across = (images[..., 1:] - images[..., :-1]).square().mean((1, 2, 3))
    down = (images[..., 1:, :] - images[..., :-1, :]).square().mean((1, 2, 3))
    return ((across + down) / images.var((1, 2, 3)).clamp(min=1e-6)).clamp(min=1e-9).log()


class Network(nn.Module):
    """Convolutions that halve the image until it is small, one hidden layer, and a score for each class."""

    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        channels, height, width = shape
        blocks: list[nn.Module] = []
        maps = 16
        while max(height, width) > LAST_SIDE or not blocks:
            blocks += [nn.Conv2d(channels, maps, 3, padding=1), nn.BatchNorm2d(maps), nn.ReLU()]
            blocks.append(nn.MaxPool2d(2, ceil_mode=True))
            channels, maps = maps, min(64, 2 * maps)
            height, width = -(-height // 2), -(-width // 2)
        blocks += [nn.Conv2d(channels, maps, 3, padding=1), nn.BatchNorm2d(maps), nn.ReLU()]
        channels = maps
        self.maps = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, 64), nn.ReLU())
        self.scores = nn.Linear(64, classes)

    def forward(self, images: Images) -> Float[Tensor, "n classes"]:
        scores: Tensor = self.scores(self.head(self.maps(images)))
        return scores

    def features(self, images: Images) -> Float[Tensor, "n features"]:
        """The last maps, each as a vector of length 1: two images are as alike as the angle between theirs is small."""
        return nn.functional.normalize(self.maps(images).flatten(1), dim=1)


def train_network(
    shape: tuple[int, int, int], classes: int, batch: Batch, rng: torch.Generator, on_step: OnStep
) -> Network:
    """A network trained until it classifies augmented batches well, or for `MAX_STEPS` steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (), generator=rng)))
        network = Network(shape, classes)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01, fused=True)
    network.train()
    right: list[float] = []
    last = MAX_STEPS
    while len(right) < last:
        images, target, offsets = batch(rng)
        optimizer.zero_grad()
        scores = network(augmented(images, rng)) + offsets
        nn.functional.cross_entropy(scores, target).backward()
        for group in optimizer.param_groups:
            group["lr"] = RATE if len(right) < last - LAST_STEPS else RATE / 10
        optimizer.step()
        right.append((scores.argmax(1) == target).float().mean().item())
        done = len(right)
        if last == MAX_STEPS and _enough(right):
            last = min(MAX_STEPS, done + LAST_STEPS)
        on_step(done, last if last < MAX_STEPS else max(STANDARD_STEPS, min(2 * done, MAX_STEPS)))
    return network.eval()


def _enough(right: Sequence[float]) -> bool:
    """Whether the shares of each step's batch that were right have stopped rising, or are high."""
    if len(right) < 2 * RECENT:
        return False
    if mean(right[-RECENT:]) >= ENOUGH:
        return True
    before = right[-2 * PATIENCE : -PATIENCE]
    return len(before) == PATIENCE and mean(right[-PATIENCE:]) - mean(before) < LEAST_GAIN
