"""What readers' answers say about a generator: shares corrected by the readers' own mistakes, and their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor

# Classes of an image as positions: those of `readers.likeness`, without a class for a factor that is wrong.
REAL = 0
REPEATS = 200  # of the bootstrap
STEPS = 150  # of expectation and maximisation; shares change by less than a thousandth after that
# One half of an image is added to each row of a confusion: a reader that made no mistake in ten images may still err.
PRIOR = 0.5
NORMAL = 1.96  # standard deviations of a 95 % interval


@dataclass(frozen=True)
class Readings:
    """Images of known or intended combinations, and what was read in them.

    - `true`, `read`: positions of the factors' values, intended (or labelled) and read.
    - `likeness`: 0 for images that are like real ones. `group`: the number of each image's combination.
    """

    true: Int[Tensor, "n factors"]
    read: Int[Tensor, "n factors"]
    likeness: Int[Tensor, "n"]
    group: Int[Tensor, "n"]

    @property
    def right(self) -> Bool[Tensor, "n factors"]:
        """Which factors are read as intended, in images that are like real ones."""
        return (self.true == self.read) & (self.likeness == REAL)[:, None]

    def rows(self, chosen: Tensor) -> "Readings":
        """Some of the images."""
        return Readings(self.true[chosen], self.read[chosen], self.likeness[chosen], self.group[chosen])


def resampled(
    group: Int[Tensor, "n"], repeats: int, rng: torch.Generator, groups: bool = True
) -> Float[Tensor, "repeats n"]:
    """How often each image is drawn: first groups with replacement (if `groups`), then images within each.

    An image's count is Poisson with the mean of how often its group was drawn, which within a group is the bootstrap
    but for its fixed size; means are taken over the sum of the counts.
    """
    present, member = group.unique(return_inverse=True)
    chosen = torch.ones(repeats, len(present))
    if groups:
        drawn = torch.randint(len(present), (repeats, len(present)), generator=rng)
        chosen = torch.zeros(repeats, len(present)).scatter_add_(1, drawn, torch.ones(drawn.shape))
    return torch.poisson(chosen[:, member], generator=rng)


def counted_pairs(
    true: Int[Tensor, "n"], read: Int[Tensor, "n"], size: int, weights: Float[Tensor, "repeats n"]
) -> Float[Tensor, "repeats true read"]:
    """How often each value was read where each was intended."""
    cells = torch.zeros(len(weights), size * size)
    return cells.index_add_(1, true * size + read, weights).reshape(-1, size, size)


def confusion(counts: Float[Tensor, "... true read"]) -> Float[Tensor, "... true read"]:
    """The share of each value's real images that are read as each value, each value a little unsure."""
    size = counts.shape[-1]
    return (counts + PRIOR / size) / (counts.sum(-1, keepdim=True) + PRIOR)


def corrected(
    counts: Float[Tensor, "repeats true read"], reader: Float[Tensor, "repeats drawn read"]
) -> Float[Tensor, "repeats true drawn"]:
    """The shares p(d | t) of the values that were drawn where t was intended, most likely to have been read so.

    What is read is a mixture, sum_d p(d | t) C(d, r), of what the reader makes of every value d. The shares are fitted
    by expectation and maximisation, which keeps them within 0..1, unlike the inverse of C.
    """
    size = counts.shape[-1]
    # Begun near the readings themselves, so that a reader without mistakes changes nothing.
    shares = (counts + 1 / size) / (counts.sum(-1, keepdim=True) + 1)
    total = counts.sum(-1, keepdim=True).clamp(min=1e-9)
    for _ in range(STEPS):
        expected = (shares @ reader).clamp(min=1e-9)
        shares = shares * ((counts / expected) @ reader.transpose(-1, -2)) / total
        shares = shares / shares.sum(-1, keepdim=True).clamp(min=1e-9)
    return shares


@dataclass(frozen=True)
class Estimate:
    """A share in 0..1 and its 95 % interval."""

    share: float
    interval: tuple[float, float]

    @property
    def width(self) -> float:
        return self.interval[1] - self.interval[0]


