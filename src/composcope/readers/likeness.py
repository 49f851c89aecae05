"""Whether an image is like a real one: or blank, noise, a superposition, far from all real images, or a copy of one."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.readers.networks import (
    BATCH,
    CHUNK,
    Network,
    OnStep,
    Scale,
    augmented,
    blurred,
    fineness,
    train_network,
)
from composcope.tasks.base import Images

REAL, BLANK, NOISE, SUPERPOSED = range(4)
CLASSES = ("real", "blank", "other", "superposer")
"""What an image may be, as the verdict names it; all but "real" show no combination."""

# So many real images, changed as in training, may be called unreal: the price of recognising what is.
FALSE_ALARMS = 0.02
RANGES, COPIES = 8, 3  # of fineness; changed copies of each real image from which thresholds come
# An image is far from all real ones if its nearest is this many times as far as that of nearly any real image.
FAR = 1.5
# A copy is nearer to a training image than all but this share of real images are to their nearest.
CLOSE = 0.01
MAX_COMPARED, MAX_TESTED = 20_000, 2_000  # real images that others are compared with, and that thresholds come from
CANDIDATES = 12  # images from which the second of a superposition is chosen
SAME = 1e-5  # cosines nearer to 1 are those of an image with itself


class Likeness:
    """A network that tells real images from what is none, and distances to real images in the space of its features.

    - `thresholds`: of the score of "real" over the best of the others, below which an image is not real. One for each
      range of `fineness`: what is blurred or noisy is compared with real images that are as blurred or noisy.
    - `close`, `far`: distances to the nearest image below which one is a copy, above which it is unlike all.
    """

    def __init__(
        self,
        network: Network,
        scale: Scale,
        seen: Float[Tensor, "seen channels height width"],
        fresh: Float[Tensor, "fresh channels height width"],
        rng: torch.Generator,
    ) -> None:
        """- `seen`: real images that the generator may have been trained on; `fresh`: real ones new to the network."""
        self.network, self.scale = network, scale
        self.seen = self._features(seen[torch.randperm(len(seen), generator=rng)[:MAX_COMPARED]])
        scaled = torch.cat([scale(some) for some in fresh[:MAX_TESTED].split(CHUNK)])
        changed = torch.cat([scaled, *(augmented(scaled, rng) for _ in range(COPIES))])
        self.edges, self.thresholds = self._limits(changed)
        self.close = torch.quantile(self._nearest_other(self._scaled_features(scaled)), CLOSE).item()
        self.far = FAR * self._nearest_other(self._scaled_features(changed)).max().item()

    @torch.no_grad()
    def __call__(self, images: Images) -> tuple[Int[Tensor, "n"], Bool[Tensor, "n"]]:
        """For each image its position in `CLASSES`, and whether it is a copy of a seen image."""
        kinds, copies = [], []
        for some in images.split(CHUNK):
            scaled = self.scale(some)
            scores = self.network(scaled)
            nearest = self._nearest(self._scaled_features(scaled))
            limit = self.thresholds[torch.bucketize(fineness(scaled), self.edges)]
            unreal = scores[:, REAL] - scores[:, 1:].amax(1) < limit
            kind = torch.where(unreal, 1 + scores[:, 1:].argmax(1), REAL)
            kinds.append(torch.where((kind == REAL) & (nearest > self.far), NOISE, kind))
            copies.append(nearest < self.close)
        return torch.cat(kinds), torch.cat(copies)

    def _limits(self, real: Images) -> tuple[Float[Tensor, "edges"], Float[Tensor, "ranges"]]:
        """The edges between ranges of fineness, and the threshold in each."""
        fine, margins = fineness(real), self._margins(real)
        ranges = max(1, min(RANGES, len(real) // 50))
        edges = torch.quantile(fine, torch.linspace(0, 1, ranges + 1)[1:-1])
        within = torch.bucketize(fine, edges)
        each = [torch.quantile(margins[within == number], FALSE_ALARMS).item() for number in range(ranges)]
        return edges, torch.tensor(each).clamp(max=0.0)

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
        return torch.cat([_distance((some @ self.seen.T).amax(1)) for some in features.split(CHUNK)])

    def _nearest_other(self, features: Float[Tensor, "n features"]) -> Float[Tensor, "n"]:
        """The same for real images, some of which are seen ones: themselves do not count."""
        nearest = []
        for some in features.split(CHUNK):
            cosines = some @ self.seen.T
            cosines[cosines > 1 - SAME] = -1.0
            nearest.append(_distance(cosines.amax(1)))
        return torch.cat(nearest)


def train_likeness(
    images: Images,
    index: Int[Tensor, "n factors"],
    seen: Float[Tensor, "seen channels height width"],
    fresh: Float[Tensor, "fresh channels height width"],
    seed: int,
    on_step: OnStep,
) -> Likeness:
    """The network and its thresholds.

    - `images`: real ones to train on; `index`: the positions of their factors' values. `seen`, `fresh`: see `Likeness`.
    """
    scale = Scale.of(images)
    scaled = torch.cat([scale(some) for some in images.split(CHUNK)])
    # Blank images and noise are easily told from real ones; superpositions are not.
    few, many = BATCH // 8, 3 * BATCH // 8
    target = torch.arange(4).repeat_interleave(torch.tensor([many, few, few, many]))
    offsets = torch.zeros(len(target), 4)

    def batch(rng: torch.Generator) -> tuple[Images, Tensor, Tensor]:
        rows = torch.randint(len(scaled), (many + 2 * few,), generator=rng)
        parts = [
            scaled[rows[:many]],
            blanks(scaled[rows[many : many + few]], rng),
            noise(scaled[rows[many + few :]], rng),
            superpositions(scaled, index, many, rng),
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
    count, _, height, width = images.shape
    white = 0.5 + (0.15 + 0.35 * torch.rand(count, 1, 1, 1, generator=rng)) * torch.randn(images.shape, generator=rng)
    coarse = blurred(torch.rand(images.shape, generator=rng), 1.0) if min(height, width) >= 4 else white
    coarse = (coarse - 0.5) * (2 + 2 * torch.rand(count, 1, 1, 1, generator=rng)) + images.mean((2, 3), keepdim=True)
    pixels = images.flatten(2)[:, :, torch.randperm(height * width, generator=rng)].reshape(images.shape)
    rows = images[:, :, torch.randperm(height, generator=rng)]
    kinds = torch.stack([white, coarse, pixels, rows])
    return kinds[torch.randint(4, (count,), generator=rng), torch.arange(count)]


def superpositions(
    images: Images, index: Int[Tensor, "n factors"], count: int, rng: torch.Generator
) -> Float[Tensor, "count channels height width"]:
    """Means, sums, and the lighter or darker of two or three real images that differ in two factors or more.

    A decoder that superposes what it has seen mixes images that each share all but one factor with what was asked for:
    two of these differ in two factors. Three quarters of the pairs do so, if the images have such pairs.
    """
    rows = torch.randint(len(images), (3, count), generator=rng)
    factors = index.shape[1]
    wanted = torch.full((count,), min(2, factors))
    wanted[3 * count // 4 :] = torch.randint(1, factors + 1, (count - 3 * count // 4,), generator=rng)
    candidates = torch.randint(len(images), (CANDIDATES, count), generator=rng)
    differ = (index[rows[0]][None] != index[candidates]).sum(2)
    rows[1] = candidates.gather(0, ((differ - wanted).abs() + differ.eq(0) * factors).argmin(0)[None])[0]
    first, second, third = images[rows]
    share = 0.35 + 0.3 * torch.rand(count, 1, 1, 1, generator=rng)
    mixed = share * first + (1 - share) * second
    three = (first + second + third) / 3
    border = torch.cat([first[:, :, 0], first[:, :, -1]], 2).median(2).values[:, :, None, None]
    kinds = torch.stack([mixed, mixed, three, torch.maximum(first, second), first + second - border])
    return kinds[torch.randint(len(kinds), (count,), generator=rng), torch.arange(count)]


def _distance(cosine: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    return (2 - 2 * cosine).clamp(min=0).sqrt()
