"""The pixels' coordinates as two channels."""

import torch
from jaxtyping import Float
from torch import Tensor


def coordinates(height: int, width: int) -> Float[Tensor, "2 height width"]:
    """Column and row of every pixel, each from -1 to 1.

    >>> coordinates(2, 3)[0]
    tensor([[-1.,  0.,  1.],
            [-1.,  0.,  1.]])
    """
    rows, columns = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    return torch.stack([columns, rows])
