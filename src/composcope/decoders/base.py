"""What a decoder is: a recipe that builds a module from code sizes and an image shape."""

from abc import abstractmethod

from torch import nn

from composcope.components import Component

ImageShape = tuple[int, int, int]


class Decoder(Component):
    """A recipe for a module. A decoder of your own gives `build`.

    The module takes codes (n, sum(code_sizes)) and gives images (n, *image_shape). Its direct children are its layers:
    they run in order, end after the nonlinearity, and their names ("first", "conv1", ..., "image") stay the same, since
    stored weights and measures go by them.
    """

    @abstractmethod
    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Module: ...
