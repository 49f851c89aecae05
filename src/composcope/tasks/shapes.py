"""Anti-aliased shapes: how much of each pixel a shape covers.

Each outline is a function of offsets from the shape's centre of mass, (u, v) in pixels, v upwards, and of the radius of
the circle around that centre in which the shape just fits; these broadcast against each other. Everything is made of
three parts: half-planes, slabs and discs, each of which falls from 1 to 0 over one pixel at its edge. Where parts
intersect they are multiplied, and where they join the greater counts.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Outline = Callable[[Tensor, Tensor, Tensor], Tensor]

# How high the centre of mass is: of a half disc above its flat side, in units of its radius; and of the heart above the
# centre of its square, in units of half that square's side, from the areas 4 (the square) and pi (both half discs).
DOME_CENTRE = 4 / (3 * math.pi)
HEART_CENTRE = math.pi * math.sqrt(0.5) * (1 + DOME_CENTRE) / (4 + math.pi)


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
    """Half a disc, flat below."""
    own = radius / math.hypot(1, DOME_CENTRE)
    from_flat = v + DOME_CENTRE * own
    return _round(u, from_flat, own) * _below(-from_flat)


def _heart(u: Tensor, v: Tensor, radius: Tensor) -> Tensor:
    """A square that stands on its corner, with a half disc on each of its upper sides; the corner is farthest away."""
    half = radius * HEART
    v = v + HEART_CENTRE * half
    right, left = (u + v) * math.sqrt(0.5), (v - u) * math.sqrt(0.5)
    discs = torch.maximum(_round(right - half, left, half), _round(right, left - half, half))
    return torch.maximum(_slab(right, half) * _slab(left, half), discs)


HEART = 1 / (math.sqrt(2) + HEART_CENTRE)  # half its square's side in a circle of radius 1
# By name: the outline, and its area in a circle of radius 1.
OUTLINES: dict[str, tuple[Outline, float]] = {
    "square": (_square, 2.0),
    "disc": (_round, math.pi),
    "triangle": (_triangle, 0.75 * math.sqrt(3)),
    "cross": (_cross, 2.0),  # two bars less what they share
    "ring": (_ring, 0.75 * math.pi),
    "heart": (_heart, (4 + math.pi) * HEART**2),
    "bar": (_bar, 1.2),
    "dome": (_dome, math.pi / 2 / (1 + DOME_CENTRE**2)),
}
SHAPES = tuple(OUTLINES)


def reach(shape: str) -> float:
    """The radius of the circle in which the shape just fits, in units of its scale.

    >>> reach("disc")
    1.0
    """
    return math.sqrt(math.pi / OUTLINES[shape][1])


def coverage(shape: str, u: Tensor, v: Tensor, scale: Tensor) -> Tensor:
    """How much of each pixel is covered by a shape whose area is pi scale^2."""
    return OUTLINES[shape][0](u, v, scale * reach(shape))
