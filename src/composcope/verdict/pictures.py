"""Images over the points that need not all be in memory at once."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Images = Float[Tensor, "n channels height width"]


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
