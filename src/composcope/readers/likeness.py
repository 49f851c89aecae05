"""Whether an image is like a real one: or blank, noise, a superposition, far from all real images, or a copy of one."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.readers.networks import BATCH, CHUNK, Network, OnStep, Scale, augmented, blurred, train_network
from composcope.tasks.base import Images

REAL, BLANK, NOISE, SUPERPOSED = range(4)
CLASSES = ("real", "blank", "other", "superposer")
"""What an image may be, as the verdict names it; all but "real" show no combination."""

# So many real images, changed as in training, may be called unreal: the price of recognising what is.
FALSE_ALARMS = 0.01
# An image is far from all real ones if its nearest is this many times as far as that of nearly any real image.
FAR = 1.5
# A copy is nearer to a training image than all but this share of real images are to their nearest.
CLOSE = 0.01
MAX_COMPARED = 20_000  # real images that others are compared with


class Likeness:
    """A network that tells real images from what is none, and distances to real images in the space of its features.

    - `threshold`: of the score of "real" over the best of the others, below which an image is not real.
    - `close`, `far`: distances to the nearest image below which one is a copy, above which it is unlike all.
    """

    def __init__(self, network: Network, scale: Scale, seen: Images, fresh: Images, rng: torch.Generator) -> None:
        """- `seen`: real images that the generator may have been trained on; `fresh`: other real images."""
        self.network, self.scale = network, scale
        self.seen = self._features(seen[_some(len(seen), MAX_COMPARED, rng)])
        scaled = torch.cat([scale(some) for some in fresh.split(CHUNK)])
        changed = torch.cat([scaled, augmented(scaled, rng)])
        margins = self._margins(changed)
        self.threshold = min(0.0, torch.quantile(margins, FALSE_ALARMS).item())
        plain = self._nearest(self._scaled_features(scaled))
        self.close = torch.quantile(plain, CLOSE).item()
        self.far = FAR * self._nearest(self._scaled_features(changed)).max().item()

    @torch.no_grad()
    def __call__(self, images: Images) -> tuple[Int[Tensor, "n"], Bool[Tensor, "n"]]:
        """For each image its position in `CLASSES`, and whether it is a copy of a seen image."""
        kinds, copies = [], []
        for some in images.split(CHUNK):
            scaled = self.scale(some)
            scores = self.network(scaled)
            nearest = self._nearest(self._scaled_features(scaled))
            unreal = scores[:, REAL] - scores[:, 1:].amax(1) < self.threshold
            kind = torch.where(unreal, 1 + scores[:, 1:].argmax(1), REAL)
            kinds.append(torch.where((kind == REAL) & (nearest > self.far), NOISE, kind))
            copies.append(nearest < self.close)
        return torch.cat(kinds), torch.cat(copies)

    @torch.no_grad()
    def _margins(self, scaled: Images) -> Float[Tensor, "n"]:
        scores = torch.cat([self.network(some) for some in scaled.split(CHUNK)])
        return scores[:, REAL] - scores[:, 1:].amax(1)

    def _features(self, images: Images) -> Float[Tensor, "n features"]:
        return torch.cat([self._scaled_features(self.scale(some)) for some in images.split(CHUNK)])

    @torch.no_grad()
    def _scaled_features(self, scaled: Images) -> Float[Tensor, "n features"]:
        return torch.cat([self.network.features(some) for some in scaled.split(CHUNK)])

    def _nearest(self, features: Float[Tensor, "n features"]) -> Float[Tensor, "n"]:
        """The distance to the nearest seen image."""
        return torch.cat([(2 - 2 * (some @ self.seen.T).amax(1)).clamp(min=0) for some in features.split(CHUNK)])


def train_likeness(
    images: Images,
    combination: Int[Tensor, "n"],
    seen: Images,
    fresh: Images,
    seed: int,
    on_step: OnStep,
) -> Likeness:
    """- `images`: real ones to train on, with the number of each one's combination; `seen`, `fresh`: see `Likeness`."""
    scale = Scale.of(images)
    scaled = torch.cat([scale(some) for some in images.split(CHUNK)])
    quarter = BATCH // 4
    target = torch.arange(4).repeat_interleave(quarter)
    offsets = torch.zeros(len(target), 4)

    def batch(rng: torch.Generator) -> tuple[Images, Tensor, Tensor]:
        rows = torch.randint(len(scaled), (3, quarter), generator=rng)
        parts = [
            scaled[rows[0]],
            blanks(scaled[rows[1]], rng),
            noise(scaled[rows[2]], rng),
            superpositions(scaled, combination, quarter, rng),
        ]
        return torch.cat(parts), target, offsets

    rng = torch.Generator().manual_seed(seed * 1009 + 997)
    shape = (scaled.shape[1], scaled.shape[2], scaled.shape[3])
    network = train_network(shape, 4, batch, rng, on_step)
    return Likeness(network, scale, seen, fresh, rng)


