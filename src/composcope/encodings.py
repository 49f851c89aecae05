"""Latents -> code: how a decoder is told what to draw. Each factor has its own coordinates, side by side."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from composcope.components import Component, Named, nearest, register
from composcope.factors import Factor, Latents

Code = Float[Tensor, "n code"]
Absent = Literal["zeros", "mean"]


class Encoding(Component):
    """A code for each factor. An encoding of your own gives `size` and `code`, both for one factor.

    - `differentiable`: whether the code changes smoothly with the latent, so that derivatives along it exist.
    - `absent`: what stands for an absent factor, "zeros" or "mean"; None in a code that has no room for absence.
    """

    differentiable: ClassVar[bool] = True
    absent: Absent | None = None

    @abstractmethod
    def size(self, factor: Factor) -> int: ...

    @abstractmethod
    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        """The code of values that are all present."""

    def check(self, factors: Sequence[Factor]) -> None:
        """Raise ValueError when the encoding is not meant for these factors."""

    def code_sizes(self, factors: Sequence[Factor]) -> tuple[int, ...]:
        return tuple(self.size(factor) for factor in factors)

    def encode(self, latents: Latents, factors: Sequence[Factor]) -> Code:
        """The factors' codes side by side, (n, sum(code_sizes)).

        >>> from composcope.tasks.bump import BumpTask
        >>> task = BumpTask(28)
        >>> Bump().encode(task.grid(), task.factors).shape
        torch.Size([784, 56])
        """
        if latents.ndim != 2 or latents.shape[1] != len(factors):
            raise ValueError(f"{self} encodes {len(factors)} factors; latents have shape {tuple(latents.shape)}")
        return torch.cat(
            [self.encode_factor(values, f) for values, f in zip(latents.unbind(1), factors, strict=True)], 1
        )

    def decode(self, codes: Code, factors: Sequence[Factor]) -> Latents:
        """The grid's combination with the nearest code, factor by factor."""
        found = []
        for part, factor in zip(codes.split(self.code_sizes(factors), 1), factors, strict=True):
            values = factor.tensor().to(codes)
            found.append(values[torch.cdist(part, self.encode_factor(values, factor)).argmin(1)])
        return torch.stack(found, 1)

    def encode_factor(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        """One factor's code, with absent values put in place of NaN."""
        missing = values.isnan()
        if not missing.any():
            return self.code(values, factor)
        if self.absent is None:
            raise ValueError(
                f"{self} has no room for an absent factor, and {factor.name!r} is absent; use Bump or OneHot"
            )
        # Masked before coding, so that no NaN reaches a gradient.
        codes = self.code(torch.where(missing, factor.values[0], values), factor)
        stand_in = torch.zeros_like(codes[0])
        if self.absent == "mean":
            stand_in = self.code(factor.tensor().to(values), factor).mean(0)
        return torch.where(missing[:, None], stand_in, codes)


@register("onehot")
class OneHot(Encoding):
    """One unit a value: 1 for the value itself, 0 for the others."""

    absent: Absent = "zeros"

    differentiable: ClassVar[bool] = False

    def size(self, factor: Factor) -> int:
        return factor.size

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        place = factor.index(values)
        if (place < 0).any():
            stranger = values[place < 0][0].item()
            raise ValueError(
                f"OneHot codes listed values only: {factor.name} = {stranger:g} is none of {factor.describe()}"
            )
        return torch.nn.functional.one_hot(place, factor.size).to(values.dtype)


@register("bump")
class Bump(Encoding):
    """Unit i is exp(-(x - v_i)^2 / (2 width^2)), with v_i the factor's values and width in steps of the grid."""

    width: Annotated[float, Field(gt=0)] = 1.0
    absent: Absent = "zeros"

    def size(self, factor: Factor) -> int:
        return factor.size

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _needs_distances(self, factor)
        steps = factor.difference(values[:, None], factor.tensor().to(values)) / factor.step
        return torch.exp(-steps.square() / (2 * self.width**2))


@register("positional")
class Positional(Encoding):
    """sin and cos of x base^(-i / pairs), i = 0 .. pairs - 1, x in steps of the grid.

    A circular factor takes whole multiples 1 .. pairs of its own angle instead.
    """

    pairs: Annotated[int, Field(ge=1)] = 14
    base: Annotated[float, Field(gt=1)] = 10000.0
    absent: Absent = "zeros"

    def size(self, factor: Factor) -> int:
        return 2 * self.pairs

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _needs_distances(self, factor)
        order = torch.arange(self.pairs, dtype=values.dtype, device=values.device)
        if factor.period is not None:
            phases = values[:, None] * (order + 1) * (2 * math.pi / factor.period)
        else:
            phases = ((values - factor.values[0]) / factor.step)[:, None] * self.base ** (-order / self.pairs)
        return torch.cat([phases.sin(), phases.cos()], 1)


@register("rate")
class Rate(Encoding):
    """The value itself, one number a factor: raw, or scaled to 0..1 ("unit") or -1..1 ("centred")."""

    scale: Literal["raw", "unit", "centred"] = "raw"

    def size(self, factor: Factor) -> int:
        return 1

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        if factor.kind == "categorical":
            raise ValueError(f"Rate needs a factor with distances; {factor.name!r} is categorical (use OneHot)")
        if self.scale == "raw":
            return values[:, None]
        span = (factor.values[-1] - factor.values[0]) or 1.0
        unit = (values[:, None] - factor.values[0]) / span
        return unit if self.scale == "unit" else 2 * unit - 1


@register("thermometer")
class Thermometer(Encoding):
    """Unit i rises from 0 to 1 as x passes from value i to value i + 1, and stays there."""

    def size(self, factor: Factor) -> int:
        return max(factor.size - 1, 1)

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _needs_distances(self, factor)
        if factor.kind == "circular":
            raise ValueError(f"Thermometer needs a factor with two ends; {factor.name!r} is circular (use Circle)")
        marks = factor.tensor().to(values)
        if factor.size == 1:
            return torch.zeros_like(values[:, None])
        return ((values[:, None] - marks[:-1]) / (marks[1:] - marks[:-1])).clamp(0, 1)


@register("circle")
class Circle(Encoding):
    """(cos, sin) of a circular factor's angle."""

    def size(self, factor: Factor) -> int:
        return 2

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        if factor.period is None:
            raise ValueError(f"Circle codes circular factors; {factor.name!r} is {factor.kind}")
        angle = values * (2 * math.pi / factor.period)
        return torch.stack([angle.cos(), angle.sin()], 1)


@register("per_factor")
class PerFactor(Encoding):
    """Each factor by an encoding of its own: `PerFactor({"angle": Circle(), "digit": OneHot()})`."""

    encodings: Annotated[Mapping[str, Encoding], Named]

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        return all(encoding.differentiable for encoding in self.encodings.values())

    def check(self, factors: Sequence[Factor]) -> None:
        names = [factor.name for factor in factors]
        for name in self.encodings:
            if name not in names:
                raise ValueError(f"no factor is named {name!r}{nearest(name, names)}; there are {', '.join(names)}")

    def of(self, factor: Factor) -> Encoding:
        if factor.name not in self.encodings:
            raise ValueError(f"PerFactor has no encoding for {factor.name!r}, only for {', '.join(self.encodings)}")
        return self.encodings[factor.name]

    def size(self, factor: Factor) -> int:
        return self.of(factor).size(factor)

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        return self.of(factor).code(values, factor)

    def encode_factor(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        return self.of(factor).encode_factor(values, factor)

    def __hash__(self) -> int:
        return hash(frozenset(self.encodings.items()))


def _needs_distances(encoding: Encoding, factor: Factor) -> None:
    if factor.kind == "categorical":
        raise ValueError(f"{encoding} needs a factor with distances; {factor.name!r} is categorical (use OneHot)")
