"""Training steps of networks that are a known sequence of parts, each in one call of compiled code."""

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import prod
from operator import is_
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as all_modules

from composcope.fastconv import state
from composcope.fastconv.functional import is_plain, kernel_of_step
from composcope.fastconv.modules import Conv3x3, Upsample2x
from composcope.fastconv.recipes import Part, Unknown, is_known, parts_of, penalty_parts

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def prepare(module: nn.Module) -> None:
    """Compile now what training the module will use, so that no clock counts it as training."""
    convolves = any(isinstance(part, Conv3x3 | Upsample2x) for part in module.modules())
    if state.mode() == "auto" and (convolves or is_known(module)):
        state.status()


def compiled_step(module: nn.Module, inputs: Tensor, targets: Tensor, *settings: Any) -> "CompiledStep | None":
    """Training steps of this module in compiled code, or None where autograd must take them; see `CompiledStep`."""
    if state.mode() == "torch":
        return None
    try:
        return CompiledStep(module, inputs, targets, *settings)
    except Unknown:
        return None


class CompiledStep:
    """Called with the indices of a batch and a learning rate: forward, error, backward, clipping and AdamW.

    It works on the module's own parameters. `moments` are AdamW's means of the gradients and of their squares, one
    pair for each of the module's parameters; `batch` is the largest number of samples of a step.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        penalties: Sequence[object],
        moments: Sequence[tuple[Tensor, Tensor]],
        batch: int,
        l1: float,
        clip: float | None,
        weight_decay: float,
    ) -> None:
        if not is_plain(inputs, targets) or inputs.requires_grad or targets.requires_grad or inputs.dim() != 2:
            raise Unknown("the samples are not plain codes and images")
        self.module, self.inputs, self.penalties = module, inputs.contiguous(), penalties
        parts, terms = self._described()
        if parts[-1].shape != targets.shape[1:]:
            raise Unknown("the outputs have another shape than the targets")
        self._identity = [part.identity for part in (*parts, *terms)]
        if (library := state.library()) is None:
            raise Unknown("no compiled code here")
        self._counters = [part.values[4] for part in parts if part.name == "batch_norm"]
        self._memory: list[object] = [targets := targets.contiguous()]
        parameters = list(module.parameters())
        self._parameters = parameters
        self._gradients = {id(parameter): torch.zeros_like(parameter) for parameter in parameters}
        for parameter in parameters:
            parameter.grad = self._gradients[id(parameter)]
        self._watch = _Watch(module)
        self._losses = (ctypes.c_double * 2)()
        arrays = (
            (_Part * len(parts))(),
            (_Part * len(terms))(),
            (_Parameter * len(parameters))(
                *(
                    _Parameter(p.data_ptr(), self._gradients[id(p)].data_ptr(), m.data_ptr(), s.data_ptr(), p.numel())
                    for p, (m, s) in zip(parameters, moments, strict=True)
                )
            ),
        )
        self._memory += [arrays, moments]
        given, error_gradient, output = self._connect(library, parts, arrays[0], batch)
        self._connect_terms(library, terms, arrays[1])
        self._program = _Program(
            *(ctypes.addressof(array) for array in arrays),
            *(len(array) for array in arrays),
            self.inputs.data_ptr(),
            targets.data_ptr(),
            self.inputs.shape[1],
            targets[0].numel(),
            given,
            error_gradient,
            output,
            l1,
            clip or 0.0,
            weight_decay,
        )
        self._run, self._place = library.composcope_step, ctypes.addressof(self._program)

    def __call__(self, batch: Tensor, rate: float, step: int) -> tuple[float, float]:
        """The error and the penalties of these samples, before the update; `step` counts updates from 1."""
        self._run(self._place, batch.data_ptr(), len(batch), rate, step, self._losses)
        torch.autograd.graph.increment_version(self._parameters)  # a graph that a callback keeps is out of date
        for counter in self._counters:
            counter += 1
        state.count("compiled step")
        return self._losses[0], self._losses[1]

    def is_valid(self) -> bool:
        """Whether it would still do what autograd does: a callback may have changed the module."""
        if self._watch.is_same():  # as after nearly every step: looking closer takes as long as a small network's step
            return True
        try:
            same = [part.identity for described in self._described() for part in described] == self._identity
        except Unknown:
            return False
        self._watch = _Watch(self.module)
        return same

    def _described(self) -> tuple[list[Part], list[Part]]:
        """The module's parts and the terms of its penalties; Unknown if anything else would happen in a step."""
        check_plain(self.module)
        parts = list(parts_of(self.module, tuple(self.inputs.shape[1:])))
        terms = [part for penalty in self.penalties for part in penalty_parts(penalty, self.module)]
        used = [id(value) for part in parts for value in part.values if isinstance(value, nn.Parameter)]
        if sorted(used) != sorted(id(parameter) for parameter in self.module.parameters()):
            raise Unknown("a parameter is not used, or used twice")
        return _joined(parts), terms

    def _connect(self, library: ctypes.CDLL, parts: list[Part], array: Any, batch: int) -> tuple[int, int, int]:
        """Give every part its memory; return the places of the codes, of the error's gradient and of the output.

        Outputs are kept from the forward pass to the backward one; gradients lie in two places in turn.
        """
        largest = max(prod(part.shape) for part in parts)
        x = given = self._floats(batch * self.inputs.shape[1])
        gradients = [self._floats(batch * largest) for _ in range(2)]
        shared = self._floats(max(_shared_scratch(library, part, batch) for part in parts))
        y, level = 0, -1
        for index, part in enumerate(parts):
            if not part.beside:
                x, y, level = (y or x), self._floats(batch * prod(part.shape)), level + 1
            filled = self._filled(library, part)
            filled.x, filled.y = x, y
            filled.gx, filled.gy = gradients[level % 2], gradients[(level + 1) % 2]
            if level == 0 and part.name in ("convolution", "linear"):
                filled.gx = None  # nobody asks for the gradient of codes
            if part.name == "convolution":
                kernel = _kernel(part, batch)
                filled.kernel_forward = _address(library, f"{kernel}_forward")
                filled.kernel_backward = _address(library, f"{kernel}_backward")
            filled.scratch = filled.scratch or shared
            array[index] = filled
        return given, gradients[(level + 1) % 2], y

    def _connect_terms(self, library: ctypes.CDLL, terms: list[Part], array: Any) -> None:
        for index, term in enumerate(terms):
            array[index] = self._filled(library, term)
            array[index].y = self._floats(1)

    def _filled(self, library: ctypes.CDLL, part: Part) -> "_Part":
        """The part with what does not depend on its place in the network."""
        filled = _Part(_address(library, f"{part.name}_forward"), _address(library, f"{part.name}_backward"))
        filled.sizes[: len(part.sizes)] = part.sizes
        filled.constants[: len(part.constants)] = part.constants
        for index, value in enumerate(part.values[:4]):
            filled.values[index] = value.data_ptr()
            if isinstance(value, nn.Parameter):
                filled.gradients[index] = self._gradients[id(value)].data_ptr()
        if own := _own_scratch(library, part):
            filled.scratch = self._floats(own)
        return filled

    def _floats(self, count: int) -> int:
        """The place of so much new memory."""
        memory = torch.zeros(max(count, 1))
        self._memory.append(memory)
        return memory.data_ptr()


