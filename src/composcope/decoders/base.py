"""The decoder role: a recipe that builds a module from code sizes and an image shape."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import Component

ImageShape = tuple[int, int, int]
# Far beyond what can be trained; a spec with more is a mistake, or meant to exhaust whoever reads it.
MAX_DEPTH, MAX_WIDTH = 1024, 65_536
Codes = Float[Tensor, "n code"]
Images = Float[Tensor, "n channels height width"]


class Decoder(Component):
    """A recipe for a module. A custom decoder implements `build`.

    The module maps codes (n, sum(code_sizes)) to images (n, *image_shape). Its direct children are its layers: they run
    in order and end after the nonlinearity. Their names ("first", "conv1", ..., "image") must not change, since stored
    weights and measures refer to them.

    - `embeds`: whether the module has embeddings of factor values, which some penalties act on.
    - `draws`: whether the trained module draws images; a control that only reads them does not.
    - `polarity`: "dark" or "bright" if the module can draw only dark or only bright objects, None if it draws both.
    """

    embeds: ClassVar[bool] = False
    draws: ClassVar[bool] = True
    polarity: Literal["dark", "bright"] | None = None

    @abstractmethod
    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Module: ...

    def check(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> None:
        """Raise ValueError if no such module can be built for these sizes."""

    def pairs(self, codes: Codes, images: Images) -> tuple[Tensor, Tensor]:
        """Training inputs and targets: codes and images, except for controls that read images."""
        return codes, images

    def loss(self, module: nn.Module, codes: Codes, images: Images, rng: torch.Generator) -> Float[Tensor, ""]:
        """The loss of one training step; by default the mean squared error of the module's outputs.

        A decoder that is trained otherwise overrides it. Its random numbers come from `rng`.
        """
        return nn.functional.mse_loss(module(codes), images)

    @property
    def has_own_loss(self) -> bool:
        """Whether it is trained by a loss of its own."""
        return type(self).loss is not Decoder.loss

    @property
    def draws_codes(self) -> bool:
        """Whether the module itself maps codes to images, as all but the controls that are given images do."""
        return self.draws and type(self).pairs is Decoder.pairs

    def drawer(self, module: nn.Module) -> nn.Module | None:
        """The part of the trained module that maps codes to images, or None if there is none."""
        return module

    def reader(self, module: nn.Module) -> nn.Module | None:
        """The part of the trained module that maps images to codes, or None if there is none."""
        return None


def check_network(decoder: Decoder) -> None:
    """Raise ValueError unless the decoder can be a part of another: from codes to images, by the ordinary loss."""
    if not decoder.draws_codes:
        raise ValueError(f"its network must take codes as input, and {decoder} takes images")
    if decoder.has_own_loss:
        raise ValueError(f"its network must be trained by the mean squared error, and {decoder} has its own loss")


def init_as_transposed(conv: nn.Module) -> None:
    """Initialise a convolution as PyTorch initialises a transposed one: uniform within 1 / sqrt(outputs * kernel area).

    A convolution's own bound counts inputs instead of outputs, so the two differ where a layer has more inputs than
    outputs: for the last layer of a decoder (64 channels to 1) the transposed bound is 8 times larger.
    """
    weight, bias = conv.get_parameter("weight"), conv.get_parameter("bias")
    bound = (weight.shape[0] * weight.shape[2] * weight.shape[3]) ** -0.5
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)