def estimate(share: float, repeats: Float[Tensor, "repeats"], images: int, widened: float) -> Estimate:
    """The quantiles of the bootstrap, at least as wide as so many images deserve, and widened about the share.

    The bootstrap of images that all agree has no width; Wilson's interval has.
    """
    low, high = torch.quantile(repeats.double(), torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    centre = (share + NORMAL**2 / (2 * images)) / (1 + NORMAL**2 / images)
    reach = NORMAL / (1 + NORMAL**2 / images) * (share * (1 - share) / images + (NORMAL / images) ** 2 / 4) ** 0.5
    low, high = min(low, centre - reach), max(high, centre + reach)
    low, high = share - widened * (share - low), share + widened * (high - share)
    return Estimate(share, (max(0.0, min(low, share)), min(1.0, max(high, share))))


@dataclass(frozen=True)
class Shares:
    """What a generator draws, corrected by what its reader makes of real images.

    - `factors`: for each factor, the share of images that show its intended value. `drawn`: how many images of each
      intended value (row) show which (column).
    - `joint`: the share in which all readable factors are right, relative to that among real images.
    """

    factors: dict[str, Estimate]
    drawn: dict[str, Float[Tensor, "true drawn"]]
    joint: Estimate


def shares_of(
    drawn: Readings,
    real: Readings,
    factors: Sequence[Factor],
    readable: Sequence[str],
    seed: int,
    by_combination: bool,
    widened: float,
) -> Shares:
    """The shares and a bootstrap of both: combinations and their images of the generator, and the reader's real images.

    - `by_combination`: whether the real images are resampled by combination too: where the reader must work on other
      combinations than those that it is known on.
    """
    rng = torch.Generator().manual_seed(seed)
    count = len(drawn.true)
    weights = torch.cat([torch.ones(1, count), resampled(drawn.group, REPEATS, rng)])
    real_weights = torch.cat(
        [torch.ones(1, len(real.true)), resampled(real.group, REPEATS, rng, groups=by_combination)]
    )
    total = weights.sum(1).clamp(min=1)
    like = (drawn.likeness == REAL).float()
    every: dict[str, Estimate] = {}
    shown: dict[str, Tensor] = {}
    for axis, factor in enumerate(factors):
        if factor.name not in readable:
            continue
        pairs = counted_pairs(drawn.true[:, axis], drawn.read[:, axis], factor.size, weights * like)
        reader = confusion(counted_pairs(real.true[:, axis], real.read[:, axis], factor.size, real_weights))
        made = corrected(pairs, reader) * pairs.sum(-1, keepdim=True)
        right = made.diagonal(dim1=1, dim2=2).sum(1) / total
        every[factor.name] = estimate(right[0].item(), right[1:], count, widened)
        shown[factor.name] = made[0]
    columns = [axis for axis, factor in enumerate(factors) if factor.name in readable]
    joint = (weights * drawn.right[:, columns].all(1)).sum(1) / total
    reached = (real_weights * real.right[:, columns].all(1)).sum(1) / real_weights.sum(1).clamp(min=1)
    relative = (joint / reached.clamp(min=1e-9)).clamp(max=1)
    return Shares(every, shown, estimate(relative[0].item(), relative[1:], count, widened))


@dataclass(frozen=True)
class Calibration:
    """What readers' answers rest on: how the readers do on real images, and the controls beside the verdict.

    - `rests_on`: on which real images the readers were tested, in words; `images`: how many these are; `widened`: by
      which factor every interval is wider than its bootstrap.
    - `accuracy`, `chance`: of each factor's reader, the mean over values; `joint`: the share of real images in which
      every readable factor is read right; `confusion`: the share of a value's real images (row) read as each value.
    - `cannot_tell`: factors about which nothing can be said, and why.
    - `intervals`: 95 % of each factor's share among held-out images.
    - `seen_score`, `seen_interval`: the joint share among the generator's own seen images, a control that corrects
      nothing.
    - `rejected`: the share of real images that are called unlike real ones, as a few must be.
    - `copies`, `seen_copies`: the share of held-out and of seen images that are nearer to a real image of a seen
      combination than 99 % of real images are to each other: copies. About 1 % is what new images have.
    - `combinations`, `samples`: how many held-out combinations were drawn, and how many images of each.
    - `heldout`: which of the grid's combinations are held out; `examples`: a checksum of the real images and labels.
    - `latents`, `drawn`, `classes`: some held-out combinations, a few images of each, and the class of each image.
    """

    rests_on: str
    images: int
    widened: float
    accuracy: dict[str, float]
    chance: dict[str, float]
    joint: float
    confusion: dict[str, Float[Tensor, "true read"]]
    cannot_tell: dict[str, str]
    intervals: dict[str, tuple[float, float]]
    seen_score: float
    seen_interval: tuple[float, float]
    rejected: float
    copies: float
    seen_copies: float
    combinations: int
    samples: int
    heldout: Bool[Tensor, "combinations"]
    examples: str
    latents: Float[Tensor, "shown factors"]
    drawn: Float[Tensor, "shown few channels height width"]
    classes: tuple[tuple[str, ...], ...]