class _Watch:
    """A module's attributes, hooks and tensors, by identity: while they are the same it computes the same."""

    def __init__(self, module: nn.Module) -> None:
        attributes = [vars(part) for part in module.modules()]
        inner = [value for own in attributes for value in own.values() if isinstance(value, dict)]
        self.dicts, self.tensors = [*attributes, *inner], [*module.parameters(), *module.buffers()]
        self.objects, self.settings = self._objects(), self._settings()

    def is_same(self) -> bool:
        objects = self._objects()
        unchanged = len(objects) == len(self.objects) and all(map(is_, objects, self.objects))
        return unchanged and self._settings() == self.settings

    def _objects(self) -> list[object]:
        return list(chain.from_iterable(map(dict.values, self.dicts)))

    def _settings(self) -> list[object]:
        places = [(t.data_ptr(), t.requires_grad, _is_hooked(t)) for t in self.tensors]
        plain = is_plain() and torch.is_grad_enabled() and not all_modules._has_any_global_hook()
        return [*places, plain, torch.get_num_threads(), state.mode()]


def _is_hooked(tensor: Tensor) -> bool:
    return bool(tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None))


def check_plain(module: nn.Module) -> None:
    """Unknown if there is more to heed than what the modules compute: hooks, frozen or tied weights."""
    if not torch.is_grad_enabled() or torch.is_anomaly_enabled() or all_modules._has_any_global_hook():
        raise Unknown("gradients are off or watched")
    for part in module.modules():
        own = vars(part)
        if not part.training or any(own[name] for name in HOOKS):
            raise Unknown(f"{type(part).__name__} has hooks or is not in training mode")
        if any(callable(value) and hasattr(type(part), name) for name, value in own.items()):
            raise Unknown(f"a method of {type(part).__name__} was replaced")
    tensors = [*module.parameters(), *module.buffers()]
    floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    if not is_plain(*floats) or not all(tensor.is_contiguous() for tensor in tensors):
        raise Unknown("a parameter or a buffer is not a plain tensor of floats")
    for parameter in module.parameters():
        if not parameter.requires_grad or _is_hooked(parameter):
            raise Unknown("a parameter is frozen or has hooks")
    places = sorted((tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes) for tensor in tensors)
    if any(end > start for (_, end), (start, _) in pairwise(places)):
        raise Unknown("parameters share memory")


