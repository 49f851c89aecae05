"""What a network consists of, part by part, for the compiled training step.

A class of modules is known by its recipe (`recipe`), which says what compiled function computes it. Modules of other
classes, derived ones included, have none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from composcope.fastconv.modules import Conv3x3, PReLU, Upsample2x

Shape = tuple[int, ...]


class Unknown(Exception):
    """The compiled step cannot train this network as autograd would; the message says why."""


@dataclass(frozen=True)
class Part:
    """A part of a network as the compiled code knows it.

    - `name`: of the compiled function. `sizes`, `constants`: their meaning is in parts.cpp.
    - `values`: parameters, and buffers that it updates. `shape`: of the output for one sample.
    - `beside`: it reads the input of the part before, and writes to a piece of the same output.
    """

    name: str
    sizes: tuple[int, ...]
    values: tuple[Tensor, ...] = ()
    shape: Shape = ()
    constants: tuple[float, ...] = ()
    beside: bool = False

    @property
    def identity(self) -> tuple[object, ...]:
        """What a compiled step was built for: it is not valid any more once this has changed."""
        places = tuple((id(value), value.data_ptr()) for value in self.values)
        return self.name, self.sizes, places, self.shape, self.constants, self.beside


Recipe = Callable[[Any, Shape], Sequence[Part]]
"""The parts of a module whose input has this shape, for one sample."""
PenaltyRecipe = Callable[[Any, nn.Module], Sequence[Part]]
"""The terms that a penalty adds to the loss of this module."""

_recipes: dict[type, Recipe] = {}
_penalties: dict[type, PenaltyRecipe] = {}


def recipe(*kinds: type) -> Callable[[Recipe], Recipe]:
    """Register how modules of exactly these classes are computed."""

    def enter(function: Recipe) -> Recipe:
        _recipes.update(dict.fromkeys(kinds, function))
        return function

    return enter


def penalty_recipe(kind: type) -> Callable[[PenaltyRecipe], PenaltyRecipe]:
    """Register how penalties of exactly this class are computed."""

    def enter(function: PenaltyRecipe) -> PenaltyRecipe:
        _penalties[kind] = function
        return function

    return enter


def is_known(module: nn.Module) -> bool:
    """Whether every part of a sequence has a recipe."""
    if type(module) is nn.Sequential:
        return all(is_known(child) for child in module)
    return type(module) in _recipes


def penalty_parts(penalty: object, module: nn.Module) -> Sequence[Part]:
    """The terms of the penalty, or Unknown."""
    if type(penalty) not in _penalties:
        raise Unknown(f"{type(penalty).__name__} has no recipe")
    return _penalties[type(penalty)](penalty, module)


def parts_of(module: nn.Module, shape: Shape) -> Iterator[Part]:
    """The module's parts, or Unknown."""
    if type(module) is not nn.Sequential:
        if type(module) not in _recipes:
            raise Unknown(f"{type(module).__name__} has no recipe")
        yield from _recipes[type(module)](module, shape)
        return
    for child in module:
        for part in parts_of(child, shape):
            yield part
            shape = part.shape


# ---- recipes of PyTorch's modules and our convolutions


@recipe(Conv3x3, Upsample2x)
def _convolution(module: Conv3x3 | Upsample2x, shape: Shape) -> Sequence[Part]:
    up = isinstance(module, Upsample2x)
    usual = ((4, 4), (2, 2), (1, 1)) if up else ((3, 3), (1, 1), (1, 1))
    if (module.kernel_size, module.stride, module.padding) != usual or len(shape) != 3 or module.bias is None:
        raise Unknown(f"{module} is not the usual one")
    if (module.dilation, module.groups, module.padding_mode) != ((1, 1), 1, "zeros") or any(module.output_padding):
        raise Unknown(f"{module} has options")
    (c, h, w), k = shape, module.out_channels
    sizes = (0, c, k, h, w, int(up), torch.get_num_threads(), int(module.relu))
    if module.weight.shape != ((c, k, 4, 4) if up else (k, c, 3, 3)):
        raise Unknown(f"{module} does not fit its input")
    return [Part("convolution", sizes, (module.weight, module.bias), (k, h * (1 + up), w * (1 + up)))]


@recipe(nn.Linear)
def _linear(module: nn.Linear, shape: Shape) -> Sequence[Part]:
    outputs, inputs = module.weight.shape
    if shape != (inputs,) or module.bias is None:
        raise Unknown(f"{module} has no bias or does not fit its input")
    return [Part("linear", (inputs, outputs), (module.weight, module.bias), (outputs,))]


@recipe(nn.Unflatten)
def _unflatten(module: nn.Unflatten, shape: Shape) -> Sequence[Part]:
    to = tuple(module.unflattened_size)
    if module.dim != 1 or len(shape) != 1 or not all(isinstance(side, int) for side in to) or prod(to) != shape[0]:
        raise Unknown(f"{module} is not of a whole sample")
    return [Part("", (), shape=to)]


@recipe(nn.ReLU)
def _relu(module: nn.ReLU, shape: Shape) -> Sequence[Part]:
    return [Part("relu", (prod(shape),), shape=shape)]


@recipe(nn.Sigmoid)
def _sigmoid(module: nn.Sigmoid, shape: Shape) -> Sequence[Part]:
    return [Part("sigmoid", (prod(shape),), shape=shape)]


@recipe(PReLU)
def _prelu(module: PReLU, shape: Shape) -> Sequence[Part]:
    return [Part("prelu", (prod(shape),), (module.weight,), shape)]


@recipe(nn.BatchNorm2d)
def _batch_norm(module: nn.BatchNorm2d, shape: Shape) -> Sequence[Part]:
    channels, *sides = shape
    values = module.weight, module.bias, module.running_mean, module.running_var, module.num_batches_tracked
    if any(value is None for value in values) or module.momentum is None or prod(sides) < 2:
        raise Unknown(f"{module} has options, or a single pixel")
    if len(shape) != 3 or module.num_features != channels:
        raise Unknown(f"{module} does not fit its input")
    kept = [value for value in values if value is not None]
    return [Part("batch_norm", (channels, prod(sides), 0), (*kept,), shape, (module.eps, module.momentum))]
