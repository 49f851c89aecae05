"""Penalties on low-rank embeddings: their values by formula, and gradients that stay finite."""

import pytest
import torch

from composcope.decoders.lowrank import LowRank, embeddings_of
from composcope.penalties import Entropy, Variance


@pytest.fixture
def module() -> torch.nn.Module:
    return LowRank(init="authors").build(code_sizes=(5, 6), image_shape=(1, 4, 4))


def test_entropy_is_that_of_the_energies(module):
    expected = 0.0
    for embedding in embeddings_of(module):
        shares = embedding.weight.detach().double().square()
        shares /= shares.sum(1, keepdim=True)
        expected -= (shares * shares.log()).sum().item()
    assert Entropy(0.1).loss(module).item() == pytest.approx(0.1 * expected, rel=1e-5)


def test_a_weight_of_exactly_zero_has_no_entropy_and_no_gradient(module):
    """Adam's steps do lead to 0.0: without this, runs of 20,000 steps ended in NaN."""
    weight = embeddings_of(module)[0].weight
    with torch.no_grad():
        weight[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])
        weight[1] = 0.0
    loss = Entropy(0.1).loss(module)
    (gradient,) = torch.autograd.grad(loss, weight)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
    assert gradient[:2].tolist() == [[0.0] * 4] * 2


def test_variance_is_that_of_every_vector(module):
    expected = sum(v.var(2).sum() for embedding in embeddings_of(module) for v in (embedding.v, embedding.u))
    torch.testing.assert_close(Variance(0.01).loss(module), 0.01 * expected)
