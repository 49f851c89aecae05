"""What a decoder is: a recipe that builds a module from code sizes and an image shape."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import Component

ImageShape = tuple[int, int, int]
Codes = Float[Tensor, "n code"]
Images = Float[Tensor, "n channels height width"]


class Decoder(Component):
    """A recipe for a module. A decoder of your own gives `build`.

    The module takes codes (n, sum(code_sizes)) and gives images (n, *image_shape). Its direct children are its layers:
    they run in order, end after the nonlinearity, and their names ("first", "conv1", ..., "image") stay the same, since
    stored weights and measures go by them.

    - `embeds`: whether the module has embeddings of the factor values, which penalties can act on.
    - `draws`: whether the trained module draws images; a control that only reads them does not.
    """

    embeds: ClassVar[bool] = False
    draws: ClassVar[bool] = True

    @abstractmethod
    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Module: ...

    def check(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> None:
        """Raise ValueError when no module of this kind fits the sizes."""

    def pairs(self, codes: Codes, images: Images) -> tuple[Tensor, Tensor]:
        """What training feeds the module, and what it should give: codes in, images out, unless a control says else."""
        return codes, images

    def drawer(self, module: nn.Module) -> nn.Module | None:
        """The part of the trained module that turns codes into images."""
        return module

    def reader(self, module: nn.Module) -> nn.Module | None:
        """The part of the trained module that turns images into codes, for controls that have one."""
        return None
