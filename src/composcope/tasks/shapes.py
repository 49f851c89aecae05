"""Anti-aliased shapes: how much of each pixel a shape covers.

Each is a function of offsets from the shape's centre of mass, (u, v) in pixels, v upwards, and of the radius of the
circle around that centre in which the shape just fits; these broadcast against each other. Everything is made of three
parts: half-planes, slabs and discs, each of which falls from 1 to 0 over one pixel at its edge. Where parts intersect
they are multiplied, and where they join the greater counts.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Shape = Callable[[Tensor, Tensor, Tensor], Tensor]


def _below(distance: Tensor) -> Tensor:
    """The share of a pixel at this distance from a straight edge that is on its inner (negative) side."""
    return (0.5 - distance).clamp(0, 1)


def _slab(offset: Tensor, half: Tensor) -> Tensor:
    """The share of a pixel that is covered by |offset| <= half, exact even if the slab is thinner than a pixel."""
    return (torch.minimum(offset + 0.5, half) - torch.maximum(offset - 0.5, -half)).clamp(0, 1)


def _round(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    # The small number keeps the derivative at the centre finite.
    return _below((u.square() + v.square() + 1e-12).sqrt() - radius)


def _bar(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    """Three times as wide as high."""
    unit = radius / math.sqrt(10)
    return _slab(u, 3 * unit) * _slab(v, unit)


def _cross(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    return torch.maximum(_bar(u, v, radius), _bar(v, u, radius))


def _square(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    half = radius / math.sqrt(2)
    return _slab(u, half) * _slab(v, half)


def _triangle(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    """Equilateral, with a corner at the top; its edges are half a radius away."""
    slope, height = math.sqrt(0.75), radius / 2
    return _below(-v - height) * _below(slope * u + v / 2 - height) * _below(-slope * u + v / 2 - height)


def _ring(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    """The hole has half the radius."""
    return _round(u, v, radius) - _round(u, v, radius / 2)


def _dome(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    """Half a disc, flat below; its centre of mass is 4 / (3 pi) of its own radius above the flat side."""
    low = 4 / (3 * math.pi)
    own = radius / math.hypot(1, low)
    from_flat = v + low * own
    return _round(u, from_flat, own) * _below(-from_flat)


def _heart(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    """A square that stands on its corner, with a half disc on each of its upper sides.

    With half the square's side as unit, the centre of mass of a half disc is sqrt(1/2) (1 + 4 / (3 pi)) above the
    square's centre; the areas are 4 for the square and pi for both half discs. The lower corner is farthest away.
    """
    high = math.pi * math.sqrt(0.5) * (1 + 4 / (3 * math.pi)) / (4 + math.pi)
    half = radius / (math.sqrt(2) + high)
    v = v + high * half
    right, left = (u + v) * math.sqrt(0.5), (v - u) * math.sqrt(0.5)
    discs = torch.maximum(_round(right - half, left, half), _round(right, left - half, half))
    return torch.maximum(_slab(right, half) * _slab(left, half), discs)


SHAPES: dict[str, Shape] = {
    "square": _square,
    "disc": _round,
    "triangle": _triangle,
    "cross": _cross,
    "ring": _ring,
    "heart": _heart,
    "bar": _bar,
    "dome": _dome,
}
