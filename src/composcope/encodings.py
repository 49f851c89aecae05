"""Latents -> code, the decoder's input. Each factor has its own block of units; the blocks are concatenated."""

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
    """A code for each factor. A custom encoding implements `size` and `code`, both for one factor.

    - `differentiable`: whether the code is differentiable in the latent.
    - `absent`: the code of an absent factor, "zeros" or the "mean" code; None if the code cannot represent absence.
    """

    differentiable: ClassVar[bool] = True
    absent: Absent | None = None

    @abstractmethod
    def size(self, factor: Factor) -> int: ...

    @abstractmethod
    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        """The code of the values, none of which is NaN."""

    def check(self, factors: Sequence[Factor]) -> None:
        """Raise ValueError if the encoding does not fit these factors."""

    def code_sizes(self, factors: Sequence[Factor]) -> tuple[int, ...]:
        return tuple(self.size(factor) for factor in factors)

    def encode(self, latents: Latents, factors: Sequence[Factor]) -> Code:
        """The factors' codes, concatenated: (n, sum(code_sizes)).

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
        """The nearest grid combination: for each factor, the value whose code is closest."""
        nearest_values = []
        for part, factor in zip(codes.split(self.code_sizes(factors), 1), factors, strict=True):
            values = factor.tensor().to(codes)
            nearest_values.append(values[torch.cdist(part, self.encode_factor(values, factor)).argmin(1)])
        return torch.stack(nearest_values, 1)

    def encode_factor(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        """One factor's code; NaN values get the code of an absent factor."""
        missing = values.isnan()
        if not missing.any():
            return self.code(values, factor)
        if self.absent is None:
            raise ValueError(
                f"{self} cannot represent an absent factor, and {factor.name!r} is absent; use Bump or OneHot"
            )
        # Replace NaN before encoding. Masking only the result is not enough: `torch.where` passes a zero gradient to
        # the branch not taken, and 0 * NaN is NaN.
        codes = self.code(torch.where(missing, factor.values[0], values), factor)
        absent_code = torch.zeros_like(codes[0])
        if self.absent == "mean":
            absent_code = self.code(factor.tensor().to(values), factor).mean(0)
        return torch.where(missing[:, None], absent_code, codes)


@register("onehot")
class OneHot(Encoding):
    """One unit per value: 1 for the value itself, 0 for the others."""

    absent: Absent = "zeros"

    differentiable: ClassVar[bool] = False

    def size(self, factor: Factor) -> int:
        return factor.size

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        index = factor.index(values)
        if (index < 0).any():
            unlisted = values[index < 0][0].item()
            raise ValueError(
                f"OneHot encodes listed values only: {factor.name} = {unlisted:g} is not one of {factor.describe()}"
            )
        return torch.nn.functional.one_hot(index, factor.size).to(values.dtype)


@register("bump")
class Bump(Encoding):
    """Unit i is exp(-(x - v_i)^2 / (2 width^2)), with v_i the factor's values and width in grid steps."""

    width: Annotated[float, Field(gt=0)] = 1.0
    absent: Absent = "zeros"

    def size(self, factor: Factor) -> int:
        return factor.size

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _refuse_categorical(self, factor)
        steps = factor.difference(values[:, None], factor.tensor().to(values)) / factor.step
        return torch.exp(-steps.square() / (2 * self.width**2))


@register("positional")
class Positional(Encoding):
    """sin and cos of x base^(-i / pairs), i = 0 .. pairs - 1, with x in grid steps.

    A circular factor uses the harmonics 1 .. pairs of its angle instead, so that the code is periodic.
    """

    pairs: Annotated[int, Field(ge=1, le=4096)] = 14
    base: Annotated[float, Field(gt=1)] = 10000.0
    absent: Absent = "zeros"

    def size(self, factor: Factor) -> int:
        return 2 * self.pairs

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _refuse_categorical(self, factor)
        order = torch.arange(self.pairs, dtype=values.dtype, device=values.device)
        if factor.period is not None:
            phases = values[:, None] * (order + 1) * (2 * math.pi / factor.period)
        else:
            phases = ((values - factor.values[0]) / factor.step)[:, None] * self.base ** (-order / self.pairs)
        return torch.cat([phases.sin(), phases.cos()], 1)


@register("rate")
class Rate(Encoding):
    """The value itself, one unit per factor: raw, or scaled to 0..1 ("unit") or -1..1 ("centred")."""

    scale: Literal["raw", "unit", "centred"] = "raw"

    def size(self, factor: Factor) -> int:
        return 1

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _refuse_categorical(self, factor)
        if self.scale == "raw":
            return values[:, None]
        span = (factor.values[-1] - factor.values[0]) or 1.0  # a factor with a single value spans 0
        unit = (values[:, None] - factor.values[0]) / span
        return unit if self.scale == "unit" else 2 * unit - 1


@register("thermometer")
class Thermometer(Encoding):
    """Unit i rises linearly from 0 to 1 between value i and value i + 1, and stays at 1 above."""

    def size(self, factor: Factor) -> int:
        return max(factor.size - 1, 1)

    def code(self, values: Float[Tensor, "n"], factor: Factor) -> Float[Tensor, "n size"]:
        _refuse_categorical(self, factor)
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
            raise ValueError(f"Circle encodes circular factors; {factor.name!r} is {factor.kind} (use Bump or OneHot)")
        angle = values * (2 * math.pi / factor.period)
        return torch.stack([angle.cos(), angle.sin()], 1)


@register("per_factor")
class PerFactor(Encoding):
    """A separate encoding for each factor: `PerFactor({"angle": Circle(), "digit": OneHot()})`."""

    encodings: Annotated[Mapping[str, Encoding], Named]

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        return all(encoding.differentiable for encoding in self.encodings.values())

    def check(self, factors: Sequence[Factor]) -> None:
        names = [factor.name for factor in factors]
        for name in self.encodings:
            if name not in names:
                hint = nearest(name, names)
                raise ValueError(f"no factor is named {name!r}{hint}; the factors are {', '.join(names)}")

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

    # The generated hash fails on a dict, and equal dicts may differ in order.
    def __hash__(self) -> int:
        return hash(frozenset(self.encodings.items()))


def _refuse_categorical(encoding: Encoding, factor: Factor) -> None:
    if factor.kind == "categorical":
        raise ValueError(f"{encoding} needs ordered values; factor {factor.name!r} is categorical (use OneHot)")
