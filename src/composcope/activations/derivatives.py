"""Derivatives of codes along the factors, and of layers along the codes, by forward-mode differentiation."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import jvp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from composcope.activations.adapters import Encode
from composcope.activations.recording import evaluating, first_line
from composcope.encodings import Encoding
from composcope.factors import Factor
from composcope.measures.geometry import metric_tensor

BLOCK = 512


@contextmanager
def differentiating(module: nn.Module, device: torch.device) -> Iterator[None]:
    """`evaluating` with algorithms that have a forward-mode derivative, the cheapest where there are several."""
    with evaluating(module, device), sdpa_kernel(SDPBackend.MATH), LinearMaps(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class LinearMaps(TorchFunctionMode):
    """Differentiates convolutions and linear layers by their input alone: conv(x, w)' = conv(x', w) if w is constant.

    PyTorch's rule adds conv(x, w') even where w' is zero, at the cost of another convolution.
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
    """The same maps with channels adjacent in memory, for which convolutions on the CPU are nearly twice as fast."""
    return maps.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def metrics_of(slopes: Float[Tensor, "axes n ..."]) -> Float[Tensor, "n axes axes"]:
    """g = J^T J at each point, in double precision wherever it matters.

    Single precision within blocks of features is twice as fast and right to 1e-7 of g, which is enough unless the
    derivatives are nearly parallel and the volume is a small difference: such points are done again.
    """
    # Features in the order of memory: a metric does not depend on their order, and flattening then copies nothing.
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
            return f"the code has no derivative along {factors[axis].name}: {first_line(error)}"
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
            return f"the code is a step function of {factor.name}: its derivative is 0"
        return slope.detach()
    if not _of(encode, factor).differentiable:
        return f"{_of(encode, factor)} has no derivative along {factor.name}"
    values = latents[:, axis]
    slope = jvp(lambda t: encode.encode_factor(t, factor), (values,), (torch.ones_like(values),))[1]
    sizes = encode.code_sizes(factors)
    return torch.cat([slope if i == axis else slope.new_zeros(len(slope), size) for i, size in enumerate(sizes)], 1)


def _of(encoding: Encoding, factor: Factor) -> Encoding:
    """The factor's own encoding, where each factor has one."""
    own: Encoding = encoding.of(factor) if hasattr(encoding, "of") else encoding
    return own


def _varies_along(codes: Tensor, latents: Tensor, axis: int) -> bool:
    """Whether two points that differ only in one factor have different codes."""
    others = torch.cat([latents[:, :axis], latents[:, axis + 1 :]], 1)
    group = others.unique(dim=0, return_inverse=True)[1] if others.shape[1] else torch.zeros(len(latents)).long()
    first = torch.full((int(group.max()) + 1,), len(latents)).scatter_reduce(
        0, group, torch.arange(len(latents)), "amin"
    )
    return bool((codes != codes[first[group]]).any())
