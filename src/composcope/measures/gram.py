"""Scalar products of rows, in double precision and bounded memory: the basis of many measures of a layer."""

from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

BLOCKS = 14  # of rows: the more, the less is computed twice; beyond this the products get too small to be fast


def gram_matrix(rows: Float[Tensor, "n ..."], chunk: int = 1024) -> Float[Tensor, "n n"]:
    """G_ij = sum_f a_if a_jf, symmetric to the last bit.

    - `chunk`: features taken to double precision at a time. Gram matrices of parts of a layer add up to the layer's.

    >>> gram_matrix(torch.tensor([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[5.0, 6.0], [6.0, 9.0]]
    """
    flat = rows.flatten(1)
    gram = torch.zeros(len(flat), len(flat), dtype=torch.float64, device=flat.device)
    edges = [len(flat) * block // BLOCKS for block in range(BLOCKS + 1)]
    for part in flat.split(chunk, dim=1):
        part = part.double()
        for start, stop in pairwise(edges):  # each pair of blocks once: the rest is its mirror
            gram[start:stop, start:] += part[start:stop] @ part[start:].T
    return gram.triu() + gram.triu(1).T


def centred_gram(gram: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """The Gram matrix of the rows minus their mean: H G H with H = 1 - 1/n."""
    gram = gram.double()
    gram = gram - gram.mean(0, keepdim=True)
    return gram - gram.mean(1, keepdim=True)


class Spectrum(NamedTuple):
    """A symmetric matrix's eigenvalues, rising, and its eigenvectors in columns."""

    values: Float[Tensor, "n"]
    vectors: Float[Tensor, "n n"]


def centred_spectrum(gram: Float[Tensor, "n n"]) -> Spectrum:
    """Variances along the principal directions, and each row's place along them up to their lengths."""
    return Spectrum(*torch.linalg.eigh(centred_gram(gram)))
