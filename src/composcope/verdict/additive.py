"""The images of a decoder without interactions: main effects fitted on its own seen outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.error import has_learned
from composcope.measures.grid import grid_sizes
from composcope.verdict.pictures import Images, Pictures, Rendered

CHUNK = 512  # images at a time
# Whether a decoder is additive is a ratio of sums over its seen images; as many tell it well enough.
MOST_COMPARED = 512


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
        left = own - (own - self.predicted(index)) / rest.clamp(min=1e-9).to(own)
        return left.masked_fill(rest < 1e-6, torch.nan)


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
    chosen = rows[torch.linspace(0, len(rows) - 1, min(len(rows), MOST_COMPARED)).long()]
    predicted = model.predicted(index[chosen])
    error = (outputs[chosen].flatten(1) - predicted).square().sum(dtype=torch.float64).item()
    spread = (predicted - predicted.mean(0)).square().sum(dtype=torch.float64).item()
    return has_learned(error, spread)
