"""Decoders with one network per factor, whose images are added or multiplied."""

from collections import OrderedDict
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import Codes, Decoder, Images, ImageShape, check_network
from composcope.decoders.mlp import MLP

Parts = Float[Tensor, "n factors channels height width"]


class OneNetworkPerFactor(Decoder):
    """Each factor's part of the code goes through a network of its own, and the images are combined pixel by pixel."""

    network: Decoder

    def __post_init__(self) -> None:
        check_network(self.network)

    def check(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> None:
        for size in code_sizes:
            self.network.check((size,), image_shape)

    def parts(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> "FactorImages":
        return FactorImages(code_sizes, [self.network.build((size,), image_shape) for size in code_sizes])


@register("additive")
class Additive(OneNetworkPerFactor):
    """One network per factor, and the sum of their images: D(z) = sum over factors f of D_f(z_f).

    It cannot draw any interaction of factors: a bump at (x, y) is not a sum of an image for x and one for y.

    - `network`: the recipe of each factor's network.
    """

    network: Decoder = MLP(depth=2, width=64)

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        return nn.Sequential(OrderedDict(parts=self.parts(code_sizes, image_shape), image=Sum()))


@register("product")
class Product(OneNetworkPerFactor):
    """One network per factor, and the product of their foregrounds: F(z) = product over f of softplus(D_f(z_f)).

    The image is F where objects are bright on black (`polarity` "bright") and 1 - F where they are dark on white
    ("dark"); a spec refuses the other polarity than its task's, since the image of a product is not a product.

    - `network`: the recipe of each factor's network.
    """

    network: Decoder = MLP(depth=2, width=64)
    polarity: Literal["dark", "bright"] = "dark"

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        parts = nn.Sequential(self.parts(code_sizes, image_shape), nn.Softplus())
        return nn.Sequential(OrderedDict(parts=parts, image=Multiplied(self.polarity == "dark")))


class FactorImages(nn.Module):
    """Codes -> one image per factor, each from the factor's own columns."""

    def __init__(self, code_sizes: tuple[int, ...], networks: list[nn.Module]) -> None:
        super().__init__()
        self.code_sizes = code_sizes
        self.factors = nn.ModuleList(networks)

    def forward(self, codes: Codes) -> Parts:
        columns = zip(codes.split(self.code_sizes, 1), self.factors, strict=True)
        return torch.stack([network(part) for part, network in columns], 1)


class Sum(nn.Module):
    """The sum over factors."""

    def forward(self, parts: Parts) -> Images:
        return parts.sum(1)


class Multiplied(nn.Module):
    """The product over factors, as a bright object on 0 or a dark one on 1."""

    def __init__(self, dark: bool) -> None:
        super().__init__()
        self.dark = dark

    def forward(self, parts: Parts) -> Images:
        foreground = parts.prod(1)
        return 1 - foreground if self.dark else foreground
