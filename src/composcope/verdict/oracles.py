"""Known-answer decoders: what each would draw on held-out points, and the seen points that it would draw it from."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_index, grid_steps
from composcope.verdict.additive import fit_additive

Images = Float[Tensor, "n channels height width"]
Latents = Float[Tensor, "n factors"]


def nearest(index: Tensor, seen_index: Tensor, factors: Sequence[Factor]) -> Iterator[tuple[int, Tensor]]:
    """For each point, its row and those of the other seen points nearest to it in grid steps.

    Categories have no distances, so a seen point of another category only counts if there is none of the same.
    """
    chunk = max(1, 4_000_000 // max(1, len(seen_index)))
    categorical = [axis for axis, factor in enumerate(factors) if factor.kind == "categorical"]
    for start in range(0, len(index), chunk):
        rows = index[start : start + chunk]
        steps = grid_steps(rows, seen_index, factors)
        for axis in categorical:
            steps += 1e6 * (rows[:, None, axis] != seen_index[None, :, axis])
        steps = steps.masked_fill(steps == 0, torch.inf)
        for offset, row in enumerate(steps):
            least = (row == row.min()) & torch.isfinite(row) if len(row) else torch.zeros(0, dtype=torch.bool)
            yield start + offset, least.nonzero()[:, 0]


def neighbours(index: Tensor, seen_index: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
    """For each point, its row and, for each factor, those of the seen points that differ in it alone.

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
    - *additive*: the main effects of the factors, fitted on seen points; NaN where a value is not seen;
    - *nearest seen*: the first of the seen images at the least distance in grid steps;
    - *superposer*: for each factor the mean of the seen images that differ from the point in that factor alone, summed.
    """
    index = grid_index(latents, factors)
    held, seen = heldout.nonzero()[:, 0], truth[~heldout]
    images = {"composer": truth.clone()}
    for name in ("nearest seen", "superposer", "blank"):
        images[name] = truth.masked_fill(heldout[:, None, None, None], 0.0)
    model = fit_additive(truth, index, ~heldout, factors)
    added = model.predicted(index).reshape(truth.shape)
    images["additive"] = torch.where(heldout[:, None, None, None], added, truth)
    if cross is not None:
        images["additive cross"] = torch.where(heldout[:, None, None, None], cross, truth)
    for row, closest in nearest(index[heldout], index[~heldout], factors):
        if len(closest):
            images["nearest seen"][held[row]] = seen[closest[0]]
    for row, beside in neighbours(index[heldout], index[~heldout]):
        for members in beside:
            if len(members):
                images["superposer"][held[row]] += seen[members].mean(0)
    return images
