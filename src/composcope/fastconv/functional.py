"""The convolutions as functions: the kernel where it pays, otherwise PyTorch's."""

import ctypes
import threading
from functools import lru_cache
from math import ceil, sqrt
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional as F

from composcope.fastconv import state

NARROW = 4  # up to so many output channels the direct kernel is the faster one
NARROW_INPUT = 4096  # values in the batch, below which a single image gains nothing

# How much of the saved multiplications is left after the transforms, for large batches.
LEFT = {"conv3x3": 0.6, "upsample2x": 0.88}
# Transforming the weight costs as much as so many tiles for every channel, in every step, however few the tiles are.
WEIGHT_TILES = {"conv3x3": 1 / 4, "upsample2x": 1 / 3}
# The speed-up to expect before a kernel is chosen. Eight lanes were measured over the whole table. Of sixteen only
# three layers of an earlier version are known, with 0.83 to 0.96 of the speed-up with eight, and of four lanes nothing:
# both ask for so much that a layer which the formula flatters most (by a fifth, with eight lanes) would still not lose.
EXPECTED = {16: 1.25, 8: 1.02, 4: 1.25}

# A doubling of so many channels has always paid, however small the image: PyTorch's is slow with few of them.
FEW = {8: range(9, 17)}
MIN_SIDE = 3  # pixels of a side, the smallest that was measured


# With sixteen lanes 40 channels are padded to 48, and 24 to 32. From this factor on vectors of eight are faster (Zen 5,
# both passes: doublings of 24 and 40 channels by 22 to 37 %, 3x3 layers by 0 to 10 %); without padding they lose.
PADDING = 1.4

# A compiled training step takes the kernel for every convolution, unless PyTorch's is expected to be twice as fast.
MIN_SPEEDUP = 0.5
MAX_SMALL = 10_000_000  # multiplications of a layer, in about 0.1 ms


def candidate(layer: str, c: int, k: int, lanes: int) -> str:
    """The kernel that comes into question for c to k channels."""
    if layer == "conv3x3" and k <= NARROW:
        return "narrow"
    products = [_whole(c, count) * _whole(k, count) for count in (lanes, 8)]
    return "winograd8" if lanes == 16 and products[0] >= PADDING * products[1] else "winograd"


