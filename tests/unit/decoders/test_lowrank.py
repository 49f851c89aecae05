"""The matrices of low-rank embeddings: their gradient in closed form is that of the formula."""

import pytest
import torch

from composcope.decoders.lowrank import Embedding, _matrices


@pytest.fixture(params=["ones", "authors"])
def embedding(request) -> Embedding:
    return Embedding(values=5, height=6, width=7, rank=4, init=request.param)


def parameters(embedding: Embedding) -> tuple[torch.Tensor, ...]:
    return embedding.v, embedding.weight, embedding.u


def test_gradients_are_those_of_the_formula(embedding):
    weights = torch.randn(5, 6, 7)
    ours = torch.autograd.grad((embedding.matrices() * weights).sum(), parameters(embedding))
    formula = torch.autograd.grad((_matrices(*parameters(embedding)) * weights).sum(), parameters(embedding))
    for one, other in zip(ours, formula, strict=True):
        torch.testing.assert_close(one, other)
    with torch.no_grad():
        torch.testing.assert_close(embedding.matrices(), _matrices(*parameters(embedding)))


def test_gradients_can_be_differentiated(embedding):
    def second(matrices: torch.Tensor) -> tuple[torch.Tensor, ...]:
        slopes = torch.autograd.grad(matrices.square().sum(), parameters(embedding), create_graph=True)
        return torch.autograd.grad(sum(slope.square().sum() for slope in slopes), parameters(embedding))

    for one, other in zip(second(embedding.matrices()), second(_matrices(*parameters(embedding))), strict=True):
        torch.testing.assert_close(one, other)


def test_a_vector_of_length_zero_gives_no_nan(embedding):
    with torch.no_grad():
        embedding.v[0, 0] = 0.0
    matrices = embedding.matrices()
    gradients = torch.autograd.grad(matrices.sum(), parameters(embedding))
    assert all(torch.isfinite(values).all() for values in (matrices, *gradients))
