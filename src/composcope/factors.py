"""Factors of variation, and latents: one row per combination, one column per factor.

A latent is a real number in its factor's own units. NaN means that the factor is absent.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    model_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs
from torch import Tensor

Latents = Float[Tensor, "n factors"]
Kind = Literal["continuous", "circular", "categorical"]


def _as_tuple(values: object) -> tuple[object, ...]:
    if not isinstance(values, Iterable):
        raise ValueError("must be a list of numbers")
    return tuple(values)


def strictly_increasing(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values unchanged; raise ValueError unless each is larger than the one before it."""
    if any(later <= earlier for earlier, later in itertools.pairwise(values)):
        raise ValueError("a factor's values must be strictly increasing")
    return values


Values = Annotated[
    tuple[FiniteFloat, ...],
    BeforeValidator(_as_tuple),
    Field(min_length=1),
    AfterValidator(strictly_increasing),
]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), repr=False)
class Factor:
    """One independent way in which images vary: its name, its grid of values and its kind.

    - `kind`: "continuous" (values have distances), "circular" (wrapping after `period`) or "categorical" (labels only).

    - `names`: of a categorical factor's values, if these have names. Names may also be given as values, which then are
      0, 1, 2, ... in their order.

    >>> Factor("x", range(28))
    Factor("x", 0..27)
    >>> Factor("shape", ("square", "ellipse", "heart"))
    Factor("shape", square, ellipse, heart, categorical)
    """

    name: str
    values: Values
    kind: Kind = "continuous"
    period: FiniteFloat | None = None
    names: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _number_names(cls, data: Any) -> Any:
        """Values that are names become numbers, and the factor categorical."""
        if isinstance(data, ArgsKwargs):
            fields = {**dict(zip(("name", "values", "kind", "period", "names"), data.args, strict=False))}
            if len(data.args) > 5 or fields.keys() & (data.kwargs or {}).keys():
                return data
            data = {**fields, **(data.kwargs or {})}
        values = data.get("values") if isinstance(data, dict) else None
        if not isinstance(values, str) and isinstance(values, Iterable):
            values = tuple(values)
            data = {**data, "values": values}
            if values and all(isinstance(value, str) for value in values):
                data = {"kind": "categorical", **data, "values": range(len(values)), "names": values}
        return data

    @model_serializer(mode="wrap")
    def _without_no_names(self, serialize: Callable[[Any], Any]) -> dict[str, Any]:
        """Names that there are not are not written: files of tables stay as they were, and so do their checksums."""
        data: dict[str, Any] = serialize(self)
        return data if self.names is not None else {key: value for key, value in data.items() if key != "names"}

    def __post_init__(self) -> None:
        if self.names is not None and (
            self.kind != "categorical" or len(set(self.names)) != len(self.names) or len(self.names) != len(self.values)
        ):
            raise ValueError(
                f"factor {self.name!r}: names = {self.names} with {len(self.values)} values, kind = {self.kind!r}; "
                "a categorical factor may have one distinct name per value"
            )
        if (self.kind == "circular") != (self.period is not None):
            raise ValueError(
                f"factor {self.name!r}: kind = {self.kind!r} with period = {self.period}; "
                "a circular factor needs a period, and other factors have none"
            )
        # 0 and 360 degrees are the same angle: a grid that includes both would hold the same image twice.
        if self.period is not None and self.values[-1] - self.values[0] >= self.period:
            raise ValueError(f"factor {self.name!r}: values span a whole period of {self.period:g}; drop the last one")

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def step(self) -> float:
        """Mean distance between neighbouring values, the unit of encoding widths (1 for a single value)."""
        if self.size == 1:
            return 1.0
        return (self.values[-1] - self.values[0]) / (self.size - 1)

    def tensor(self) -> Float[Tensor, "values"]:
        return torch.tensor(self.values, dtype=torch.float32)

    def difference(self, a: Tensor, b: Tensor) -> Tensor:
        """a - b, the short way round for a circular factor."""
        if self.period is None:
            return a - b
        return torch.remainder(a - b + self.period / 2, self.period) - self.period / 2

    def index(self, latents: Float[Tensor, "n"]) -> Tensor:
        """The index of each latent among the factor's values; -1 where it equals none of them (NaN included)."""
        values = self.tensor().to(latents)
        # Values such as i / 3 are rounded differently depending on how they were computed, hence the tolerance.
        tolerance = 1e-4 * self.step
        index = torch.searchsorted(values, latents.contiguous() - tolerance).clamp(max=self.size - 1)
        return torch.where((latents - values[index]).abs() <= tolerance, index, -1)

    def label(self, value: float) -> str | float:
        """The value's name, or the value itself where it has none.

        >>> Factor("shape", ("square", "heart")).label(1.0)
        'heart'
        """
        index = int(self.index(torch.tensor([value]))[0]) if self.names else -1
        return self.names[index] if self.names and index >= 0 else value

    def describe(self) -> str:
        """A short list of the values: 0..27, or 0.25, 0.5, 1.

        >>> Factor("brightness", (0.25, 0.5, 1.0)).describe()
        '0.25, 0.5, 1'
        """
        if self.names is not None:
            return ", ".join(self.names)
        steps = {later - earlier for earlier, later in zip(self.values, self.values[1:], strict=False)}
        if self.size > 3 and steps == {1.0}:
            return f"{self.values[0]:g}..{self.values[-1]:g}"
        if self.size > 6:
            return f"{self.values[0]:g}, {self.values[1]:g}, ..., {self.values[-1]:g}"
        return ", ".join(f"{value:g}" for value in self.values)

    def __repr__(self) -> str:
        kind = "" if self.kind == "continuous" else f", {self.kind}"
        return f'Factor("{self.name}", {self.describe()}{kind})'


