"""The layers as modules, interchangeable with PyTorch's: same parameters, initialisation and state."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from composcope.fastconv import state
from composcope.fastconv.functional import by_torch, conv3x3, is_plain, upsample2x


class Conv3x3(nn.Conv2d):
    """``nn.Conv2d(in_channels, out_channels, 3, padding=1)``, faster in training; with ReLU after it if `relu`."""

    def __init__(
        self, in_channels: int, out_channels: int, bias: bool = True, relu: bool = False, **options: Any
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size=3, padding=1, bias=bias, **options)
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        """In evaluation PyTorch's, to the last bit, unless the kernels were chosen for everything."""
        if self.training or state.mode() == "everywhere":
            return conv3x3(x, self.weight, self.bias, self.relu)
        return by_torch("conv3x3", x, self.weight, self.bias, self.relu)

    def extra_repr(self) -> str:
        """As PyTorch's, and whether ReLU follows."""
        return super().extra_repr() + (", relu=True" if self.relu else "")


class Upsample2x(nn.ConvTranspose2d):
    """``nn.ConvTranspose2d(in_channels, out_channels, 4, stride=2, padding=1)``, faster; with ReLU if `relu`."""

    def __init__(
        self, in_channels: int, out_channels: int, bias: bool = True, relu: bool = False, **options: Any
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size=4, stride=2, padding=1, bias=bias, **options)
        self.relu = relu

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """In evaluation as `Conv3x3`; the size is always twice the input's."""
        if output_size is not None:
            raise ValueError("Upsample2x doubles its input; it takes no output_size")
        if self.training or state.mode() == "everywhere":
            return upsample2x(x, self.weight, self.bias, self.relu)
        return by_torch("upsample2x", x, self.weight, self.bias, self.relu)

    def extra_repr(self) -> str:
        """As PyTorch's, and whether ReLU follows."""
        return super().extra_repr() + (", relu=True" if self.relu else "")


MIN_NUMBERS = 2**15  # numbers, below which the calling of more operations costs more than they save


class PReLU(nn.PReLU):
    """``nn.PReLU()``, faster in training for tens of thousands of numbers; values are PyTorch's to the last bit."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """max(x, 0) + slope * min(x, 0)."""
        learns = self.training and torch.is_grad_enabled() and state.mode() != "torch"
        if learns and is_plain(input, self.weight) and input.numel() >= MIN_NUMBERS:
            y: Tensor = _PReLU.apply(input, self.weight)
            return y
        return super().forward(input)


class _PReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(x, slope)
        return F.leaky_relu(x, slope.item())

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor, Tensor]:
        x, slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated
            gx = torch.where(x > 0, gy, slope * gy)
        else:
            gx = torch.ops.aten.leaky_relu_backward(gy, x, slope.item(), False)
        return gx, (gy * x.clamp(max=0)).sum().reshape(1)
