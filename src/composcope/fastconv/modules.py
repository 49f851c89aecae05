"""The convolutions as modules, interchangeable with PyTorch's: same parameters, initialisation and state."""

from typing import Any

from torch import Tensor, nn

from composcope.fastconv import state
from composcope.fastconv.functional import by_torch, conv3x3, upsample2x


def prepare(module: nn.Module) -> None:
    """Compile now if the module will use the kernels, so that no clock counts it as training."""
    if state.mode() == "auto" and any(isinstance(part, Conv3x3 | Upsample2x) for part in module.modules()):
        state.status()


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
