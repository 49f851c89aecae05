"""The output of every layer of a module during one call: which layers there are, their names, and copies of them.

A layer is an output after the nonlinearity. An `nn.Sequential` with named children declares what its layers are:
its children. In any other module every submodule counts, in the order in which they end, except that

- what only activates, normalises, drops or reshapes the output just made (as a submodule or as a function) belongs to
  the layer that made it, and so does a submodule that returns what its only layer returned;
- a layer that is called again counts again, as `name#2`; of one that is called very often, as in a sampler, only the
  last call counts;
- the module's own output is "image", its input "code".

These are heuristics, since a PyTorch module does not say what its layers are. They have two aims: that
`nn.Sequential(conv, relu)`, a submodule of both, and `relu(conv(x))` in a `forward` give the same layer; and that names
are the same before and after training, so that a trained network can be compared with its untrained twin.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from composcope import fastconv
from composcope.activations.adapters import Adapted
from composcope.errors import BadInput

Pick = int | str | Callable[[Any], Tensor] | None
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
# Files of torch.nn.modules whose classes do not make a layer but finish the one before.
ATTACHED = ("activation", "batchnorm", "instancenorm", "normalization", "dropout", "flatten")
# Functions that return the same numbers in another shape or type: the layer's value stays, under one more form.
RESHAPES = ("view", "reshape", "flatten", "unflatten", "contiguous", "squeeze", "unsqueeze", "to", "float")
# Functions that change the numbers of the layer just made, one by one or by normalising: the result is the layer.
# Others (adding a skip connection, concatenating, upsampling) combine or resample layers and do not belong to one.
ACTIVATIONS = (
    *("relu", "relu_", "relu6", "leaky_relu", "leaky_relu_", "prelu", "elu", "elu_", "selu", "selu_", "celu", "gelu"),
    *("silu", "mish", "softplus", "softsign", "sigmoid", "sigmoid_", "logsigmoid", "hardsigmoid", "hardswish"),
    *("tanh", "tanh_", "hardtanh", "hardtanh_", "sin", "cos", "clamp", "clamp_", "clip"),
    *("dropout", "dropout_", "dropout2d", "batch_norm", "layer_norm", "group_norm", "instance_norm"),
)


def _functions(names: Sequence[str]) -> frozenset[Any]:
    """The functions of these names, wherever PyTorch has them: torch.relu, functional.relu and Tensor.relu."""
    owners = (torch, torch.nn.functional, Tensor)
    return frozenset(getattr(owner, name) for owner in owners for name in names if hasattr(owner, name))


CHANGES, RENAMES = _functions(ACTIVATIONS), _functions(RESHAPES)
PRODUCTS = _functions(("mul", "__mul__"))  # as in h * sigmoid(h), a layer gated by itself


@dataclass
class Made:
    """A layer's output after the last change, and the tensor objects that it has been, the latest last.

    Tensors are compared by identity: two layers may hold the same numbers, so these cannot show whether a function's
    argument *is* the layer just made.
    """

    name: str
    kind: str
    value: Tensor
    forms: list[Tensor]
    copied: bool = False

    def ends_as(self, tensor: object) -> bool:
        return bool(self.forms) and tensor is self.forms[-1]

    def has_been(self, tensor: object) -> bool:
        return any(tensor is form for form in self.forms)


class Recorder(TorchFunctionMode):
    """Follows one call of a module by hooks on its submodules and, between them, by the functions it calls.

    - `copies`: copy every output at once; otherwise only before a function that writes in place, which is faster.
    - `last`: names of layers of which only the last call is kept.
    """

    def __init__(self, copies: bool, last: Collection[str] = ()) -> None:
        super().__init__()
        self.copies, self.last = copies, last
        self.made: list[Made] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if writes(func, args, kwargs or {}):
            self.secure()
        out = func(*args, **(kwargs or {}))
        # Only the layer just made can be continued: an activation of an earlier one is a branch, not that layer's end.
        if self.made and args and isinstance(out, Tensor) and self.made[-1].has_been(args[0]):
            if func in CHANGES or (func in PRODUCTS and self.made[-1].has_been(args[1])):
                self.touch(out)
            elif func in RENAMES:
                self.made[-1].forms.append(out)
        return out

    def secure(self) -> None:
        """Copy all layers made so far, since a tensor is about to be written to and any of them may be a view of it."""
        for layer in self.made:
            if not layer.copied:
                layer.value, layer.copied = layer.value.clone(), True

    def touch(self, out: Tensor) -> None:
        """Continue the last layer as `out`."""
        last = self.made[-1]
        last.forms.append(out)
        last.value, last.copied = out.clone() if self.copies else out, self.copies

    def ended(self, name: str, module: nn.Module, inputs: Any, out: Any, before: int) -> None:
        """A submodule has ended; `before`: how many layers had been made when it began."""
        tensor = first_tensor(out)
        if tensor is None:
            return
        last = self.made[-1] if self.made else None
        inside = len(self.made) - before
        if last is not None and last.ends_as(tensor):
            if inside == 1:  # a wrapper around a single layer: the outer name is the one that users know
                last.name, last.kind = name, _kind(module)
        elif last is not None and inside == 0 and attaches(module) and last.has_been(first_tensor(inputs)):
            self.touch(tensor)
        else:
            if name in self.last:
                self.forget(name)
            self.made.append(Made(name, _kind(module), tensor, []))
            self.touch(tensor)

    def forget(self, name: str) -> None:
        """Let go of the outputs of this name; the list keeps its length, by which submodules know what is inside."""
        for layer in self.made:
            if layer.name == name:
                layer.value, layer.forms = layer.value.new_empty(0), []


def writes(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function may write into existing tensors: relu_, +=, x[i] = y, out=, inplace=True.

    PyTorch passes `inplace` on by position too, so any argument that is True counts: a needless copy costs little.
    """
    name = getattr(func, "__name__", "")
    if name.endswith("__"):
        return name.startswith(("__i", "__set"))
    named = kwargs.get("inplace") or kwargs.get("out") is not None
    return name.endswith("_") or bool(named) or any(part is True for part in args)


