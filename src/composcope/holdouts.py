"""Which combinations are withheld, and the proof that each value of each factor is still seen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool
from pydantic import Field
from torch import Tensor

from composcope.components import Component, Listed, Named, register
from composcope.errors import BadInput
from composcope.factors import Factor, Latents, column
from composcope.tasks.base import Task

Mask = Bool[Tensor, "n"]
Factors = Sequence[Factor] | None


class Holdout(Component):
    """A region of the latents. A holdout of your own gives `contains`; bounds are inclusive by convention."""

    @abstractmethod
    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        """Which combinations are withheld; `factors` tell a holdout by name where its columns are."""

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
    """Withholds no combination: the control."""

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.zeros(len(latents), dtype=torch.bool, device=latents.device)


@register("square")
class Square(Holdout):
    """lo <= x <= hi and lo <= y <= hi, of the first two factors.

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
    """x >= lo and y >= lo, of the first two factors; other corners turn one or both into <=.

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
    """lo <= x <= hi or lo <= y <= hi: withholds whole factor values, so it tests extrapolation, not composition."""

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
        value = latents[:, _column(self.factor, (self.factor,), latents, factors)]
        above = value >= self.lo if self.closed in ("both", "left") else value > self.lo
        below = value <= self.hi if self.closed in ("both", "right") else value < self.hi
        return above & below

    def check(self, factors: Sequence[Factor]) -> None:
        _check_inside(factors[column(factors, self.factor)], lo=self.lo, hi=self.hi)


Bounds = Annotated[tuple[float, float], Listed]


@register("box")
class Box(Holdout):
    """Every named factor within its bounds, any number of factors.

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
            value = latents[:, _column(name, tuple(self.bounds), latents, factors)]
            inside &= (value >= lo) & (value <= hi)
        return inside

    def check(self, factors: Sequence[Factor]) -> None:
        for name, (lo, hi) in self.bounds.items():
            _check_inside(factors[column(factors, name)], lo=lo, hi=hi)

    def __hash__(self) -> int:
        return hash(frozenset(self.bounds.items()))


Parts = Annotated[tuple[Holdout, ...], Listed, Field(min_length=1)]


@register("union")
class Union(Holdout):
    """Withheld by any part: `a | b`."""

    of: Parts

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.stack([part.contains(latents, factors) for part in self.of]).any(0)

    def check(self, factors: Sequence[Factor]) -> None:
        for part in self.of:
            part.check(factors)


@register("intersection")
class Intersection(Holdout):
    """Withheld by every part: `a & b`."""

    of: Parts

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.stack([part.contains(latents, factors) for part in self.of]).all(0)

    def check(self, factors: Sequence[Factor]) -> None:
        for part in self.of:
            part.check(factors)


@register("complement")
class Complement(Holdout):
    """Withheld where the part is not: `~a`."""

    of: Holdout

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return ~self.of.contains(latents, factors)

    def check(self, factors: Sequence[Factor]) -> None:
        self.of.check(factors)


@dataclass(frozen=True)
class Certificate:
    """What a split proves of itself: disjoint parts that cover the grid, and which factor values are never seen."""

    disjoint: bool
    covers: bool
    unseen: Mapping[str, tuple[float, ...]]
    withheld: int

    @property
    def composition(self) -> bool:
        """Whether the held-out part asks for composition: new combinations of values that are all seen."""
        return self.disjoint and self.covers and not self.unseen

    def __str__(self) -> str:
        if not self.withheld:
            return "nothing is withheld: every combination is seen"
        if self.composition:
            return "composition: seen and held-out are disjoint and cover the grid; every factor value is seen"
        gaps = "; ".join(f"{name} = {_short(values)}" for name, values in self.unseen.items())
        return f"not composition but extrapolation: never seen are {gaps}"


@dataclass(frozen=True)
class Split:
    """The grid in two: combinations that may be trained on, and those withheld."""

    latents: Latents
    mask: Mask
    certificate: Certificate

    @property
    def seen(self) -> Latents:
        return self.latents[~self.mask]

    @property
    def heldout(self) -> Latents:
        return self.latents[self.mask]


def split(task: Task, holdout: Holdout) -> Split:
    """Divide the task's grid by the holdout and certify the division.

    >>> from composcope.tasks.bump import BumpTask
    >>> parts = split(BumpTask(28), Square(6, 22))
    >>> len(parts.seen), len(parts.heldout), parts.certificate.composition
    (495, 289, True)
    """
    holdout.check(task.factors)
    latents = task.grid()
    mask = holdout.contains(latents, task.factors)
    if mask.all():
        raise BadInput(f"{holdout} withholds all {len(mask)} combinations; nothing is left to train on")
    if not mask.any() and not isinstance(holdout, Nothing):
        raise BadInput(f"{holdout} withholds none of the {len(mask)} combinations; use Nothing() if that is meant")
    return Split(latents, mask, certify(task.factors, latents, mask))


def certify(factors: Sequence[Factor], latents: Latents, mask: Mask) -> Certificate:
    """Check by counting, not by trust: how many combinations are on each side and on both, and which values on one."""
    combination = torch.zeros(len(latents), dtype=torch.long)
    unseen = {}
    for factor, latent in zip(factors, latents.unbind(1), strict=True):
        values, place = latent.unique(return_inverse=True)
        combination = combination * len(values) + place
        missing = (place[mask].bincount(minlength=len(values)) > 0) & (
            place[~mask].bincount(minlength=len(values)) == 0
        )
        if missing.any():
            unseen[factor.name] = tuple(values[missing].tolist())
    seen, heldout = combination[~mask].unique(), combination[mask].unique()
    disjoint = not torch.isin(seen, heldout).any()
    return Certificate(disjoint, len(seen) + len(heldout) == len(latents), unseen, len(heldout))


def _short(values: Sequence[float]) -> str:
    texts = [f"{value:g}" for value in values]
    return ", ".join(texts) if len(texts) <= 6 else f"{texts[0]}, {texts[1]}, ..., {texts[-1]}"


def _check_order(lo: float, hi: float) -> None:
    if lo > hi:
        raise ValueError(f"lo = {lo:g} is above hi = {hi:g}; bounds run from low to high")


def _check_inside(factor: Factor, **bounds: float) -> None:
    low, high = factor.values[0], factor.values[-1]
    if factor.period is not None:
        high = low + factor.period
    for name, bound in bounds.items():
        if not low <= bound <= high:
            raise ValueError(
                f"{name} = {bound:g} lies outside factor {factor.name!r}, which goes from {low:g} to {high:g}"
            )


def _first_two(holdout: Holdout, factors: Sequence[Factor]) -> Sequence[Factor]:
    if len(factors) < 2:
        raise ValueError(f"{holdout} needs two factors; there is only {factors[0].name!r} (use Interval)")
    return factors[:2]


def _column(name: str, names: Sequence[str], latents: Latents, factors: Factors) -> int:
    """Where the named factor is; without factors, the holdout's own names must be all the columns, in order."""
    if factors is not None:
        return column(factors, name)
    if latents.shape[1] != len(names):
        raise ValueError(
            f"factor {name!r} may be any of {latents.shape[1]} columns: call contains(latents, task.factors)"
        )
    return names.index(name)
