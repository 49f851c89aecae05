"""The matrices of low-rank embeddings."""

import torch

from composcope.decoders.lowrank import Embedding


def test_a_vector_of_length_zero_gives_no_nan():
    embedding = Embedding(values=5, height=6, width=7, rank=4)
    with torch.no_grad():
        embedding.v[0, 0] = 0.0
    matrices = embedding.matrices()
    gradients = torch.autograd.grad(matrices.sum(), (embedding.v, embedding.weight, embedding.u))
    assert all(torch.isfinite(values).all() for values in (matrices, *gradients))
