"""PReLU with one slope, whose gradient PyTorch computes number by number."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from composcope.fastconv import state
from composcope.fastconv.functional import is_plain

FEWEST = 2**15  # numbers, below which the calling of more operations costs more than they save


class PReLU(nn.PReLU):
    """``nn.PReLU()``, faster in training for tens of thousands of numbers; values are PyTorch's to the last bit."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """max(x, 0) + slope * min(x, 0)."""
        learns = self.training and torch.is_grad_enabled() and state.mode() != "torch"
        if learns and is_plain(input, self.weight) and input.numel() >= FEWEST:
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
