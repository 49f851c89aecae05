"""Whether two-dimensional maps are bands: of rank 1, constant along one axis. For embeddings and for channels."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.kernel_structure import Schmidt
from composcope.measures.linear_factorization import effect_variances

Maps = Float[Tensor, "_ height width"]


def axis_variances(maps: Maps) -> Float[Tensor, "_ 3"]:
    """Each map's variance over its entries in three parts: due to the column alone, to the row alone, to neither alone.

    >>> axis_variances(torch.tensor([[[0.0, 2.0], [0.0, 2.0]]])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    _, height, width = maps.shape
    factors = (Factor("row", tuple(range(height))), Factor("column", tuple(range(width))))
    parts = effect_variances(maps.flatten(1).T, factors)
    return torch.stack([parts["column",], parts["row",], parts["row", "column"]], 1)


def own_axis_share(of_x: Maps, of_y: Maps) -> float | None:
    """sum of Var(map | column alone) over x's maps and of Var(map | row alone) over y's, over the sum of all Var.

    1 if x's maps are vertical bands and y's horizontal ones, whatever their profile; 1 / (n + 1) for noise of side n.
    Faint maps count for little. None if no map varies.
    """
    x, y = axis_variances(of_x), axis_variances(of_y)
    total = (x.sum() + y.sum()).item()
    return (x[:, 0].sum() + y[:, 1].sum()).item() / total if total > 0 else None


def effective_rank(matrix: Float[Tensor, "height width"]) -> float:
    """exp of the entropy of p_n = s_n^2 / sum s^2, s the singular values: 1 for a single product v u^T.

    >>> round(effective_rank(torch.eye(4)), 6)
    4.0
    """
    return Schmidt(torch.linalg.svdvals(matrix.double())).effective_rank


def mean_rank(stacks: Sequence[Maps]) -> float:
    """The mean effective rank of all maps."""
    ranks = [effective_rank(matrix) for stack in stacks for matrix in stack]
    return sum(ranks) / len(ranks)
