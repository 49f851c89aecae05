"""Single convolution layers, forward and backward: by PyTorch, and by ours as training calls them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from unittest.mock import patch

import torch
from torch import Tensor

from composcope import fastconv
from composcope.fastconv import functional
from composcope.fastconv.functional import Layer, best_kernel, by_torch, candidate

Inputs = tuple[Tensor, Tensor, Tensor]
"""A layer's input, weight and bias."""

OURS: dict[Layer, Callable[..., Tensor]] = {"conv3x3": fastconv.conv3x3, "upsample2x": fastconv.upsample2x}


@dataclass(frozen=True)
class Cell:
    """A layer of one size: n images of c channels and size x size pixels to k channels, with ReLU or without."""

    layer: Layer
    n: int
    c: int
    k: int
    size: int
    relu: bool = True

    def __str__(self) -> str:
        return f"{self.layer} {self.c} -> {self.k} at {self.size}, batch {self.n}"

    @property
    def chosen(self) -> bool:
        """Whether the rule takes our kernel here."""
        lanes = fastconv.status().lanes
        return best_kernel(self.layer, self.n, self.c, self.k, self.size, self.size, lanes) is not None

    def forced(self) -> AbstractContextManager[object]:
        """Within, the kernel runs even if the rule does not choose it; the choosing itself is not left out."""
        kernel = candidate(self.layer, self.c, self.k, fastconv.status().lanes)
        return nullcontext() if self.chosen else patch.object(functional, "best_kernel", lambda *sizes: kernel)

    def sides(self, inputs: Inputs, gy: Tensor) -> dict[str, Callable[[], list[Tensor]]]:
        """Forward and backward of PyTorch and of ours: output and gradients."""
        return {
            "PyTorch": lambda: passes(by_torch(self.layer, *inputs, self.relu), inputs, gy),
            "ours": lambda: passes(OURS[self.layer](*inputs, self.relu), inputs, gy),
        }

    def errors(self) -> dict[str, list[float]]:
        """|a - b| / |b| of output, input gradient and weight gradient, b in float64."""
        inputs, gy = self.tensors()
        x, weight, bias = (t.detach().double().requires_grad_() for t in inputs)
        errors = {}
        for name, run in self.sides(inputs, gy).items():
            y, gx, gw, _ = run()
            # beside zero, rounding decides a ReLU: b takes the decisions of a
            gate = (y > 0).double() if self.relu else torch.ones(())
            exact = by_torch(self.layer, x, weight, bias, relu=False) * gate
            wanted = passes(exact, (x, weight, bias), gy.double())
            errors[name] = [((a - b).norm() / b.norm()).item() for a, b in zip((y, gx, gw), wanted[:3], strict=True)]
        return errors

    def tensors(self) -> tuple[Inputs, Tensor]:
        """Input, weight and bias, and the output's gradient."""
        up = self.layer == "upsample2x"
        shape = (self.c, self.k, 4, 4) if up else (self.k, self.c, 3, 3)
        side = self.size * (2 if up else 1)
        x = torch.randn(self.n, self.c, self.size, self.size, requires_grad=True)
        weight = (torch.randn(shape) / (3 * self.c**0.5)).requires_grad_()
        return (x, weight, torch.randn(self.k, requires_grad=True)), torch.randn(self.n, self.k, side, side)


def passes(y: Tensor, inputs: Inputs, gy: Tensor) -> list[Tensor]:
    """The output and its gradients."""
    return [y, *torch.autograd.grad(y, inputs, gy)]
