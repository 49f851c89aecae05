"""Regions of latent space that are held out, and their algebra."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Bool
from pydantic import Field
from torch import Tensor

from composcope.components import Component, Listed, Named, register
from composcope.factors import Factor, Latents, column

Mask = Bool[Tensor, "n"]
Factors = Sequence[Factor] | None


class Holdout(Component):
    """A region of latent space. A custom holdout implements `contains`; bounds are inclusive by convention."""

    @abstractmethod
    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        """Which combinations are held out; a holdout that names factors finds their columns in `factors`."""

    def check(self, factors: Sequence[Factor]) -> None:
        """Raise ValueError when the region does not fit these factors."""

    def __or__(self, other: Holdout) -> Holdout:
        return Union((self, other))

    def __and__(self, other: Holdout) -> Holdout:
        return Intersection((self, other))

    def __invert__(self) -> Holdout:
        return Complement(self)


@register("nothing")
class Nothing(Holdout):
    """Holds out no combination: the control."""

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.zeros(len(latents), dtype=torch.bool, device=latents.device)


@register("square")
class Square(Holdout):
    """lo <= x <= hi and lo <= y <= hi, where x and y are the first two factors.

    >>> Square(6, 22).contains(torch.tensor([[6.0, 22.0], [5.0, 10.0]])).tolist()
    [True, False]
    """

    lo: float
    hi: float

    def __post_init__(self) -> None:
        _check_order(self.lo, self.hi)

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return ((latents[:, :2] >= self.lo) & (latents[:, :2] <= self.hi)).all(1)

    def check(self, factors: Sequence[Factor]) -> None:
        for factor in _first_two(self, factors):
            _check_inside(factor, lo=self.lo, hi=self.hi)


@register("corner")
class Corner(Holdout):
    """x >= lo and y >= lo, where x and y are the first two factors; for other corners one or both become <=.

    >>> Corner(6, "lower left").contains(torch.tensor([[6.0, 2.0], [7.0, 2.0]])).tolist()
    [True, False]
    """

    lo: float
    corner: Literal["upper right", "upper left", "lower right", "lower left"] = "upper right"

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        x, y = latents[:, 0], latents[:, 1]
        right = x >= self.lo if "right" in self.corner else x <= self.lo
        upper = y >= self.lo if "upper" in self.corner else y <= self.lo
        return right & upper

    def check(self, factors: Sequence[Factor]) -> None:
        for factor in _first_two(self, factors):
            _check_inside(factor, lo=self.lo)


@register("cross")
class Cross(Holdout):
    """lo <= x <= hi or lo <= y <= hi: holds out whole factor values, so it tests extrapolation, not composition."""

    lo: float
    hi: float

    def __post_init__(self) -> None:
        _check_order(self.lo, self.hi)

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return ((latents[:, :2] >= self.lo) & (latents[:, :2] <= self.hi)).any(1)

    def check(self, factors: Sequence[Factor]) -> None:
        for factor in _first_two(self, factors):
            _check_inside(factor, lo=self.lo, hi=self.hi)


@register("interval")
class Interval(Holdout):
    """One factor between lo and hi, with either end open or closed.

    >>> gap = Interval("angle", 160, 200, closed="neither")
    >>> gap.contains(torch.tensor([[160.0], [170.0]])).tolist()
    [False, True]
    """

    factor: str
    lo: float
    hi: float
    closed: Literal["both", "left", "right", "neither"] = "both"

    def __post_init__(self) -> None:
        _check_order(self.lo, self.hi)

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        value = latents[:, named_column(self.factor, (self.factor,), latents, factors)]
        above = value >= self.lo if self.closed in ("both", "left") else value > self.lo
        below = value <= self.hi if self.closed in ("both", "right") else value < self.hi
        return above & below

    def check(self, factors: Sequence[Factor]) -> None:
        _check_inside(factors[column(factors, self.factor)], lo=self.lo, hi=self.hi)


Bounds = Annotated[tuple[float, float], Listed]


@register("box")
class Box(Holdout):
    """Every named factor within its bounds, for any number of factors.

    >>> Box({"x": (6, 22), "y": (6, 22)}).contains(torch.tensor([[6.0, 22.0]])).tolist()
    [True]
    """

    bounds: Annotated[Mapping[str, Bounds], Named]

    def __post_init__(self) -> None:
        if not self.bounds:
            raise ValueError("bounds: name at least one factor, or use Nothing()")
        for lo, hi in self.bounds.values():
            _check_order(lo, hi)

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        inside = torch.ones(len(latents), dtype=torch.bool, device=latents.device)
        for name, (lo, hi) in self.bounds.items():
            value = latents[:, named_column(name, tuple(self.bounds), latents, factors)]
            inside &= (value >= lo) & (value <= hi)
        return inside

    def check(self, factors: Sequence[Factor]) -> None:
        for name, (lo, hi) in self.bounds.items():
            _check_inside(factors[column(factors, name)], lo=lo, hi=hi)

    # The generated hash fails on a dict, and equal dicts may differ in order.
    def __hash__(self) -> int:
        return hash(frozenset(self.bounds.items()))


Parts = Annotated[tuple[Holdout, ...], Listed, Field(min_length=1, max_length=1000)]


@register("union")
class Union(Holdout):
    """Held out by any of the parts: `a | b`."""

    of: Parts

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.stack([part.contains(latents, factors) for part in self.of]).any(0)

    def check(self, factors: Sequence[Factor]) -> None:
        for part in self.of:
            part.check(factors)


@register("intersection")
class Intersection(Holdout):
    """Held out by every part: `a & b`."""

    of: Parts

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.stack([part.contains(latents, factors) for part in self.of]).all(0)

    def check(self, factors: Sequence[Factor]) -> None:
        for part in self.of:
            part.check(factors)


@register("complement")
class Complement(Holdout):
    """Held out wherever the part is not: `~a`."""

    of: Holdout

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return ~self.of.contains(latents, factors)

    def check(self, factors: Sequence[Factor]) -> None:
        self.of.check(factors)


def _check_order(lo: float, hi: float) -> None:
    if lo > hi:
        raise ValueError(f"lo = {lo:g} is above hi = {hi:g}; lo must not exceed hi")


def _check_inside(factor: Factor, **bounds: float) -> None:
    low, high = factor.values[0], factor.values[-1]
    # A circular factor's last value is one step short of a full period, and bounds may go up to it.
    if factor.period is not None:
        high = low + factor.period
    for name, bound in bounds.items():
        if not low <= bound <= high:
            raise ValueError(f"{name} = {bound:g} is outside the range of factor {factor.name!r}, {low:g} to {high:g}")


def _first_two(holdout: Holdout, factors: Sequence[Factor]) -> Sequence[Factor]:
    if len(factors) < 2:
        raise ValueError(f"{holdout} needs two factors; the task has only {factors[0].name!r} (use Interval)")
    return factors[:2]


def named_column(name: str, names: Sequence[str], latents: Latents, factors: Factors) -> int:
    """The named factor's column; without `factors`, the holdout's names must match the columns one to one, in order."""
    if factors is not None:
        return column(factors, name)
    if latents.shape[1] != len(names):
        raise ValueError(
            f"factor {name!r} could be any of {latents.shape[1]} columns: call contains(latents, task.factors)"
        )
    return names.index(name)
