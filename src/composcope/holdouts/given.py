"""Held-out combinations in the form in which people have them: a mask, rows of the grid, or a function."""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from composcope.components import Listed, register
from composcope.errors import BadInput
from composcope.factors import Factor, Latents, absent, latent_grid
from composcope.holdouts.regions import Factors, Holdout, Mask
from composcope.tasks.base import Task

GivenHoldout = Holdout | Tensor | np.ndarray | Sequence[Any] | Callable[..., Any]
"""What `as_holdout` takes."""

Combination = Annotated[tuple[float, ...], Listed]


@register("combinations")
class Combinations(Holdout):
    """Exactly these combinations, one value per factor each.

    >>> Combinations([(0, 1), (2, 2)]).contains(torch.tensor([[2.0, 2.0], [2.0, 1.0]])).tolist()
    [True, False]
    """

    of: Annotated[tuple[Combination, ...], Listed, Field(min_length=1)]

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        listed = torch.tensor(self.of, dtype=latents.dtype, device=latents.device)
        if listed.shape[1] != latents.shape[1]:
            raise ValueError(f"combinations have {listed.shape[1]} values; latents have shape {tuple(latents.shape)}")
        both = torch.cat([listed, latents])
        complete = ~absent(both).any(1)
        if factors is not None:  # by position on the grid, so that rounding does not matter
            both = torch.stack([f.index(values) for f, values in zip(factors, both.unbind(1), strict=True)], 1)
            complete &= (both >= 0).all(1)
        number = both.nan_to_num().unique(dim=0, return_inverse=True)[1].masked_fill(~complete, -1)
        wanted, number = number[: len(listed)], number[len(listed) :]
        return torch.isin(number, wanted[wanted >= 0])

    def check(self, factors: Sequence[Factor]) -> None:
        for values in self.of:
            if len(values) != len(factors):
                names = ", ".join(factor.name for factor in factors)
                raise ValueError(f"combination {values} has {len(values)} values; the factors are {names}")
            for factor, value in zip(factors, values, strict=True):
                if factor.index(torch.tensor([value]))[0] < 0:
                    raise ValueError(f"{factor.name} = {value:g} is not one of the factor's values")


def as_holdout(given: GivenHoldout, task: Task) -> Holdout:
    """The combinations that are given in one of these forms, as a value that can be part of a spec:

    - a `Holdout`, which is returned as it is;
    - a mask over the rows of `task.grid()`, or over the factors' whole grid (one axis per factor); True is held out;
    - a list of row numbers of `task.grid()`, or an array of integers;
    - a function of all latents (n, factors) that returns a mask, or one whose arguments are names of factors, called
      once per combination, with names where a factor has names.

    >>> from composcope.tasks.bump import BumpTask
    >>> as_holdout([0, 5], BumpTask(4))
    Combinations(of=((0.0, 0.0), (1.0, 1.0)))
    >>> as_holdout(lambda x, y: x == 3 and y > 2, BumpTask(4))
    Combinations(of=((3.0, 3.0),))
    """
    if isinstance(given, Holdout):
        return given
    grid = task.grid()
    rows = _of_function(given, task, grid) if callable(given) else _of_array(given, task, grid)
    if not len(rows):
        raise BadInput("holdout: none of the combinations is held out; use Nothing() if that is intended")
    return Combinations(tuple(map(tuple, rows.tolist())))


def _of_function(given: Callable[..., Any], task: Task, grid: Latents) -> Float[Tensor, "held factors"]:
    try:
        parameters = list(inspect.signature(given).parameters)
    except (TypeError, ValueError):
        parameters = []
    names = [factor.name for factor in task.factors]
    if parameters and set(parameters) <= set(names):
        each = (
            {factor.name: factor.label(value) for factor, value in zip(task.factors, row, strict=True)}
            for row in grid.tolist()
        )
        mask: Any = [bool(given(**{name: values[name] for name in parameters})) for values in each]
    else:
        try:
            mask = given(grid.clone())
        except TypeError as error:
            raise BadInput(
                f"holdout: {getattr(given, '__name__', given)} is called with the latents, or with names of factors "
                f"({', '.join(names)}) as arguments: {error}"
            ) from None
    array = _array(mask)
    if array.dtype != torch.bool or array.shape != (len(grid),):
        raise BadInput(
            f"holdout: a function of the latents must return {len(grid)} booleans, or have the factors' names "
            f"({', '.join(names)}) as arguments; it returns {array.dtype} of shape {tuple(array.shape)}"
        )
    return grid[array]


def _of_array(given: Any, task: Task, grid: Latents) -> Float[Tensor, "held factors"]:
    array, sizes = _array(given), tuple(factor.size for factor in task.factors)
    if array.dtype == torch.bool:
        if tuple(array.shape) == sizes:
            return latent_grid(task.factors)[array.flatten()]
        if array.shape == (len(grid),):
            return grid[array]
        shapes = f"({len(grid)},)" + (f" or {sizes}" if len(sizes) > 1 else "")
        raise BadInput(f"holdout: a mask must have shape {shapes}; it has {tuple(array.shape)}")
    if array.ndim != 1 or array.is_floating_point():
        raise BadInput(
            f"holdout: a mask, a list of row numbers or a function is needed; got {array.dtype} of shape "
            f"{tuple(array.shape)}"
        )
    outside = [row for row in array.tolist() if not 0 <= row < len(grid)]
    if outside:
        raise BadInput(f"holdout: there is no row {outside[0]}; the grid has rows 0 to {len(grid) - 1}")
    return grid[array]


def _array(given: Any) -> Tensor:
    try:
        return torch.as_tensor(given if isinstance(given, Tensor) else np.asarray(given)).cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(
            f"holdout: a Holdout, a mask, a list of row numbers or a function is needed; got {given!r:.60}: {error}"
        ) from None