@lru_cache(maxsize=256)
def best_kernel(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> str | None:
    """The kernel for n images of c channels and h x w pixels to k channels, or None for PyTorch's.

    >>> best_kernel("conv3x3", 32, 64, 64, 28, 28, lanes=8)
    'winograd'
    """
    kernel = candidate(layer, c, k, lanes)
    if kernel == "narrow":
        return kernel if n * c * h * w >= NARROW_INPUT else None
    taken = 8 if kernel == "winograd8" else lanes
    few = FEW.get(taken, range(0))
    if layer == "upsample2x" and c in few and k in few and min(h, w) >= MIN_SIDE:
        return kernel
    return kernel if expected_speedup(layer, n, c, k, h, w, taken) >= EXPECTED[taken] else None


def expected_speedup(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> float:
    """How many times as fast as PyTorch's a transformed convolution is expected to be.

    speed-up = left * saving * tiles / (tiles + weight tiles * sqrt(c k))
    saving   = multiplications of the direct convolution / of the transformed one, over whole tiles and vectors
    """
    if layer == "conv3x3":
        tiles, taps, products = n * ceil(h / 4) * ceil(w / 4), 9, 36
    else:
        tiles, taps, products = n * ceil((h + 1) / 5) * ceil((w + 1) / 5), 16, 4 * 36
    saving = n * h * w * taps * c * k / (tiles * products * _whole(c, lanes) * _whole(k, lanes))
    return LEFT[layer] * saving * tiles / (tiles + WEIGHT_TILES[layer] * sqrt(c * k))


def kernel_of_step(layer: str, n: int, c: int, k: int, h: int, w: int, lanes: int) -> str | None:
    """The kernel for this layer in a compiled training step, or None if PyTorch would be so much faster.

    Of a small layer it never is: calling PyTorch's convolution and its gradient takes longer than the arithmetic.
    """
    kernel, taps = candidate(layer, c, k, lanes), 9 if layer == "conv3x3" else 16
    if kernel == "narrow" or n * h * w * taps * c * k <= MAX_SMALL:
        return kernel
    taken = 8 if kernel == "winograd8" else lanes
    return kernel if expected_speedup(layer, n, c, k, h, w, taken) >= MIN_SPEEDUP else None


def _whole(channels: int, lanes: int) -> int:
    return ceil(channels / lanes) * lanes


Layer = Literal["conv3x3", "upsample2x"]

_local = threading.local()


def conv3x3(x: Tensor, weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> Tensor:
    """y = w * x + b with a 3x3 kernel, stride 1 and padding 1; max(y, 0) if `relu`."""
    return _layer("conv3x3", x, weight, bias, relu)


def upsample2x(x: Tensor, weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> Tensor:
    """The transposed convolution with a 4x4 kernel, stride 2 and padding 1; max(y, 0) if `relu`."""
    return _layer("upsample2x", x, weight, bias, relu)


def _layer(layer: Layer, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    # first of all, so that torch.compile traces PyTorch's convolution and nothing else
    if torch.compiler.is_compiling() or not (_learns(x, weight, bias) or state.mode() == "everywhere"):
        return by_torch(layer, x, weight, bias, relu)
    kernel = _choose(layer, x, weight, bias)
    state.count(kernel or "torch")
    if kernel is None:
        return by_torch(layer, x, weight, bias, relu)
    if _transformed():
        y: Tensor = _Linear.apply(x, weight, bias, layer, kernel)
        return F.relu(y) if relu else y
    return by_kernel(layer, kernel, x, weight, bias, relu)


def by_kernel(layer: Layer, kernel: str, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    """The layer by a kernel, whether or not it pays."""
    y: Tensor = _Kernel.apply(x, weight, bias, relu, layer, kernel)
    return y


def by_torch(layer: Layer, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    """The same by PyTorch."""
    if layer == "conv3x3":
        y = F.conv2d(x, weight, bias, padding=1)
    else:
        y = F.conv_transpose2d(x, weight, bias, stride=2, padding=1)
    return F.relu(y) if relu else y


def _learns(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    needs = x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    return needs and torch.is_grad_enabled()


def _choose(layer: Layer, x: Tensor, weight: Tensor, bias: Tensor | None) -> str | None:
    """The kernel's name, or None for PyTorch's."""
    if state.mode() == "torch" or x.dim() != 4 or x.numel() == 0:
        return None
    if not (is_plain(x, weight, bias) or _differentiated(x, weight, bias)):
        return None
    n, c, h, w = x.shape
    rows, cols = (0, 1) if layer == "conv3x3" else (1, 0)
    k, size = weight.shape[rows], 3 if layer == "conv3x3" else 4
    if (
        weight.shape[cols : cols + 1] != (c,)
        or weight.shape[2:] != (size, size)
        or not (bias is None or bias.shape == (k,))
    ):
        return None  # PyTorch says what is wrong
    lanes = state.lanes()
    return best_kernel(layer, n, c, k, h, w, lanes) if lanes else None


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether they are ordinary float32 tensors on the CPU, with no transform at work on them."""
    if torch.compiler.is_compiling() or _transformed() or torch.is_autocast_enabled("cpu"):
        return False
    return all(t is None or _has_floats(t) for t in tensors)


def _differentiated(x: Tensor, *constants: Tensor | None) -> bool:
    """Whether torch.func is at work on x alone, forwards: derivatives along codes, of which a layer is a linear map."""
    try:
        other_modes = torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state() is not None
        transformed = torch._C._are_functorch_transforms_active()
    except AttributeError:
        return False
    if not transformed or other_modes or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return False
    return x.dtype == torch.float32 and x.is_cpu and all(t is None or _has_floats(t) for t in constants)


def _has_floats(t: Tensor) -> bool:
    if type(t) not in (Tensor, torch.nn.Parameter) or t.dtype != torch.float32 or not t.is_cpu:
        return False
    try:
        return t.layout == torch.strided and not t.is_neg() and t.data_ptr() is not None
    except RuntimeError:  # a stand-in without memory of its own, such as autograd's batched gradients
        return False


def _transformed() -> bool:
    """Whether torch.func, forward-mode differentiation, a mode or a tracer is at work; not to know counts as yes."""
    try:
        return bool(
            torch._C._are_functorch_transforms_active()
            or forward_ad._current_level >= 0
            or torch._C._len_torch_dispatch_stack()
            or torch._C._get_tracing_state() is not None
        )
    except AttributeError:
        return True


class _Kernel(torch.autograd.Function):
    """One layer by a kernel; its gradient by the kernel too, or by PyTorch where it must be differentiable."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool, layer: Layer, kernel: str
    ) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        n, _, h, w = x.shape
        y = (
            x.new_empty(n, weight.shape[0], h, w)
            if layer == "conv3x3"
            else x.new_empty(n, weight.shape[1], 2 * h, 2 * w)
        )
        _call(kernel, "forward", x, y, layer, x, weight, bias if bias is None else bias.contiguous(), relu, y)
        ctx.layer, ctx.kernel, ctx.has_bias = layer, kernel, bias is not None
        ctx.save_for_backward(x, weight, y if relu else None)
        return y

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, y = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled() or not is_plain(gy, x, weight):
            return *_backward_by_torch(ctx.layer, gy, x, weight, y, wanted), None, None, None
        gy = gy.contiguous()
        gx = torch.empty_like(x) if wanted[0] else None
        gw = torch.empty_like(weight) if wanted[1] else None
        gb = gy.new_empty(gy.shape[1]) if wanted[2] else None
        _call(ctx.kernel, "backward", x, gy, ctx.layer, gy, y, x, weight, gx, gw, gb)
        return gx, gw, gb, None, None, None


class _Linear(torch.autograd.Function):
    """One layer by a kernel, as torch.func sees it: its derivative is the same layer without the bias."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, layer: Layer, kernel: str) -> Tensor:
        return by_kernel(layer, kernel, x, weight, bias, relu=False)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, weight, _, ctx.layer, ctx.kernel = inputs
        ctx.save_for_forward(weight)

    @staticmethod
    def jvp(ctx: Any, slope: Tensor, *constants: Any) -> Tensor:
        y: Tensor = _Linear.apply(slope, *ctx.saved_tensors, None, ctx.layer, ctx.kernel)
        return y

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], x: Tensor, *rest: Any) -> tuple[Tensor, int]:
        assert dims[0] is not None  # weights are constants
        y: Tensor = _Linear.apply(x.movedim(dims[0], 0).flatten(0, 1), *rest)
        return y.unflatten(0, (info.batch_size, -1)), 0


def _call(kernel: str, step: str, x: Tensor, y: Tensor, layer: Layer, *arguments: Tensor | bool | None) -> None:
    n, c, h, w = x.shape
    run, shape, size = _prepared(kernel, step, n, c, y.shape[1], h, w, layer == "upsample2x", torch.get_num_threads())
    passed = [a.data_ptr() if isinstance(a, Tensor) else a for a in (*arguments, _scratch(size))]
    run(shape, *passed)


@lru_cache(maxsize=256)
def _prepared(kernel: str, step: str, *sizes: int) -> tuple[Any, Any, int]:
    """The compiled function, its description of the layer and the working memory it needs; the same in every step."""
    library = state.library()
    assert library is not None
    shape = (ctypes.c_long * 7)(*sizes)
    return (
        getattr(library, f"composcope_{kernel}_{step}"),
        shape,
        getattr(library, f"composcope_{kernel}_scratch")(shape),
    )


def _scratch(size: int) -> Tensor:
    """The thread's working memory, as much as its largest layer needs (a few megabytes for 64 channels, 300 for 512).

    It is kept, since fresh pages cost more than the transforms in them.
    """
    if (kept := getattr(_local, "scratch", None)) is None or kept.shape[0] < size:
        _local.scratch = kept = torch.empty(size, dtype=torch.float32)
    return kept


def _backward_by_torch(
    layer: Layer, gy: Tensor, x: Tensor, weight: Tensor, y: Tensor | None, wanted: tuple[bool, bool, bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if y is not None:
        gy = torch.where(y <= 0, torch.zeros_like(gy), gy)
    up = layer == "upsample2x"
    stride = [2, 2] if up else [1, 1]
    gx, gw, gb = torch.ops.aten.convolution_backward(
        gy, x, weight, [gy.shape[1]], stride, [1, 1], [1, 1], up, [0, 0], 1, list(wanted)
    )
    return gx if wanted[0] else None, gw if wanted[1] else None, gb if wanted[2] else None