def first_tensor(out: Any) -> Tensor | None:
    """The output itself, or the first tensor of real numbers in a tuple, list or dict."""
    if isinstance(out, Tensor):
        return out if out.is_floating_point() else None
    parts = out.values() if isinstance(out, Mapping) else out if isinstance(out, tuple | list) else ()
    return next((tensor for part in parts if (tensor := first_tensor(part)) is not None), None)


def attaches(module: nn.Module) -> bool:
    """Whether a submodule finishes the layer before it instead of being one: an activation, norm, dropout or reshape.

    A class of the user's own without parameters counts too: it has nothing to learn, so it is a kind of activation.
    """
    if isinstance(module, nn.MultiheadAttention) or any(True for _ in module.children()):
        return False
    source = type(module).__module__
    if source.startswith("torch.nn.modules."):
        return source.rsplit(".", 1)[1] in ATTACHED or isinstance(module, nn.Identity | nn.Unflatten)
    return not any(True for _ in module.parameters())


def _kind(module: nn.Module) -> str:
    """The class of the module or, of a sequence, that of its first part."""
    if isinstance(module, nn.Sequential) and len(module):
        return _kind(module[0])
    return type(module).__name__


def watched(module: nn.Module) -> dict[str, nn.Module]:
    """The submodules whose outputs may be layers, by name."""
    if isinstance(module, Adapted):
        return {} if module.why_no_layers or module.inner is None else watched(module.inner)
    children = dict(module.named_children())
    if isinstance(module, nn.Sequential) and not any(name.isdigit() for name in children):
        return children
    return opened(module)


def opened(module: nn.Module) -> dict[str, nn.Module]:
    """Every submodule by its dotted name, except those inside PyTorch's own layers, which are one layer each."""
    submodules: dict[str, nn.Module] = {}
    for name, child in module.named_children():
        if name == "parametrizations":  # called when weights are read, not when images are made
            continue
        submodules[name] = child
        if isinstance(child, CONTAINERS) or not type(child).__module__.startswith("torch.nn.modules."):
            submodules |= {f"{name}.{inner}": part for inner, part in opened(child).items()}
    return submodules


