"""What images are compared with: true images, an additive fit, seen neighbours, and known-answer decoders."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.error import has_learned
from composcope.measures.grid import grid_sizes, grid_steps
from composcope.tasks.base import Images


class Rendered:
    """Images that are made when rows of them are asked for: indexed like a tensor, without its memory.

    >>> squares = Rendered(lambda rows: rows.float().square().reshape(-1, 1, 1, 1), 5)
    >>> squares.shape, squares[torch.tensor([1, 3])].flatten().tolist()
    (torch.Size([5, 1, 1, 1]), [1.0, 9.0])
    """

    def __init__(self, make: Callable[[Int[Tensor, "n"]], Images], count: int) -> None:
        self.make, self.count = make, count
        self.shape = torch.Size((count, *make(torch.zeros(1, dtype=torch.long)).shape[1:]))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: Int[Tensor, "n"]) -> Images:
        return self.make(rows)


Pictures = Images | Rendered


def whole(pictures: Pictures) -> Images:
    """All of them as one tensor."""
    return pictures if isinstance(pictures, Tensor) else pictures[torch.arange(len(pictures))]


def rendered(make: Callable[[Int[Tensor, "n"]], Images], count: int, most_bytes: float) -> Pictures:
    """The images as a tensor if it is small enough, else made when asked for."""
    lazy = Rendered(make, count)
    return whole(lazy) if 4 * lazy.shape.numel() <= most_bytes else lazy


CHUNK = 512  # images at a time
# Whether a decoder is additive is a ratio of sums over its seen images; as many tell it well enough.
MAX_COMPARED = 512


@dataclass(frozen=True)
class AdditiveModel:
    """image(z) = sum_i effect_i(z_i), the least-squares fit to the seen outputs, and what predicting needs."""

    effects: Float[Tensor, "values pixels"]
    inverse: Float[Tensor, "values values"]
    projection: Float[Tensor, "values values"]
    sizes: tuple[int, ...]

    def predicted(self, index: Int[Tensor, "n factors"]) -> Float[Tensor, "n pixels"]:
        """The fitted images; NaN where a value was not seen, or its effect cannot be told from another's."""
        rows = indicators(index, self.sizes)
        unknown = (rows - rows @ self.projection).abs().amax(1) > 1e-6
        images = rows.to(self.effects) @ self.effects
        return images.masked_fill(unknown[:, None], torch.nan)

    def left_out(self, index: Int[Tensor, "n factors"], own: Float[Tensor, "n pixels"]) -> Float[Tensor, "n pixels"]:
        """The images at seen points as the fit without each point's own output predicts them.

        y - (y - fit) / (1 - h), h the point's leverage: the fit need not be made again. NaN where h is 1.
        """
        rows = indicators(index, self.sizes)
        rest = (1 - ((rows @ self.inverse) * rows).sum(1))[:, None]
        images = own - (own - self.predicted(index)) / rest.clamp(min=1e-9).to(own)
        return images.masked_fill(rest < 1e-6, torch.nan)


def indicators(index: Int[Tensor, "n factors"], sizes: Sequence[int]) -> Float[Tensor, "n values"]:
    """One column per value of each factor: 1 where the point has it. A point off the grid has none."""
    columns = [torch.arange(size) == index[:, axis, None] for axis, size in enumerate(sizes)]
    return torch.cat(columns, 1).double() * (index >= 0).all(1)[:, None]


def fit_additive(
    images: Float[Tensor, "n ..."] | Rendered,
    index: Int[Tensor, "n factors"],
    seen: Bool[Tensor, "n"],
    factors: Sequence[Factor],
) -> AdditiveModel:
    """Least squares over the seen points; of the equally good solutions the one with the least norm."""
    sizes = grid_sizes(factors)
    rows = indicators(index, sizes) * seen[:, None]
    inverse = torch.linalg.pinv(rows.T @ rows, hermitian=True, rtol=1e-10)
    sums = torch.zeros(rows.shape[1], images.shape[1:].numel())
    for some in seen.nonzero()[:, 0].split(CHUNK):
        part = images[some].flatten(1)
        sums += rows[some].T.to(part) @ part
    return AdditiveModel(inverse.to(sums) @ sums, inverse, inverse @ (rows.T @ rows), sizes)


def is_additive(
    outputs: Images,
    truth: Pictures,
    index: Int[Tensor, "n factors"],
    seen: Bool[Tensor, "n"],
    factors: Sequence[Factor],
) -> bool:
    """Whether the seen outputs are the main effects of the seen truth: |output - A|^2 < 0.25 |A - mean of A|^2.

    A is the additive fit to the truth. An image that is the same everywhere, or one that has barely been learned, does
    not pass: at least three quarters of what the factors do by themselves must be there.
    """
    model = fit_additive(truth, index, seen, factors)
    rows = seen.nonzero()[:, 0]
    chosen = rows[torch.linspace(0, len(rows) - 1, min(len(rows), MAX_COMPARED)).long()]
    predicted = model.predicted(index[chosen])
    error = (outputs[chosen].flatten(1) - predicted).square().sum(dtype=torch.float64).item()
    spread = (predicted - predicted.mean(0)).square().sum(dtype=torch.float64).item()
    return has_learned(error, spread)


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