def _joined(parts: list[Part]) -> list[Part]:
    """Batch normalisation takes the ReLU after it, and a change of shape (a part without a name) is nothing to do."""
    joined = list[Part]()
    for part in parts:
        if not part.name and joined:
            joined[-1] = replace(joined[-1], shape=part.shape)
        elif part.name == "relu" and joined and joined[-1].name == "batch_norm":
            channels, pixels, _ = joined[-1].sizes
            joined[-1] = replace(joined[-1], sizes=(channels, pixels, 1))
        else:
            joined.append(part)
    return joined


def _kernel(part: Part, batch: int) -> str:
    """The name of a convolution's kernel; Unknown if PyTorch's would be much faster."""
    _, c, k, h, w, up, *_ = part.sizes
    layer = "upsample2x" if up else "conv3x3"
    if (kernel := kernel_of_step(layer, batch, c, k, h, w, state.lanes())) is None:
        raise Unknown(f"{layer} of {c} to {k} channels is faster in PyTorch")
    return kernel


def _shared_scratch(library: ctypes.CDLL, part: Part, batch: int) -> int:
    """Floats of working memory that another part may overwrite between the two passes."""
    if part.name == "convolution":
        count = getattr(library, f"composcope_{_kernel(part, batch)}_scratch")
        return int(count((ctypes.c_long * 7)(batch, *part.sizes[1:7])))
    return sum(part.sizes) * (batch + state.lanes()) if part.name == "linear" else 0


def _own_scratch(library: ctypes.CDLL, part: Part) -> int:
    """Floats of working memory that must last from the forward pass to the backward one."""
    if part.name == "embedding":
        return int(library.composcope_embedding_scratch((ctypes.c_long * 8)(*part.sizes)))
    if part.name == "entropy":
        return part.sizes[0] * (part.sizes[1] + 2)
    return {"batch_norm": 2 * part.sizes[0], "variance": part.sizes[0]}.get(part.name, 0)


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, f"composcope_{name}"), ctypes.c_void_p).value


# ---- the structures of step.h

_Pointer = ctypes.c_void_p


class _Part(ctypes.Structure):
    _fields_ = [
        *((name, _Pointer) for name in ("forward", "backward")),
        ("sizes", ctypes.c_long * 8),
        ("constants", ctypes.c_double * 2),
        *((name, _Pointer) for name in ("x", "y", "gx", "gy")),
        *((name, _Pointer * 4) for name in ("values", "gradients")),
        *((name, _Pointer) for name in ("kernel_forward", "kernel_backward", "scratch")),
    ]


class _Parameter(ctypes.Structure):
    _fields_ = [*((name, _Pointer) for name in ("value", "gradient", "mean", "square")), ("count", ctypes.c_long)]


class _Program(ctypes.Structure):
    _fields_ = [
        *((name, _Pointer) for name in ("parts", "penalties", "parameters")),
        *((name, ctypes.c_long) for name in ("part_count", "penalty_count", "parameter_count")),
        *((name, _Pointer) for name in ("inputs", "targets")),
        *((name, ctypes.c_long) for name in ("input_size", "target_size")),
        *((name, _Pointer) for name in ("input", "error_gradient", "output")),
        *((name, ctypes.c_double) for name in ("l1", "clip", "weight_decay")),
    ]