@contextmanager
def hooked(module: nn.Module, recorder: Recorder) -> Iterator[None]:
    """Hooks on the watched submodules that report to the recorder, removed afterwards."""
    with ExitStack() as stack:
        for name, part in watched(module).items():
            began: list[int] = []

            def begin(_: nn.Module, __: Any, began: list[int] = began) -> None:
                began.append(len(recorder.made))

            def end(part: nn.Module, inputs: Any, out: Any, name: str = name, began: list[int] = began) -> None:
                recorder.ended(name, part, inputs, out, began.pop() if began else len(recorder.made))

            stack.callback(part.register_forward_pre_hook(begin).remove)
            stack.callback(part.register_forward_hook(end).remove)
        stack.enter_context(recorder)
        yield


def record(
    module: nn.Module, codes: Tensor, pick: Pick = None, copies: bool = True, last: Collection[str] = ()
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every layer's output for these codes, by name from "code" to "image" in the order of the call, and their kinds.

    - `copies`: copy every output; otherwise only those that a function may write to.
    - `last`: names of layers of which only the last call is recorded.

    >>> values, kinds = record(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.zeros(2, 4))
    >>> {name: tuple(value.shape) for name, value in values.items()}
    {'code': (2, 4), '0': (2, 8), 'image': (2, 3)}
    """
    recorder = Recorder(copies, last)
    with hooked(module, recorder):
        image = picked(module(codes.clone()), pick)  # a copy: the module may write into it
    kind = next((layer.kind for layer in recorder.made if layer.ends_as(image)), "")
    layers = [layer for layer in recorder.made if layer.forms and not layer.ends_as(image)]
    values, kinds, calls = {"code": codes}, {"code": ""}, {"code": 1, "image": 1}
    for layer in layers:
        calls[layer.name] = calls.get(layer.name, 0) + 1
        name = layer.name if calls[layer.name] == 1 else f"{layer.name}#{calls[layer.name]}"
        values[name], kinds[name] = layer.value, layer.kind
    return {**values, "image": image}, {**kinds, "image": kind}


def picked(out: Any, pick: Pick) -> Tensor:
    """The image among a module's outputs: a tensor by itself, or an entry of a tuple or dict named by `pick`."""
    try:
        image = out if pick is None else pick(out) if callable(pick) else _entry(out, pick)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadInput(f"pick = {pick!r} selects no image from the output, {_described(out)}: {error}") from None
    if not isinstance(image, Tensor):
        raise BadInput(f"the module returns {_described(out)}; say which entry is the image with pick, as in pick=0")
    return image


def _entry(out: Any, pick: int | str) -> Any:
    """An entry by index or key, or an attribute by name."""
    return getattr(out, pick) if isinstance(pick, str) and not isinstance(out, Mapping) else out[pick]


def _described(out: Any) -> str:
    if isinstance(out, Mapping):
        return f"a dict with {', '.join(map(repr, out))}"
    if isinstance(out, tuple | list):
        return f"a {type(out).__name__} of {len(out)}"
    return f"a {type(out).__name__}" + (f" of shape {tuple(out.shape)}" if isinstance(out, Tensor) else "")


@contextmanager
def evaluating(module: nn.Module, device: torch.device) -> Iterator[None]:
    """The module in eval mode, without gradients or fused shortcuts; modes and random states are restored after.

    A module that draws random numbers draws the same ones every time. Our convolutions use their kernels, if allowed.
    """
    modes = [(part, part.training) for part in module.modules() if hasattr(part, "training")]
    fused = torch.backends.mha.get_fastpath_enabled()
    devices = [device] if device.type == "cuda" else []
    try:
        module.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # a fused layer shows none of its parts and has no derivative
        kernels = fastconv.using("torch" if fastconv.mode() == "torch" else "everywhere")
        with torch.random.fork_rng(devices=devices), torch.no_grad(), kernels:
            torch.default_generator.manual_seed(0)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(0)
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for part, mode in modes:
            part.training = mode


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
