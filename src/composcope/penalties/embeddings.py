"""The paper's penalties on low-rank embeddings: entropy of their weights, variance of their vectors."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import register
from composcope.decoders.base import Decoder
from composcope.decoders.lowrank import embeddings_of
from composcope.fastconv import Part, penalty_recipe
from composcope.penalties.base import Batch, Penalty, Weight


class EmbeddingPenalty(Penalty):
    """A penalty on the embeddings of factor values."""

    def check(self, decoder: Decoder) -> None:
        if not decoder.embeds:
            raise ValueError(f"{self} acts on embeddings, and {type(decoder).__name__} has none; use LowRank")


@register("entropy")
class Entropy(EmbeddingPenalty):
    """-weight * sum over factors and values of sum_n p_n ln p_n, with p_n = lambda_n^2 / sum_m lambda_m^2.

    Pushes every embedding towards a single rank-one term.
    """

    weight: Weight = 0.1

    def loss(self, module: nn.Module, batch: Batch | None = None) -> Float[Tensor, ""]:
        weights = torch.cat([embedding.weight for embedding in embeddings_of(module)])
        shares = _energy_shares(weights)
        # -p ln p and its gradient by lambda are 0 at lambda = 0, where a weight does land once in some ten thousand
        # steps. There ln p is infinite, and would make the gradient NaN; 1 has no entropy either.
        return self.weight * torch.special.entr(torch.where(shares > 0, shares, 1.0)).sum()


@register("variance")
class Variance(EmbeddingPenalty):
    """weight * sum over factors and values of sum_n [Var(v_n) + Var(u_n)], sample variance over a vector's entries.

    Computed on the vectors before normalisation. Pushes every embedding towards bands that are constant along one axis.
    """

    weight: Weight = 0.01

    def loss(self, module: nn.Module, batch: Batch | None = None) -> Float[Tensor, ""]:
        embeddings = embeddings_of(module)
        sides = [torch.cat([e.v for e in embeddings]), torch.cat([e.u for e in embeddings])]
        return self.weight * torch.stack([_summed_variances(vectors) for vectors in sides]).sum()


def _summed_variances(vectors: Float[Tensor, "values rank entries"]) -> Float[Tensor, ""]:
    """The sum of `vectors.var(2)`, whose own kernel is several times slower."""
    return (vectors - vectors.mean(2, keepdim=True)).square().sum() / (vectors.shape[2] - 1)


def _energy_shares(weight: Float[Tensor, "values rank"]) -> Float[Tensor, "values rank"]:
    """p_n = lambda_n^2 / sum_m lambda_m^2, and zeros instead of 0 / 0 where all weights are zero."""
    energy = weight.square()
    return energy / energy.sum(1, keepdim=True).clamp(min=1e-12)


@penalty_recipe(Entropy)
def _entropies(penalty: Entropy, module: nn.Module) -> Sequence[Part]:
    weights = [embedding.weight for embedding in embeddings_of(module)]
    return [Part("entropy", tuple(weight.shape), (weight,), constants=(penalty.weight,)) for weight in weights]


@penalty_recipe(Variance)
def _variances(penalty: Variance, module: nn.Module) -> Sequence[Part]:
    sides = [side for embedding in embeddings_of(module) for side in (embedding.v, embedding.u)]
    sizes = [(side.shape[0] * side.shape[1], side.shape[2]) for side in sides]
    return [
        Part("variance", size, (side,), constants=(penalty.weight,)) for size, side in zip(sizes, sides, strict=True)
    ]
