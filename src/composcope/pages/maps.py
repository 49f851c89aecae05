"""Maps as bytes for the page: small, on a known scale, ready to be drawn row by row from the top."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Shaped
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from composcope.pages.page import packed

MOST = 64  # pixels per side of a map that is embedded
LONGEST = 512  # the same for the one row of a single factor
NOTHING = 255  # the level of a pixel without a value; the others are 0..254
Plane = Shaped[Tensor, "... x y"]
Picture = Shaped[Tensor, "... rows columns"]


def plane(values: Shaped[Tensor, "... points"], sizes: tuple[int, ...]) -> Plane:
    """Numbers over the points as a map of the first two factors, the mean over the others; one row if not a grid."""
    if len(sizes) < 2 or values.shape[-1] != math.prod(sizes):
        return values[..., None]
    grid = values.reshape(*values.shape[:-1], *sizes)
    return grid.flatten(values.ndim + 1).mean(-1) if len(sizes) > 2 else grid


def levels(values: Tensor, low: float, high: float) -> np.ndarray:
    """low..high as 0..254, clipped to that range; 255 where the value is not finite."""
    scaled = (values.double() - low) / (high - low if high > low else 1.0)
    whole = (scaled.clamp(0, 1) * 254).round()
    return torch.where(values.isfinite(), whole, NOTHING).to(torch.uint8).numpy()


def upright(maps: Plane) -> Picture:
    """(x, y) maps as pictures: rows from the top, columns from the left; averaged where they are large."""
    turned = maps.transpose(-1, -2).flip(-2)
    height, width = turned.shape[-2:]
    most = MOST if height > 1 else LONGEST
    if max(height, width) <= most:
        return turned
    flat = turned.reshape(-1, 1, height, width).double()
    small = adaptive_avg_pool2d(flat, (min(height, most), min(width, most)))
    return small.reshape(*turned.shape[:-2], *small.shape[-2:])


def packed_map(maps: Plane, low: float, high: float) -> dict[str, Any]:
    """Maps over the plane, packed, with the values of the first and last level."""
    return {**packed(levels(upright(maps), low, high)), "low": low, "high": high}


def outline(mask: Bool[Tensor, "x y"]) -> str:
    """The line around the true cells as an SVG path over a picture of one unit per cell.

    >>> outline(torch.tensor([[False, True], [False, False]]))
    'M0 0H1M0 1H1M0 0V1M1 0V1'
    """
    rows = np.pad(mask.T.flip(0).numpy().astype(np.int8), 1)
    across = [f"M{start} {line}H{end}" for line, start, end in _runs(np.diff(rows, axis=0)[:, 1:-1])]
    down = [f"M{line} {start}V{end}" for line, start, end in _runs(np.diff(rows, axis=1)[1:-1].T)]
    return "".join(across + down)


def _runs(edges: np.ndarray) -> list[tuple[int, int, int]]:
    """Line number, start and end of every unbroken run of edges."""
    runs = []
    for line, row in enumerate(edges):
        turns = np.flatnonzero(np.diff(np.pad((row != 0).astype(np.int8), 1)))
        runs += [(line, int(start), int(end)) for start, end in zip(turns[::2], turns[1::2], strict=True)]
    return runs
