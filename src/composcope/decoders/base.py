"""The decoder role: a recipe that builds a module from code sizes and an image shape."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import Component

ImageShape = tuple[int, int, int]
# Far beyond what can be trained; a spec with more is a mistake, or meant to exhaust whoever reads it.
MOST_DEPTH, MOST_WIDTH = 1024, 65_536
Codes = Float[Tensor, "n code"]
Images = Float[Tensor, "n channels height width"]


class Decoder(Component):
    """A recipe for a module. A custom decoder implements `build`.

    The module maps codes (n, sum(code_sizes)) to images (n, *image_shape). Its direct children are its layers: they run
    in order and end after the nonlinearity. Their names ("first", "conv1", ..., "image") must not change, since stored
    weights and measures refer to them.

    - `embeds`: whether the module has embeddings of factor values, which some penalties act on.
    - `draws`: whether the trained module draws images; a control that only reads them does not.
    """

    embeds: ClassVar[bool] = False
    draws: ClassVar[bool] = True

    @abstractmethod
    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Module: ...

    def check(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> None:
        """Raise ValueError if no such module can be built for these sizes."""

    def pairs(self, codes: Codes, images: Images) -> tuple[Tensor, Tensor]:
        """Training inputs and targets: codes and images, except for controls that read images."""
        return codes, images

    def drawer(self, module: nn.Module) -> nn.Module | None:
        """The part of the trained module that maps codes to images, or None if there is none."""
        return module

    def reader(self, module: nn.Module) -> nn.Module | None:
        """The part of the trained module that maps images to codes, or None if there is none."""
        return None


def init_as_transposed(conv: nn.Module) -> None:
    """Initialise a convolution as PyTorch initialises a transposed one: uniform within 1 / sqrt(outputs * kernel area).

    A convolution's own bound counts inputs instead of outputs, so the two differ where a layer has more inputs than
    outputs: for the last layer of a decoder (64 channels to 1) the transposed bound is 8 times larger.
    """
    weight, bias = conv.get_parameter("weight"), conv.get_parameter("bias")
    bound = (weight.shape[0] * weight.shape[2] * weight.shape[3]) ** -0.5
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)
