"""Numbers of combinations: equal where the values of some factors are equal."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from composcope.factors import Latents

Indices = Int[Tensor, "n factors"]


def value_indices(latents: Latents) -> tuple[Indices, tuple[int, ...]]:
    """The index of each latent among the values that occur in its column, and how many of them there are."""
    found = [column.unique(return_inverse=True) for column in latents.unbind(1)]
    return torch.stack([index for _, index in found], 1), tuple(len(values) for values, _ in found)


def numbers(indices: Indices, sizes: Sequence[int], columns: Sequence[int]) -> Int[Tensor, "n"]:
    """One number per row: that of its values in these columns, in mixed radix."""
    number, most = torch.zeros(len(indices), dtype=torch.long), 1
    for column in columns:
        if most * sizes[column] > 2**62:  # so many that the radix would overflow: only those that occur are counted
            distinct, number = number.unique(return_inverse=True)
            most = len(distinct)
        number, most = number * sizes[column] + indices[:, column], most * sizes[column]
    return number
