"""How far a share may be from what other factor values would have given."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

REPEATS = 1000
# Images of which the weights are drawn at a time, times repeats: bounds the memory.
MOST_WEIGHTS = 20_000_000


def cluster_interval(
    values: Float[Tensor, "n"], index: Int[Tensor, "n factors"], seed: int = 0
) -> tuple[float, float] | None:
    """A 95 % interval of the values' mean by a bootstrap over factor values; None for fewer than two values of each.

    Neighbouring combinations are not independent, so factor values are drawn with replacement rather than images: an
    image's weight is the product over factors of how often its value was drawn (the pigeonhole bootstrap, Owen 2007).
    A factor with one value among the images is left as it is. Where all values agree the interval has no width.
    """
    columns = [column for column in index.unbind(1) if len(column.unique()) > 1]
    if not columns:
        return None
    rng = torch.Generator().manual_seed(seed)
    repeats = max(1, min(REPEATS, MOST_WEIGHTS // len(values)))
    weights = torch.ones(repeats, len(values), dtype=torch.float64)
    for column in columns:
        present, member = column.unique(return_inverse=True)
        drawn = torch.randint(len(present), (repeats, len(present)), generator=rng)
        counts = torch.zeros(repeats, len(present), dtype=torch.float64)
        counts.scatter_add_(1, drawn, torch.ones_like(drawn, dtype=torch.float64))
        weights *= counts[:, member]
    total = weights.sum(1)
    means = (weights @ values.double())[total > 0] / total[total > 0]
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high
