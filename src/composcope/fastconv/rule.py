"""When a kernel pays, found by measuring (benchmarks/kernels.py)."""

from math import ceil

NARROW = 4  # up to so many output channels the direct kernel is the faster one
NARROW_INPUT = 4096  # values in the batch, below which calling it costs as much as it saves
SAVING = 1.75  # of multiplications, below which the transforms eat it up
WORK = {"conv3x3": 96, "upsample2x": 140}  # tiles times saving, below which the weight's transform does


def best_kernel(layer: str, n: int, c: int, k: int, h: int, w: int) -> str | None:
    """The kernel for n images of c channels and h x w pixels to k channels, or None for the library.

    saving = multiplications of the direct convolution / of the transformed one, over whole tiles and vectors
    """
    if layer == "conv3x3" and k <= NARROW:
        return "narrow" if n * c * h * w >= NARROW_INPUT else None
    if layer == "conv3x3":
        tiles, taps, products = ceil(h / 4) * ceil(w / 4), 9, 36
    else:
        tiles, taps, products = ceil((h + 1) / 5) * ceil((w + 1) / 5), 16, 4 * 36
    saving = h * w * taps * c * k / (tiles * products * _whole(c) * _whole(k))
    return "winograd" if saving >= SAVING and n * tiles * saving >= WORK[layer] else None


def _whole(channels: int) -> int:
    return ceil(channels / 8) * 8
