"""Try the compiled kernels out: `python trial.py kernels.so` ends with 0 if layers of ones give the known numbers.

It is run in a process of its own, since kernels that were compiled wrongly may crash, and without the package, since
it has to be quick.
"""

import ctypes
import sys

LANES = (4, 8, 16)
KNOWN = (("winograd", 0, 9), ("winograd", 1, 4), ("narrow", 0, 9))  # kernel, doubling, taps inside the image
BESIDE_SIXTEEN = (("winograd8", 0, 9), ("winograd8", 1, 4))
IMAGES, CHANNELS, SIZE = 2, 3, 6


def floats(count: int, value: float) -> "ctypes.Array[ctypes.c_float]":
    return (ctypes.c_float * count)(*[value] * count)


def answers(library: ctypes.CDLL, kernel: str, doubling: int, taps: int) -> bool:
    """Whether a layer of ones, and its gradient, are what can be counted by hand."""
    n, c, size = IMAGES, CHANNELS, SIZE
    out = size * (1 + doubling)
    shape = (ctypes.c_long * 7)(n, c, c, size, size, doubling, 1)
    x, weight, bias = floats(n * c * size**2, 1), floats(c * c * (4 if doubling else 3) ** 2, 1), floats(c, 0.5)
    y, gy = floats(n * c * out**2, 0), floats(n * c * out**2, 1)
    gx, gw, gb = floats(len(x), 0), floats(len(weight), 0), floats(c, 0)
    count = getattr(library, f"composcope_{kernel}_scratch")
    count.restype = ctypes.c_long
    scratch = floats(count(shape), 0)
    getattr(library, f"composcope_{kernel}_forward")(shape, x, weight, bias, 1, y, scratch)
    getattr(library, f"composcope_{kernel}_backward")(shape, gy, y, x, weight, gx, gw, gb, scratch)
    inside, middle = out * (out // 2) + out // 2, size * (size // 2) + size // 2
    edges = 1 if doubling else 4
    wanted = [(y[inside], taps * c + 0.5), (y[0], edges * c + 0.5), (gb[0], n * out**2)]
    wanted += [(gx[middle], (16 if doubling else 9) * c)]
    wanted += [] if doubling else [(gw[4], n * size**2)]
    return all(abs(value - answer) < 1e-3 * answer for value, answer in wanted)


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    if library.composcope_lanes() not in LANES:
        sys.exit(f"it has {library.composcope_lanes()} lanes")
    for kernel, doubling, taps in (*KNOWN, *(BESIDE_SIXTEEN if library.composcope_lanes() == 16 else ())):
        if not answers(library, kernel, doubling, taps):
            sys.exit(f"{kernel} kernels give wrong numbers")


if __name__ == "__main__":
    main()
