"""The compositional contrast: how much factors act on the same pixels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.func import jvp, vmap

from composcope.components import register
from composcope.decoders.base import Codes
from composcope.penalties.base import Batch, DrawingPenalty, Step, TrainingData, Weight


@register("interaction")
class Interaction(DrawingPenalty):
    """weight * mean over codes of the sum, over pixels p and pairs of factors i < j, of |dD_p / dz_i| |dD_p / dz_j|.

    D_p is a pixel and z_i the columns of one factor's code; the derivatives are exact. It is zero if every pixel
    depends on at most one factor. It is not the mixed second derivative: a sum of images that overlap is not zero.

    - `points`: of the codes of a batch, how many it is computed at. Each costs as much as drawing one image per
      column of the code.
    """

    weight: Weight = 1e-4
    points: Annotated[int, Field(ge=1, le=65_536)] = 2

    def start(self, data: TrainingData) -> Step:
        def step(module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
            with drawing(module):
                return self.weight * compositional_contrast(module, batch.codes[: self.points], data.code_sizes)

        return step


def compositional_contrast(module: nn.Module, codes: Codes, code_sizes: Sequence[int]) -> Float[Tensor, ""]:
    """Mean over codes of the sum, over pixels p and pairs of factors i < j, of |dD_p / dz_i| |dD_p / dz_j|.

    >>> class Multiply(nn.Module):
    ...     def forward(self, codes):
    ...         return 3 * codes.prod(1, keepdim=True)  # D = 3 a b, so that |dD / da| |dD / db| = 9 |a b|
    >>> compositional_contrast(Multiply(), torch.tensor([[2.0, -5.0]]), (1, 1)).item()
    90.0
    """
    columns = torch.eye(codes.shape[1], dtype=codes.dtype, device=codes.device)

    def slope(column: Tensor) -> Tensor:
        changed: Tensor = jvp(module, (codes,), (column.expand_as(codes),))[1]
        return changed.flatten(1)

    # In training these are PyTorch's convolutions: the kernels' forward-mode derivative has no gradient of its own.
    slopes = vmap(slope, randomness="same")(columns)
    lengths = [torch.linalg.vector_norm(part, dim=0) for part in slopes.split(list(code_sizes))]
    products = [(one * other).sum(1).mean() for one, other in combinations(lengths, 2)]
    return torch.stack(products).sum() if products else codes.new_zeros(())


@contextmanager
def drawing(module: nn.Module) -> Iterator[None]:
    """The module in eval mode, as it draws, so that batch statistics are not updated; the modes are restored after."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
