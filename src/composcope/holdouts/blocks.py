"""Blocks of values of any factors: numbers, names and ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from composcope.components import Listed, Named, nearest, register
from composcope.factors import Factor, Latents, column
from composcope.holdouts.regions import Factors, Holdout, Mask, named_column

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"\s*({NUMBER})\s*\.\.\s*({NUMBER})\s*")


def _as_values(given: Any) -> Any:
    """One value is a list of one; a Python range is its numbers."""
    return tuple(given) if isinstance(given, (list, tuple, range)) else (given,)


Values = Annotated[tuple[float | str, ...], BeforeValidator(_as_values), Field(min_length=1)]
Block = Annotated[Mapping[str, Values], Named, Field(min_length=1)]


def selected(values: Sequence[float | str], latents: Tensor, name: str, factor: Factor | None) -> Mask:
    """Which latents of a factor are among the values."""
    inside = torch.zeros(len(latents), dtype=torch.bool, device=latents.device)
    for value in values:
        if isinstance(value, str):
            inside |= _named(value, latents, name, factor)
        else:
            # Values such as i / 3 are rounded differently depending on how they were computed, hence the tolerance.
            inside |= (latents - value).abs() <= 1e-4 * (factor.step if factor is not None else 1.0)
    return inside


def _named(text: str, latents: Tensor, name: str, factor: Factor | None) -> Mask:
    if factor is not None and text in (factor.names or ()):
        assert factor.names is not None
        return selected((factor.values[factor.names.index(text)],), latents, name, factor)
    match = RANGE.fullmatch(text)
    if match is None:
        if factor is None:
            raise ValueError(f"{name} = {text!r} is a name: call contains(latents, task.factors)")
        raise ValueError(f"{name} = {text!r} is not a value{nearest(text, factor.names or ())}; {_allowed(factor)}")
    lo, hi = map(float, match.groups())
    if lo <= hi:
        return (latents >= lo) & (latents <= hi)
    if factor is None or factor.period is None:
        raise ValueError(f"{name} = {text!r}: lo = {lo:g} is above hi = {hi:g}; only a circular factor goes round")
    return (latents >= lo) | (latents <= hi)


def _allowed(factor: Factor) -> str:
    end = "" if factor.names else f", or a range such as '{factor.values[0]:g}..{factor.values[-1]:g}'"
    return f"the values are {factor.describe()}{end}"


def _check(block: Mapping[str, Sequence[float | str]], factors: Sequence[Factor]) -> None:
    """Every entry must choose at least one of the factor's values."""
    for name, values in block.items():
        factor = factors[column(factors, name)]
        for value in values:
            if not selected((value,), factor.tensor(), name, factor).any():
                raise ValueError(f"{name} = {value} chooses none of the factor's values; {_allowed(factor)}")


def _insides(block: Mapping[str, Sequence[float | str]], latents: Latents, factors: Factors) -> list[Mask]:
    """For each factor that the block names, which latents are in it."""
    masks = []
    for name, values in block.items():
        index = named_column(name, tuple(block), latents, factors)
        masks.append(selected(values, latents[:, index], name, None if factors is None else factors[index]))
    return masks


def _frozen(block: Mapping[str, Sequence[float | str]]) -> frozenset[Any]:
    return frozenset(block.items())


@register("orthotope")
class Orthotope(Holdout):
    """Every combination in one of the blocks; a block lists values of any of the factors, and the others are free.

    A value is a number, a category's name, or a range "lo..hi" with both ends included, which goes round a circular
    factor if lo is above hi. `Box` is one block with one range per factor.

    >>> from composcope.factors import Factor
    >>> factors = (Factor("x", range(4)), Factor("shape", ("disc", "heart")))
    >>> holdout = Orthotope([{"x": "1..2", "shape": "heart"}, {"x": [0, 3], "shape": "disc"}])
    >>> holdout.contains(torch.tensor([[1.0, 1.0], [1.0, 0.0], [3.0, 0.0]]), factors).tolist()
    [True, False, True]
    """

    blocks: Annotated[tuple[Block, ...], Listed, Field(min_length=1, max_length=1000)]

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.stack([torch.stack(_insides(block, latents, factors)).all(0) for block in self.blocks]).any(0)

    def check(self, factors: Sequence[Factor]) -> None:
        for block in self.blocks:
            _check(block, factors)

    # The generated hash fails on a dict, and equal dicts may differ in order.
    def __hash__(self) -> int:
        return hash(tuple(map(_frozen, self.blocks)))


@register("pairs")
class Pairs(Holdout):
    """Every combination with at least two of the named factors in their blocks, whatever the other factors are.

    With two names this is one block. With more, each two of them are held out together: {x, y, shape} holds out x with
    y, x with shape and y with shape. Values are written as for `Orthotope`.

    >>> holdout = Pairs({"x": "1..2", "y": 3, "z": 0})
    >>> holdout.contains(torch.tensor([[1.0, 3.0, 5.0], [1.0, 0.0, 0.0], [1.0, 0.0, 5.0]])).tolist()
    [True, True, False]
    """

    block: Annotated[Mapping[str, Values], Named, Field(min_length=2)]

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        return torch.stack(_insides(self.block, latents, factors)).sum(0) >= 2

    def check(self, factors: Sequence[Factor]) -> None:
        _check(self.block, factors)

    def __hash__(self) -> int:
        return hash(_frozen(self.block))
