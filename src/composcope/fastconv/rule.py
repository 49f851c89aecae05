"""When a kernel pays, found by measuring (benchmarks/fastconv_rule.py; the tables are in benchmarks/results)."""

from functools import lru_cache
from math import ceil, sqrt

NARROW = 4  # up to so many output channels the direct kernel is the faster one
NARROW_INPUT = 4096  # values in the batch, below which a single image gains nothing

# How much of the saved multiplications is left after the transforms, for large batches.
LEFT = {"conv3x3": 0.6, "upsample2x": 0.88}
# Transforming the weight costs as much as so many tiles for every channel, in every step, however few the tiles are.
WEIGHT_TILES = {"conv3x3": 1 / 4, "upsample2x": 1 / 3}
# The speed-up to expect before a kernel is chosen. Eight lanes were measured over the whole table. Of sixteen only
# three layers of an earlier version are known, with 0.83 to 0.96 of the speed-up with eight, and of four lanes nothing:
# both ask for so much that a layer which the formula flatters most (by a fifth, with eight lanes) would still not lose.
EXPECTED = {16: 1.25, 8: 1.02, 4: 1.25}

# A doubling of so many channels has always paid, however small the image: PyTorch's is slow with few of them.
FEW = {8: range(9, 17)}
SMALLEST = 3  # pixels of a side, the smallest that was measured


def candidate(layer: str, k: int) -> str:
    """The kernel that comes into question for k output channels."""
    return "narrow" if layer == "conv3x3" and k <= NARROW else "winograd"


@lru_cache(maxsize=256)
def best_kernel(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> str | None:
    """The kernel for n images of c channels and h x w pixels to k channels, or None for PyTorch's.

    speed-up = left * saving * tiles / (tiles + weight tiles * sqrt(c k))
    saving   = multiplications of the direct convolution / of the transformed one, over whole tiles and vectors

    >>> best_kernel("conv3x3", 32, 64, 64, 28, 28, lanes=8)
    'winograd'
    """
    if candidate(layer, k) == "narrow":
        return "narrow" if n * c * h * w >= NARROW_INPUT else None
    few = FEW.get(lanes, range(0))
    if layer == "upsample2x" and c in few and k in few and min(h, w) >= SMALLEST:
        return "winograd"
    if layer == "conv3x3":
        tiles, taps, products = n * ceil(h / 4) * ceil(w / 4), 9, 36
    else:
        tiles, taps, products = n * ceil((h + 1) / 5) * ceil((w + 1) / 5), 16, 4 * 36
    saving = n * h * w * taps * c * k / (tiles * products * _whole(c, lanes) * _whole(k, lanes))
    speedup = LEFT[layer] * saving * tiles / (tiles + WEIGHT_TILES[layer] * sqrt(c * k))
    return "winograd" if speedup >= EXPECTED[lanes] else None


def _whole(channels: int, lanes: int) -> int:
    return ceil(channels / lanes) * lanes
