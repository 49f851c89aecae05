"""Compositional consistency: what is drawn for a held-out code must be read as that code, by a frozen reader."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from composcope.components import register
from composcope.decoders.base import Codes, Images
from composcope.errors import BadInput
from composcope.fastconv import Conv3x3
from composcope.penalties.base import Batch, DrawingPenalty, Step, TrainingData, Weight
from composcope.randomness import seeded

log = logging.getLogger(__name__)

# Of the network that finds out what is in an image, if pooling the image itself does not tell.
WIDTH, STEPS, BATCH, RATE = 16, 400, 32, 5e-3
# The doubt about a factor, from 0 to 1: above the first, the network is trained; above the second, it cannot be read.
UNSURE, UNREADABLE = 0.25, 0.5
# By how much the right value must be nearer than any other, so that rounding does not tell values apart.
MARGIN = 0.01
# A factor with more distinct codes is not a list of values; its training set is drawn from a continuum.
MAX_VALUES = 1024
Pooled = Float[Tensor, "n _features"]  # each way has its own number of features
# How sharp the pooling is: the extreme itself would pass its gradient to one pixel only, and learning gets stuck.
SHARPNESS = 10.0


@dataclass(frozen=True)
class Reading:
    """One factor: its values, and what images with each of them look like when pooled in one way.

    - `codes`: the factor's distinct codes in the training set, that of an absent factor included if it occurs.
    - `way`: which of `AxisReader.pooled` it is read from, None if from none.
    - `means`: the mean pooled image of each value. `scale`: the mean variance of its features over all images.
    """

    codes: Float[Tensor, "values size"]
    way: int | None
    means: Float[Tensor, "values features"]
    scale: Float[Tensor, ""]

    def index(self, codes: Float[Tensor, "n size"]) -> Int[Tensor, "n"]:
        """Which value each code is: the nearest."""
        return torch.cdist(codes, self.codes).argmin(1)


class AxisReader:
    """Reads a factor's value as the one whose mean pooled image is nearest.

    Pooled over rows, by soft maximum and minimum, an image says at which column something is, whatever its row; so x is
    read the same at every y, also together with a y that it was not seen with. Pooled over columns it says the row,
    pooled over both axes how bright it is, and the maps of a small network, pooled over both axes, what it is.
    """

    def __init__(self, readings: Sequence[Reading], features: nn.Module | None = None) -> None:
        self.readings, self.features = readings, features

    def pooled(self, images: Images) -> list[Pooled]:
        """The image over rows, over columns and over both; the network's maps over both, if there is a network."""
        ways = [_extremes(images, axes) for axes in ((2,), (3,), (2, 3))]
        return ways if self.features is None else [*ways, _extremes(self.features(images), (2, 3))]

    def distances(self, images: Images) -> list[Float[Tensor, "n values"]]:
        """For each factor that can be read: mean over features of |pooled - mean|^2 / scale, for each value."""
        ways = self.pooled(images)
        return [
            (ways[factor.way][:, None] - factor.means).square().mean(2) / factor.scale
            for factor in self.readings
            if factor.way is not None
        ]

    def read(self, images: Images) -> list[Int[Tensor, "n"]]:
        """For each factor that can be read, which value each image shows."""
        return [distances.argmin(1) for distances in self.distances(images)]


def fitted_reader(codes: Codes, images: Images, code_sizes: Sequence[int], rng: torch.Generator) -> AxisReader:
    """A reader made from these images and their codes."""
    parts = codes.split(list(code_sizes), 1)
    plain = AxisReader([])
    fits = [_fit(part, plain.pooled(images)) for part in parts]
    if max(doubt for doubt, _ in fits) > UNSURE:
        unsure = [part for part, (doubt, _) in zip(parts, fits, strict=True) if doubt > UNSURE]
        log.info("consistency: training a reader of %d factors on %d images", len(unsure), len(images))
        plain.features = _trained_features(unsure, images, rng)
        with torch.no_grad():
            fits = [_fit(part, plain.pooled(images)) for part in parts]
    return AxisReader([reading for _, reading in fits], plain.features)


def _extremes(maps: Float[Tensor, "n channels height width"], axes: tuple[int, ...]) -> Pooled:
    """The soft maximum and the soft minimum over these axes: log sum exp(s m) / s, and that of -m with its sign."""
    ends = [sign * torch.logsumexp(sign * SHARPNESS * maps, axes) / SHARPNESS for sign in (1, -1)]
    return torch.cat([end.flatten(1) for end in ends], 1)