def named(name: str, values: Sequence[str]) -> Factor:
    """A categorical factor whose values have names."""
    return Factor(name, tuple(map(float, range(len(values)))), "categorical", names=tuple(values))


def latent_grid(factors: Sequence[Factor]) -> Latents:
    """Every combination of the factors' values; the first factor varies slowest.

    >>> latent_grid([Factor("x", (0, 1)), Factor("y", (0, 1, 2))]).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    """
    return torch.cartesian_prod(*(factor.tensor() for factor in factors)).reshape(-1, len(factors))


def absent(latents: Latents) -> Bool[Tensor, "n factors"]:
    """Which factors are absent from each combination (NaN)."""
    return torch.isnan(latents)


def column(factors: Sequence[Factor], name: str) -> int:
    """The index of the latents' column for the named factor."""
    names = [factor.name for factor in factors]
    if name not in names:
        raise ValueError(f"no factor is named {name!r}; the factors are {', '.join(names)}")
    return names.index(name)


def value_indices(latents: Latents) -> tuple[Int[Tensor, "n factors"], tuple[int, ...]]:
    """The index of each latent among the values that occur in its column, and how many of them there are."""
    columns = [column.unique(return_inverse=True) for column in latents.unbind(1)]
    return torch.stack([index for _, index in columns], 1), tuple(len(values) for values, _ in columns)


def combination_numbers(indices: Int[Tensor, "n factors"], sizes: Sequence[int]) -> Int[Tensor, "n"]:
    """One number per combination, from the indices of its values: in mixed radix, the first factor slowest.

    Over a grid of these sizes the number is the row.

    >>> combination_numbers(torch.tensor([[0, 2], [1, 0]]), (2, 3)).tolist()
    [2, 3]
    """
    if math.prod(sizes) > 2**62:  # so many that the radix would overflow: only those that occur are counted
        return indices.unique(dim=0, return_inverse=True)[1]
    number = torch.zeros(len(indices), dtype=torch.long, device=indices.device)
    for index, size in zip(indices.unbind(1), sizes, strict=True):
        number = number * size + index
    return number
