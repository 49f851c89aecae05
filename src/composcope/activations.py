"""Every layer's output over many codes, and its derivative along each factor, in bounded memory."""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import jvp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.factors import Factor
from composcope.measures.geometry import metric_tensor
from composcope.recording import Pick, picked, record

Codes = Float[Tensor, "n code"]
Encode = Encoding | Callable[[Tensor], Tensor]
CHUNK_BYTES = 48_000_000
BLOCK = 512
MIB = 2**20


@dataclass(frozen=True)
class Layer:
    """A layer's name, the class that makes it, and the shape of its output for one code."""

    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def features(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Part:
    """Some of a layer's features, from `start` on, over all codes."""

    layer: Layer
    start: int
    values: Float[Tensor, "n features"]

    @property
    def last(self) -> bool:
        return self.start + self.values.shape[1] == self.layer.features


class Subject:
    """A module under study: how it is called, where it lives and which layers it has.

    - `pick`: which entry of a tuple or dict output is the image; `layers`: names to keep, all by default.
    - `device`: where to run a copy of the module; by default the module itself, where it is.
    """

    def __init__(
        self,
        module: nn.Module,
        codes: Codes,
        pick: Pick = None,
        layers: Sequence[str] | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        if not isinstance(module, nn.Module):
            raise BadInput(f"a module is needed, as in torch.nn.Module; got {type(module).__name__}")
        self.module, self.pick = module if device is None else _moved(module, device), pick
        self.device, self.dtype = home(self.module, device)
        self.features = 1
        with evaluating(self.module, self.device):
            found, self.skipped = self._layers(codes)
        self.features = sum(layer.features for layer in found.values())
        unknown = [name for name in layers or () if name not in found]
        if unknown:
            raise BadInput(f"layers: there is no {unknown[0]!r}; there are {', '.join(found)}")
        self.layers = {name: layer for name, layer in found.items() if layers is None or name in layers}

    def images(self, codes: Codes) -> Float[Tensor, "n ..."]:
        """The module's images of all codes."""
        with evaluating(self.module, self.device):
            parts = [picked(self.module(self._sent(part)), self.pick) for part in codes.split(self._chunk(1))]
            return torch.cat([part.detach().float().cpu() for part in parts])

    def parts(self, codes: Codes, memory: int) -> Iterator[Part]:
        """Every layer's outputs over all codes, a layer's features in as few parts as fit into `memory` bytes.

        As many parts as fit together are made by one pass over the codes. A part is let go when the next is asked for.
        """
        for group in self._groups(len(codes), memory):
            with evaluating(self.module, self.device):
                held = self._pass(codes, group)
            while held:
                yield held.pop(0)

    def _groups(self, points: int, memory: int) -> Iterator[list[tuple[Layer, int, int]]]:
        """Layers, or slices of their features, in groups of at most `memory` bytes of float32."""
        width = max(1, memory // (4 * points))
        group: list[tuple[Layer, int, int]] = []
        free = width
        for layer in self.layers.values():
            for start in range(0, layer.features, width):
                stop = min(start + width, layer.features)
                if stop - start > free:
                    yield group
                    group, free = [], width
                group.append((layer, start, stop))
                free -= stop - start
        if group:
            yield group

    def _pass(self, codes: Codes, group: Sequence[tuple[Layer, int, int]]) -> list[Part]:
        held = [Part(layer, start, torch.empty(len(codes), stop - start)) for layer, start, stop in group]
        done = 0
        for chunk in codes.split(self._chunk(1)):
            values, _ = record(self.module, self._sent(chunk), self.pick)
            for part, (layer, start, stop) in zip(held, group, strict=True):
                part.values[done : done + len(chunk)] = values[layer.name].detach().flatten(1)[:, start:stop]
            done += len(chunk)
        return held

    def metrics(
        self, codes: Codes, tangents: Float[Tensor, "axes n code"], on_chunk: Callable[[], None] = lambda: None
    ) -> dict[str, Float[Tensor, "n axes axes"]]:
        """g = J^T J of every layer at every code, J exact by forward-mode differentiation: all layers in one pass.

        The value is computed once for all axes, and only the metric is kept of a chunk's derivatives. Raises whatever
        the module raises if it cannot be differentiated so; `differentiates` asks beforehand.
        """
        kept: dict[str, list[Tensor]] = {name: [] for name in self.layers}
        chunk = self._chunk(1 + len(tangents))
        with differentiating(self.module, self.device):
            together = self._vectorises(codes, tangents)
            for some, along in zip(codes.split(chunk), tangents.split(chunk, 1), strict=True):
                for name, slopes in self._slopes(some, along, together).items():
                    kept[name].append(metrics_of(slopes).cpu())
                on_chunk()
        return {name: torch.cat(parts) for name, parts in kept.items()}

    def chunks(self, points: int, axes: int) -> int:
        """How many times `metrics` calls `on_chunk`."""
        return -(-points // self._chunk(1 + axes))

    def differentiates(self, codes: Codes, tangents: Float[Tensor, "axes n code"]) -> str | None:
        """None if the module has forward-mode derivatives, else the reason why not."""
        try:
            with differentiating(self.module, self.device):
                self._slopes(codes[:1], tangents[:1, :1], False)
        except Exception as error:
            return f"{type(error).__name__}: {_first_line(error)}"
        return None

    def _vectorises(self, codes: Codes, tangents: Tensor) -> bool:
        """Whether the derivatives along all axes can share one pass."""
        try:
            self._slopes(codes[:1], tangents[:, :1], True)
        except Exception:
            return False
        return True

    def _slopes(self, codes: Codes, tangents: Tensor, together: bool) -> dict[str, Float[Tensor, "axes n ..."]]:
        """Every layer's derivative along every axis."""
        codes, tangents = self._sent(codes), self._sent(tangents)

        def outputs(codes: Tensor) -> dict[str, Tensor]:
            values, _ = record(self.module, codes, self.pick, copies=False)
            return {name: values[name] for name in self.layers}

        def slope(tangent: Tensor) -> dict[str, Tensor]:
            found: dict[str, Tensor] = jvp(outputs, (codes,), (tangent,))[1]
            return found

        if together:
            stacked: dict[str, Tensor] = vmap(slope, randomness="same")(tangents)
            return stacked
        each = [slope(tangent) for tangent in tangents]
        return {name: torch.stack([slopes[name] for slopes in each]) for name in self.layers}

    def _layers(self, codes: Codes) -> tuple[dict[str, Layer], dict[str, str]]:
        """The layers by name, and why some outputs are none: two calls of different size tell which axis is which."""
        few, more = (codes[torch.arange(n) % len(codes)] for n in (2, 3))
        try:
            (values, kinds), (others, _) = (record(self.module, self._sent(c), self.pick) for c in (few, more))
        except BadInput:
            raise
        except Exception as error:
            shape = tuple(few.shape)
            raise BadInput(f"the module does not take codes of shape {shape}: {_first_line(error)}") from error
        layers, skipped = {}, {}
        for name, value in values.items():
            shape, again = tuple(value.shape), tuple(others[name].shape) if name in others else None
            if again == (3, *shape[1:]) and shape[0] == 2:
                layers[name] = Layer(name, kinds[name], shape[1:])
            else:
                skipped[name] = f"its output has shapes {shape} and {again} for 2 and 3 codes"
        return layers, skipped

    def _sent(self, values: Tensor) -> Tensor:
        return values.to(self.device, self.dtype)

    def _chunk(self, copies: int) -> int:
        """Codes at a time, so that `copies` of all layers' outputs for them stay small."""
        return max(1, min(256, CHUNK_BYTES // (4 * copies * self.features)))


class LinearMaps(TorchFunctionMode):
    """Differentiates convolutions and linear layers by their input alone: conv(x, w)' = conv(x', w) if w is constant.

    The library's rule adds conv(x, w') also where w' is zero, at the price of another convolution.
    """

    FUNCTIONS = frozenset(
        (
            *(torch.conv1d, torch.conv2d, torch.conv3d, torch.nn.functional.linear),
            *(torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
        )
    )

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in self.FUNCTIONS or len(args) < 2 or "bias" in kwargs:
            return func(*args, **kwargs)
        inputs, weight, bias, *rest = args if len(args) > 2 else (*args, None)
        value, slope = forward_ad.unpack_dual(inputs)
        fixed = all(forward_ad.unpack_dual(part).tangent is None for part in (weight, bias) if part is not None)
        if slope is None or not fixed:
            return func(*args, **kwargs)
        if weight.ndim == 4 and weight.device.type == "cpu" and weight.shape[1] >= 8:
            value, slope, weight = (channels_last(part) for part in (value, slope, weight))
        moved = func(value, weight, bias, *rest, **kwargs)
        return forward_ad.make_dual(moved, func(slope, weight, None, *rest, **kwargs))


def channels_last(maps: Tensor) -> Tensor:
    """The same maps with channels side by side in memory, for which the CPU's convolutions are nearly twice as fast."""
    return maps.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def metrics_of(slopes: Float[Tensor, "axes n ..."]) -> Float[Tensor, "n axes axes"]:
    """g = J^T J at each point, in double precision wherever it matters.

    Single precision within blocks of features is twice as fast and right to 1e-7 of g, which is enough unless the
    derivatives are nearly parallel and the volume is a small difference: such points are done again.
    """
    # Features as they lie in memory: their order is nothing to a metric, and flattening then copies nothing.
    order = sorted(range(2, slopes.ndim), key=lambda axis: slopes.stride()[axis], reverse=True)
    flat = slopes.permute(0, 1, *order).flatten(2)
    whole = flat.shape[2] - flat.shape[2] % BLOCK
    metric = metric_tensor(flat[..., whole:].permute(1, 2, 0))
    if whole:
        blocks = flat[..., :whole].unflatten(2, (-1, BLOCK))
        metric = metric + torch.einsum("inbf,jnbf->nbij", blocks, blocks).double().sum(1)
        scale = metric.diagonal(dim1=1, dim2=2).sqrt()
        cosines = metric / (scale[:, :, None] * scale[:, None, :])
        doubtful = ~(torch.linalg.det(cosines.nan_to_num(0.0)) > 1e-3)
        metric[doubtful] = metric_tensor(flat[:, doubtful].permute(1, 2, 0))
    return metric


def code_tangents(encode: Encode, latents: Tensor, factors: Sequence[Factor], axes: Sequence[int]) -> Tensor | str:
    """d code / d t_i for the factors at `axes`, (axes, n, code), or the reason why there is none.

    A factor's code is differentiated by itself, so that another factor's code need not have a derivative.
    """
    slopes = []
    for axis in axes:
        try:
            slope = _slope(encode, latents, factors, axis)
        except Exception as error:
            return f"the code has no derivative along {factors[axis].name}: {_first_line(error)}"
        if isinstance(slope, str):
            return slope
        if not slope.isfinite().all():
            return f"the code's derivative along {factors[axis].name} is not finite"
        slopes.append(slope)
    return torch.stack(slopes)


def _slope(encode: Encode, latents: Tensor, factors: Sequence[Factor], axis: int) -> Tensor | str:
    factor = factors[axis]
    if not isinstance(encode, Encoding):
        along = torch.zeros_like(latents)
        along[:, axis] = 1
        value, slope = jvp(encode, (latents,), (along,))[:2]
        if not slope.any() and _varies_along(value, latents, axis):
            return f"the code steps along {factor.name}: its derivative is 0"
        return slope.detach()
    if not _of(encode, factor).differentiable:
        return f"{_of(encode, factor)} has no derivative along {factor.name}"
    values = latents[:, axis]
    slope = jvp(lambda t: encode.encode_factor(t, factor), (values,), (torch.ones_like(values),))[1]
    sizes = encode.code_sizes(factors)
    return torch.cat([slope if i == axis else slope.new_zeros(len(slope), size) for i, size in enumerate(sizes)], 1)


def _of(encoding: Encoding, factor: Factor) -> Encoding:
    """The encoding that a factor has, where each has its own."""
    own: Encoding = encoding.of(factor) if hasattr(encoding, "of") else encoding
    return own


def _varies_along(codes: Tensor, latents: Tensor, axis: int) -> bool:
    """Whether some two points that differ in nothing but one factor have different codes."""
    others = torch.cat([latents[:, :axis], latents[:, axis + 1 :]], 1)
    group = others.unique(dim=0, return_inverse=True)[1] if others.shape[1] else torch.zeros(len(latents)).long()
    first = torch.full((int(group.max()) + 1,), len(latents)).scatter_reduce(
        0, group, torch.arange(len(latents)), "amin"
    )
    return bool((codes != codes[first[group]]).any())


@contextmanager
def evaluating(module: nn.Module, device: torch.device) -> Iterator[None]:
    """The module in eval mode, without gradients or fused shortcuts; modes and random states are restored after.

    A module that draws random numbers draws the same ones every time.
    """
    modes = [(part, part.training) for part in module.modules()]
    fused = torch.backends.mha.get_fastpath_enabled()
    devices = [device] if device.type == "cuda" else []
    try:
        module.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # a fused layer shows none of its parts and has no derivative
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.default_generator.manual_seed(0)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(0)
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for part, mode in modes:
            part.training = mode


@contextmanager
def differentiating(module: nn.Module, device: torch.device) -> Iterator[None]:
    """`evaluating`, by ways of computing that have a forward-mode derivative, the cheap one where there are two."""
    with evaluating(module, device), sdpa_kernel(SDPBackend.MATH), LinearMaps(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def home(module: nn.Module, device: str | torch.device | None = None) -> tuple[torch.device, torch.dtype]:
    """Where a module's parameters (or else its buffers) are, and their type of number."""
    tensors = [*module.parameters(), *module.buffers()]
    numbers = [tensor for tensor in tensors if tensor.is_floating_point()]
    place = torch.device(device) if device is not None else tensors[0].device if tensors else torch.device("cpu")
    return place, numbers[0].dtype if numbers else torch.float32


def _moved(module: nn.Module, device: str | torch.device) -> nn.Module:
    try:
        return copy.deepcopy(module).to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device = {str(device)!r} cannot be used here: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