def _values(codes: Float[Tensor, "n size"]) -> tuple[Float[Tensor, "values size"], Int[Tensor, "n"]]:
    """The distinct codes of a factor, and which of them each code is."""
    values, index = codes.unique(dim=0, return_inverse=True)
    if len(values) > MAX_VALUES:
        raise BadInput(
            f"consistency: a factor has {len(values)} distinct codes in the training set, and a reader tells at most "
            f"{MAX_VALUES} values apart; use a task whose factors have listed values"
        )
    return values, index


def _fit(codes: Float[Tensor, "n size"], ways: Sequence[Pooled]) -> tuple[float, Reading]:
    """The doubt about a factor and its reading, in the way of pooling in which the doubt is least.

    The doubt is the larger of two shares: of variance that the value does not explain, and of images not clearly read.
    """
    values, index = _values(codes)
    members = one_hot(index, len(values)).to(ways[0])
    best, kept = 1.0, Reading(values, None, values[:, :0], values.new_ones(()))
    for way, pooled in enumerate(ways):
        means = members.T @ pooled / members.sum(0)[:, None]
        scale = pooled.var(0, correction=0).mean()
        unexplained = (pooled - means[index]).square().mean() / scale.clamp(min=1e-12)
        distances = torch.cdist(pooled, means).square() / (scale.clamp(min=1e-12) * pooled.shape[1])
        right = distances.gather(1, index[:, None])[:, 0]
        others = distances.scatter(1, index[:, None], torch.inf).amin(1)
        misread = (others < right + MARGIN).float().mean()
        doubt = max(float(unexplained), float(misread))
        if scale > 1e-6 and doubt < best:
            best, kept = doubt, Reading(values, way if doubt < UNREADABLE else None, means, scale)
    return best, kept


def _trained_features(codes: Sequence[Tensor], images: Images, rng: torch.Generator) -> nn.Module:
    """Two 3x3 convolutions, trained so that each factor's value follows linearly from their maps' largest entries."""
    factors = [_values(part) for part in codes]
    with seeded(int(torch.randint(2**31, (), generator=rng)), "reader"):
        features = nn.Sequential(Conv3x3(images.shape[1], WIDTH, relu=True), Conv3x3(WIDTH, WIDTH, relu=True))
        heads = nn.ModuleList(nn.Linear(2 * WIDTH, len(values)) for values, _ in factors)
    network = nn.ModuleList([features, heads]).to(images.device)
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    for _ in range(STEPS):
        rows = torch.randint(len(images), (BATCH,), generator=rng).to(images.device)
        pooled = _extremes(features(images[rows]), (2, 3))
        losses = [cross_entropy(head(pooled), index[rows]) for head, (_, index) in zip(heads, factors, strict=True)]
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()
    return features.eval().requires_grad_(False)


@register("consistency")
class Consistency(DrawingPenalty):
    """weight * mean over held-out codes z of the sum over factors f of d_f(D(z), z_f), a frozen reader's distance.

    It is given the codes of the held-out combinations, never their images, so the decoder is told which combinations
    it will be asked for. The reader is made from the seen images before training: it pools an image over one axis or
    both, and d_f is the squared distance between the pooled D(z) and the mean of pooled seen images with the value
    z_f, divided by their variance. Factors whose values it cannot tell apart are left out.

    - `weight`: of the distance. As many held-out codes are drawn at random in each step as the batch has samples.
    """

    weight: Weight = 0.003

    def start(self, data: TrainingData) -> Step:
        if not len(data.heldout_codes):
            raise BadInput("consistency: acts on the codes of held-out combinations, and the holdout holds out none")
        reader = fitted_reader(data.codes, data.images, data.code_sizes, data.rng)
        parts = zip(reader.readings, data.heldout_codes.split(list(data.code_sizes), 1), strict=True)
        targets = [factor.index(part) for factor, part in parts if factor.way is not None]
        if not targets:
            raise BadInput("consistency: no factor's value can be read from the pooled seen images; leave it out")

        def step(module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
            rows = torch.randint(len(data.heldout_codes), (len(batch.codes),), generator=data.rng)
            rows = rows.to(data.heldout_codes.device)
            distances = reader.distances(module(data.heldout_codes[rows]))
            right = [
                factor.gather(1, target[rows, None]).mean() for factor, target in zip(distances, targets, strict=True)
            ]
            return self.weight * torch.stack(right).sum()

        return step
