"""The paper's architectural cure: factors rendered in pixel space as low-rank matrices."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from composcope.components import register
from composcope.decoders.base import MAX_DEPTH, MAX_WIDTH, Decoder, ImageShape, init_as_transposed
from composcope.fastconv import Conv3x3, Part, PReLU, Shape, Unknown, recipe


@register("lowrank")
class LowRank(Decoder):
    """A matrix of the image's size per factor value; a small CNN draws the image from one matrix per factor.

    W = sum over n = 1..rank of lambda_n v_n u_n^T, with v_n and u_n normalised to unit length. For a code that is not
    one-hot, the factor's matrix is the sum of its values' matrices, weighted by the code.

    - `rank`: terms per matrix; the image's shorter side by default. `depth`: hidden 3x3 layers with PReLU.
    - `channels`: channels of the hidden layers; one per factor by default.
    - `init`: "ones" starts with every lambda_n = 1; "authors" draws lambda_n from a normal distribution of standard
      deviation 1 / sqrt(rank), scales the vectors to exactly unit length, and initialises the last layer like a
      transposed convolution. With equal lambdas the entropy penalty starts at a stationary point.
    - `activate_embedding`: a PReLU between the matrices and the first 3x3 layer, as in the authors' network.
    """

    rank: Annotated[int, Field(ge=1, le=MAX_WIDTH)] | None = None
    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 2
    channels: Annotated[int, Field(ge=1, le=MAX_WIDTH)] | None = None
    init: Literal["ones", "authors"] = "ones"
    activate_embedding: bool = False

    embeds: ClassVar[bool] = True

    def check(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> None:
        side = min(image_shape[1:])
        if self.rank is not None and self.rank > side:
            raise ValueError(f"rank = {self.rank} exceeds the image's shorter side, {side}")

    def build(self, code_sizes: tuple[int, ...], image_shape: ImageShape) -> nn.Sequential:
        self.check(code_sizes, image_shape)
        image_channels, height, width = image_shape
        hidden = self.channels or len(code_sizes)
        layers = OrderedDict[str, nn.Module]()
        rendering = Rendering(code_sizes, height, width, self.rank or min(height, width), self.init)
        layers["embedding"] = nn.Sequential(rendering, PReLU()) if self.activate_embedding else rendering
        channels = len(code_sizes)
        for level in range(1, self.depth + 1):
            layers[f"conv{level}"] = nn.Sequential(Conv3x3(channels, hidden), PReLU())
            channels = hidden
        layers["image"] = Conv3x3(channels, image_channels)
        if self.init == "authors":
            init_as_transposed(layers["image"])
        return nn.Sequential(layers)


class Embedding(nn.Module):
    """One factor's matrices, one per value, parametrised by vectors v and u and weights lambda."""

    def __init__(self, values: int, height: int, width: int, rank: int, init: str = "ones") -> None:
        super().__init__()
        # Initial length about 1, the length after normalisation; longer vectors train more slowly (docs/LOG.md).
        self.v = nn.Parameter(torch.randn(values, rank, height) / height**0.5)
        self.u = nn.Parameter(torch.randn(values, rank, width) / width**0.5)
        self.weight = nn.Parameter(torch.ones(values, rank))
        if init == "authors":
            with torch.no_grad():
                self.v.copy_(normalize(self.v, dim=2))
                self.u.copy_(normalize(self.u, dim=2))
                self.weight.normal_(std=rank**-0.5)

    def matrices(self) -> Float[Tensor, "values height width"]:
        # Normalised, so that lambda alone sets a term's size. Otherwise the entropy penalty on lambda would have no
        # effect: v and u could make up for any change of lambda.
        return torch.einsum("krh,kr,krw->khw", normalize(self.v, dim=2), self.weight, normalize(self.u, dim=2))


class Rendering(nn.Module):
    """Codes -> the factors' matrices, one channel per factor."""

    def __init__(self, code_sizes: tuple[int, ...], height: int, width: int, rank: int, init: str = "ones") -> None:
        super().__init__()
        self.code_sizes = code_sizes
        self.factors = nn.ModuleList(Embedding(size, height, width, rank, init) for size in code_sizes)

    def forward(self, code: Float[Tensor, "n code"]) -> Float[Tensor, "n factors height width"]:
        parts = zip(code.split(self.code_sizes, 1), embeddings_of(self), strict=True)
        return torch.stack([torch.einsum("nk,khw->nhw", part, factor.matrices()) for part, factor in parts], 1)


def embeddings_of(module: nn.Module) -> list[Embedding]:
    """A module's embeddings, one per factor, in the order of the factors."""
    return [part for part in module.modules() if isinstance(part, Embedding)]


@recipe(Rendering)
def _rendering(module: Rendering, shape: Shape) -> Sequence[Part]:
    embeddings, code = list(module.factors), sum(module.code_sizes)
    values, parts = 0, list[Part]()
    for channel, embedding in enumerate(embeddings):
        if type(embedding) is not Embedding or shape != (code,) or len(module.code_sizes) != len(embeddings):
            raise Unknown("an embedding of another class, or other codes")
        count, rank, height = embedding.v.shape
        width, pixels = embedding.u.shape[2], height * embedding.u.shape[2]
        sizes = (count, rank, height, width, code, values, len(embeddings) * pixels, channel * pixels)
        parameters = (embedding.v, embedding.weight, embedding.u)
        parts.append(Part("embedding", sizes, parameters, (len(embeddings), height, width), beside=channel > 0))
        values += count
    return parts
