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


# With sixteen lanes 24 channels are padded to 32. A layer whose products grow by so much takes vectors of eight, which
# are then faster by up to a quarter (Zen 5, 24 channels: 1.78); at 1.4 and below they are slower.
PADDING = 1.7

# A compiled training step takes the kernel for every convolution, unless PyTorch's is expected to be twice as fast.
MIN_SPEEDUP = 0.5
MAX_SMALL = 10_000_000  # multiplications of a layer, in about 0.1 ms


def candidate(layer: str, c: int, k: int, lanes: int) -> str:
    """The kernel that comes into question for c to k channels."""
    if layer == "conv3x3" and k <= NARROW:
        return "narrow"
    products = [_whole(c, count) * _whole(k, count) for count in (lanes, 8)]
    return "winograd8" if lanes == 16 and products[0] >= PADDING * products[1] else "winograd"


@lru_cache(maxsize=256)
def best_kernel(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> str | None:
    """The kernel for n images of c channels and h x w pixels to k channels, or None for PyTorch's.

    >>> best_kernel("conv3x3", 32, 64, 64, 28, 28, lanes=8)
    'winograd'
    """
    kernel = candidate(layer, c, k, lanes)
    if kernel == "narrow":
        return kernel if n * c * h * w >= NARROW_INPUT else None
    taken = 8 if kernel == "winograd8" else lanes
    few = FEW.get(taken, range(0))
    if layer == "upsample2x" and c in few and k in few and min(h, w) >= SMALLEST:
        return kernel
    return kernel if expected_speedup(layer, n, c, k, h, w, taken) >= EXPECTED[taken] else None


def expected_speedup(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> float:
    """How many times as fast as PyTorch's a transformed convolution is expected to be.

    speed-up = left * saving * tiles / (tiles + weight tiles * sqrt(c k))
    saving   = multiplications of the direct convolution / of the transformed one, over whole tiles and vectors
    """
    if layer == "conv3x3":
        tiles, taps, products = n * ceil(h / 4) * ceil(w / 4), 9, 36
    else:
        tiles, taps, products = n * ceil((h + 1) / 5) * ceil((w + 1) / 5), 16, 4 * 36
    saving = n * h * w * taps * c * k / (tiles * products * _whole(c, lanes) * _whole(k, lanes))
    return LEFT[layer] * saving * tiles / (tiles + WEIGHT_TILES[layer] * sqrt(c * k))


def kernel_of_step(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> str | None:
    """The kernel for this layer in a compiled training step, or None if PyTorch would be so much faster.

    Of a small layer it never is: calling PyTorch's convolution and its gradient takes longer than the arithmetic.
    """
    kernel, taps = candidate(layer, c, k, lanes), 9 if layer == "conv3x3" else 16
    if kernel == "narrow" or n * h * w * taps * c * k <= MAX_SMALL:
        return kernel
    taken = 8 if kernel == "winograd8" else lanes
    return kernel if expected_speedup(layer, n, c, k, h, w, taken) >= MIN_SPEEDUP else None


def _whole(channels: int, lanes: int) -> int:
    return ceil(channels / lanes) * lanes
