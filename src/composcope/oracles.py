"""Known-answer decoders, and which of them a held-out image looks like: the verdict.

All images are foregrounds over the same points, one row of latents per image.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_index, grid_steps

Images = Float[Tensor, "n channels height width"]
Latents = Float[Tensor, "n factors"]

KINDS = {
    "composer": "composes",
    "additive cross": "adds",
    "nearest seen": "repeats",
    "superposer": "superposes",
    "blank": "draws nothing",
    "other": "does something else",
}
"""Every class of held-out images, and what a decoder is said to do if it is the largest class."""

# Below a tenth of the truth's energy there is nothing to classify: a fit to what is left would fit noise. An image that
# is faint but correct has more: half the amplitude is a quarter of the energy.
BLANK_ENERGY = 0.1
# An image of which even the best oracle leaves more than half of the energy is more unlike it than like it. The
# known-answer decoders leave next to 0 and noise leaves nearly 1, so the exact value matters little.
LARGEST_RESIDUAL = 0.5
# The superposer's dictionary contains seen images next to the hole and it has many free weights, so it can always
# imitate one of them and often comes close to other oracles by chance. To win it must be better by 1 % of the energy.
SUPERPOSER_LEAD = 0.01


@dataclass(frozen=True)
class Verdict:
    """What a decoder does on held-out combinations.

    - `kind`: what the largest class does; `score`: the share of images won by the composer.
    - `shares`: of every class, by the names in `KINDS`.
    - `classes`: the class of each held-out image; `residuals`: the share of each image's energy that each oracle's
      best fit leaves, NaN where the oracle has nothing to offer.
    - `without_dictionary`: number of images for which no seen image shares all but one factor's value, so that there
      is no superposer.
    """

    kind: str
    score: float
    shares: dict[str, float]
    classes: tuple[str, ...]
    residuals: dict[str, Float[Tensor, "heldout"]]
    without_dictionary: int


def verdict(
    outputs: Images,
    truth: Images,
    latents: Latents,
    heldout: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    cross: Images | None = None,
) -> Verdict:
    """Classify each held-out output by the oracle with the least |f - fit|^2 / |f|^2, background removed.

    - `cross`: the sum of the truth's stripes at each point, if the task has any; else that oracle is left out.

    *blank* if |f|^2 is below a tenth of the truth's; else the best of composer, additive cross and nearest seen (one
    image each, scaled by a >= 0) and superposer (nonnegative least squares on the seen images that share all but one
    factor's value); *other* if the fit leaves more than half of the energy. Where several seen points are nearest,
    the one that fits best counts. The superposer must win by more than 0.01 of the energy: see `SUPERPOSER_LEAD`.
    """
    if not heldout.any():
        raise ValueError("there are no held-out points to classify")
    if outputs.shape != truth.shape or len(latents) != len(truth):
        shapes = tuple(outputs.shape), tuple(truth.shape), tuple(latents.shape)
        raise ValueError(f"outputs, truth and latents must be over the same points; got shapes {shapes}")
    target, true, seen = (without_background(pixels) for pixels in (outputs[heldout], truth[heldout], truth[~heldout]))
    index = grid_index(latents, factors)
    residuals = {"composer": _scaled_residual(target, true)}
    if cross is not None:
        residuals["additive cross"] = _scaled_residual(target, without_background(cross[heldout]))
    residuals["nearest seen"] = _nearest_residual(target, seen, index[heldout], index[~heldout], factors)
    residuals["superposer"] = _superposer_residual(target, seen, index[heldout], index[~heldout])
    blank = target.square().sum(1) < BLANK_ENERGY * true.square().sum(1)
    classes = _classify(residuals, blank)
    shares = {name: classes.count(name) / len(classes) for name in KINDS}
    largest = max(shares, key=lambda name: shares[name])
    missing = int(residuals["superposer"].isnan().sum())
    return Verdict(KINDS[largest], shares["composer"], shares, tuple(classes), residuals, missing)


def _classify(residuals: dict[str, Tensor], blank: Bool[Tensor, "heldout"]) -> list[str]:
    """Each image's class; of equally good oracles the first one wins."""
    names = list(residuals)
    table = torch.stack([residuals[name] + (SUPERPOSER_LEAD if name == "superposer" else 0.0) for name in names])
    best = table.nan_to_num(torch.inf).argmin(0)
    least = torch.stack(list(residuals.values())).gather(0, best[None])[0]
    far = least.nan_to_num(torch.inf) > LARGEST_RESIDUAL
    return [
        "blank" if empty else "other" if lost else names[winner]
        for empty, lost, winner in zip(blank.tolist(), far.tolist(), best.tolist(), strict=True)
    ]


def without_background(images: Images) -> Float[Tensor, "n pixels"]:
    """Each image's pixels minus the median of their channel, flattened, in double precision.

    Most pixels of an image are background, so the median removes an offset that a decoder draws everywhere.
    """
    channels = images.flatten(2).double()
    return (channels - channels.median(2, keepdim=True).values).flatten(1)


def _scaled_residual(target: Float[Tensor, "n p"], oracle: Float[Tensor, "n p"]) -> Float[Tensor, "n"]:
    """min over a >= 0 of |f - a o|^2 / |f|^2."""
    energy = oracle.square().sum(1)
    scale = ((target * oracle).sum(1) / energy.where(energy > 0, torch.ones_like(energy))).clamp(min=0)
    return _relative((target - scale[:, None] * oracle).square().sum(1), target)


def _relative(residual: Tensor, target: Tensor) -> Tensor:
    """residual / |f|^2; 0 for an image of zeros, which every oracle fits when scaled by 0."""
    energy = target.square().sum(1)
    return torch.where(energy > 0, residual / energy.where(energy > 0, torch.ones_like(energy)), 0.0)


def _nearest_residual(
    target: Tensor, seen: Tensor, index: Tensor, seen_index: Tensor, factors: Sequence[Factor]
) -> Float[Tensor, "heldout"]:
    """The least of the residuals from the seen images at the least distance in grid steps; NaN if there is none."""
    residual = torch.full((len(target),), torch.nan, dtype=target.dtype)
    for row, nearest in _nearest(index, seen_index, factors):
        candidates = seen[nearest]
        if len(candidates):
            residual[row] = _scaled_residual(target[row].expand_as(candidates), candidates).min()
    return residual


def _nearest(index: Tensor, seen_index: Tensor, factors: Sequence[Factor]) -> Iterator[tuple[int, Tensor]]:
    """For each held-out point, its row and those of the seen points nearest to it."""
    chunk = max(1, 4_000_000 // max(1, len(seen_index)))
    for start in range(0, len(index), chunk):
        steps = grid_steps(index[start : start + chunk], seen_index, factors)
        for offset, row in enumerate(steps):
            nearest = (row == row.min()) & torch.isfinite(row) if len(row) else torch.zeros(0, dtype=torch.bool)
            yield start + offset, nearest.nonzero()[:, 0]


def neighbours(index: Tensor, seen_index: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
    """For each held-out point, its row and, for each factor, those of the seen points that differ in it alone.

    Both arguments are positions on the grid, from `grid_index`.
    """
    count = index.shape[1]
    chunk = max(1, 4_000_000 // max(1, len(seen_index) * count))
    for start in range(0, len(index), chunk):
        rows = index[start : start + chunk]
        same = (rows[:, None] == seen_index[None]) & (rows >= 0)[:, None]
        beside = (same.sum(-1) == count - 1) & (seen_index >= 0).all(1)
        for offset in range(len(rows)):
            yield start + offset, [(beside[offset] & ~same[offset, :, axis]).nonzero()[:, 0] for axis in range(count)]


def _superposer_residual(target: Tensor, seen: Tensor, index: Tensor, seen_index: Tensor) -> Float[Tensor, "heldout"]:
    """min over w >= 0 of |f - sum_j w_j seen_j|^2 / |f|^2, j next to the target; NaN if there are none."""
    residual = torch.full((len(target),), torch.nan, dtype=target.dtype)
    for row, beside in neighbours(index, seen_index):
        dictionary = seen[torch.cat(beside)]
        if len(dictionary):
            weights = nonnegative_weights(dictionary @ dictionary.T, dictionary @ target[row])
            residual[row] = (target[row] - weights @ dictionary).square().sum()
    return torch.where(residual.isnan(), residual, _relative(residual, target))


def nonnegative_weights(gram: Float[Tensor, "k k"], overlap: Float[Tensor, "k"]) -> Float[Tensor, "k"]:
    """argmin over w >= 0 of w^T G w - 2 w^T b: nonnegative least squares from the dictionary's Gram matrix alone.

    With G = A^T A it is the least-squares problem |A w - c|^2, A^T c = b, with as few rows as the rank of G.

    >>> nonnegative_weights(torch.eye(2), torch.tensor([2.0, -1.0])).tolist()
    [2.0, 0.0]
    """
    from scipy.optimize import nnls

    values, vectors = torch.linalg.eigh(gram.double())
    kept = values > 1e-12 * values[-1].clamp(min=0)
    if not kept.any():
        return torch.zeros_like(overlap, dtype=torch.float64)
    roots = values[kept].sqrt()
    matrix = roots[:, None] * vectors[:, kept].T
    right = vectors[:, kept].T @ overlap.double() / roots
    weights, _ = nnls(matrix.numpy(), right.numpy(), maxiter=30 * len(gram))
    return torch.from_numpy(weights)


def oracle_images(
    truth: Images, latents: Latents, heldout: Bool[Tensor, "n"], factors: Sequence[Factor], cross: Images | None = None
) -> dict[str, Images]:
    """What each known-answer decoder draws: the truth on seen points and, on held-out points,

    - *composer*: the truth; *blank*: nothing; *additive cross*: the sum of the stripes, if given;
    - *nearest seen*: the first of the seen images at the least distance in grid steps;
    - *superposer*: for each factor the mean of the seen images that differ from the point in that factor alone, summed.
    """
    index = grid_index(latents, factors)
    held, seen = heldout.nonzero()[:, 0], truth[~heldout]
    images = {"composer": truth.clone()}
    for name in ("nearest seen", "superposer", "blank"):
        images[name] = truth.masked_fill(heldout[:, None, None, None], 0.0)
    if cross is not None:
        images["additive cross"] = torch.where(heldout[:, None, None, None], cross, truth)
    for row, nearest in _nearest(index[heldout], index[~heldout], factors):
        if len(nearest):
            images["nearest seen"][held[row]] = seen[nearest[0]]
    for row, beside in neighbours(index[heldout], index[~heldout]):
        for members in beside:
            if len(members):
                images["superposer"][held[row]] += seen[members].mean(0)
    return images