def blanks(images: Images, rng: torch.Generator) -> Images:
    """As many images of nothing: a real image's border colour, its mean, or any one value, everywhere."""
    count, channels = images.shape[:2]
    border = torch.cat([images[:, :, [0, -1]].flatten(2), images[:, :, :, [0, -1]].flatten(2)], 2).median(2).values
    colour = torch.stack(
        [
            border,
            images.mean((2, 3)),
            torch.rand(count, 1, generator=rng).expand(count, channels),
            torch.rand(count, channels, generator=rng),
        ]
    )
    chosen = torch.randint(4, (count,), generator=rng)
    return colour[chosen, torch.arange(count)][:, :, None, None].expand(images.shape).clone()


def noise(images: Images, rng: torch.Generator) -> Images:
    """As many images of noise: white, coarse, or a real image's pixels or its rows in another order."""
    count, channels, height, width = images.shape
    white = 0.5 + (0.15 + 0.35 * torch.rand(count, 1, 1, 1, generator=rng)) * torch.randn(images.shape, generator=rng)
    coarse = blurred(torch.rand(images.shape, generator=rng), 1.0) if min(height, width) >= 4 else white
    coarse = (coarse - 0.5) * (2 + 2 * torch.rand(count, 1, 1, 1, generator=rng)) + images.mean((2, 3), keepdim=True)
    pixels = images.flatten(2)[:, :, torch.randperm(height * width, generator=rng)].reshape(images.shape)
    rows = images[:, :, torch.randperm(height, generator=rng)]
    kinds = torch.stack([white, coarse, pixels, rows])
    return kinds[torch.randint(4, (count,), generator=rng), torch.arange(count)]


def superpositions(
    images: Images, combination: Int[Tensor, "n"], count: int, rng: torch.Generator
) -> Images:
    """Sums, weighted means, and the lighter or darker of two or three real images of different combinations."""
    rows = torch.randint(len(images), (3, count), generator=rng)
    for _ in range(3):  # almost always of different combinations; the rest do little harm
        same = combination[rows[0]] == combination[rows[1]]
        rows[1, same] = torch.randint(len(images), (int(same.sum()),), generator=rng)
    first, second, third = images[rows]
    share = 0.35 + 0.3 * torch.rand(count, 1, 1, 1, generator=rng)
    mixed = share * first + (1 - share) * second
    three = (first + second + third) / 3
    border = torch.cat([first[:, :, 0], first[:, :, -1]], 2).median(2).values[:, :, None, None]
    added = first + second - border
    kinds = torch.stack([mixed, three, torch.maximum(first, second), torch.minimum(first, second), added])
    return kinds[torch.randint(5, (count,), generator=rng), torch.arange(count)]


def _some(count: int, most: int, rng: torch.Generator) -> Int[Tensor, "rows"]:
    return torch.randperm(count, generator=rng)[:most]
