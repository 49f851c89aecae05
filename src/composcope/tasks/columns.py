"""Latents from one column per factor, as a table or data frame has them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.components import nearest
from composcope.factors import Factor, Latents, named


@runtime_checkable
class Frame(Protocol):
    """What a data frame has in common with a dict of columns."""

    def __getitem__(self, name: str, /) -> Any: ...

    def keys(self) -> Any: ...


Columns = Mapping[str, Any] | Frame


def latents_of(columns: Columns, factors: Sequence[Factor] = ()) -> tuple[tuple[Factor, ...], Latents]:
    """The factors, in the order of the columns, and the latents; columns without a factor get one of their own."""
    names = [str(name) for name in columns.keys()]  # noqa: SIM118  (a data frame iterates over columns by keys alone)
    by_name = {factor.name: factor for factor in factors}
    for name in by_name:
        if name not in names:
            raise ValueError(f"factors: there is no column {name!r}{nearest(name, names)}; there are {names}")
    values = {name: np.asarray(columns[name]) for name in names}
    if len({len(column) for column in values.values()}) != 1 or any(column.ndim != 1 for column in values.values()):
        shapes = {name: column.shape for name, column in values.items()}
        raise ValueError(f"columns: each needs one value per image; they have shapes {shapes}")
    ordered = tuple(by_name.get(name) or own_factor(name, values[name]) for name in names)
    return ordered, torch.stack([numbers(values[factor.name], factor) for factor in ordered], 1)


def own_factor(name: str, column: np.ndarray) -> Factor:
    """The factor of a column's values: continuous if they are numbers, otherwise categorical, names in their order."""
    if np.issubdtype(column.dtype, np.number) or column.dtype == bool:
        return Factor(name, tuple(np.unique(column).astype(float).tolist()))
    return named(name, sorted({str(value) for value in column.tolist()}))


def numbers(column: np.ndarray, factor: Factor) -> Tensor:
    """A column as latents: names of categories by their number."""
    if np.issubdtype(column.dtype, np.number) or column.dtype == bool:
        return torch.from_numpy(column.astype(np.float32))
    value_of = dict(zip(factor.names or (), factor.values, strict=True))
    texts = [str(value) for value in column.tolist()]
    unknown = next((text for text in texts if text not in value_of), None)
    if unknown is not None:
        raise ValueError(f"{factor.name} = {unknown!r} is not one of the factor's values, {factor.describe()}")
    return torch.tensor([value_of[text] for text in texts], dtype=torch.float32)


def mean_of_repeats(latents: Latents, images: Tensor) -> tuple[Float[Tensor, "combinations factors"], Tensor]:
    """Each combination once, in the order of their values, and the mean of its images."""
    once, number, counts = latents.unique(dim=0, return_inverse=True, return_counts=True)
    total = torch.zeros(len(once), *images.shape[1:]).index_add_(0, number, images)
    return once, total / counts.reshape(-1, *[1] * (images.ndim - 1))
