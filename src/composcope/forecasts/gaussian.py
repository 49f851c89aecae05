"""Kernel ridge regression of whole images on the code, with a Gaussian kernel."""

import torch
from jaxtyping import Float
from torch import Tensor

RIDGE = 1e-2
LENGTH = 1.0


def gaussian_kernel(
    first: Float[Tensor, "n code"], second: Float[Tensor, "m code"], length: float = LENGTH
) -> Float[Tensor, "n m"]:
    """exp(-|a - b|^2 / (2 length^2))."""
    return (-torch.cdist(first, second).square() / (2 * length**2)).exp()


def fit_gaussian(
    codes: Float[Tensor, "n code"],
    targets: Float[Tensor, "n pixels"],
    counts: Float[Tensor, "n"],
    ridge: float = RIDGE,
) -> Float[Tensor, "n pixels"]:
    """The coefficients a of images sum_n k(code, code_n) a_n: (K + ridge / counts) a = y.

    >>> codes = torch.eye(2).double()
    >>> weights = fit_gaussian(codes, torch.tensor([[1.0], [0.2]]).double(), torch.ones(2), 1e-9)
    >>> [round(value, 2) for value in (gaussian_kernel(codes, codes) @ weights).flatten().tolist()]
    [1.0, 0.2]
    """
    kernel = gaussian_kernel(codes, codes) + torch.diag(ridge / counts.double())
    return torch.cholesky_solve(targets.double(), torch.linalg.cholesky(kernel))
