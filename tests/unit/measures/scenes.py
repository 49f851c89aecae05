"""Small worlds for the measures' tests: bumps on a grid, and a square hole."""

from collections.abc import Sequence

import torch
from torch import Tensor

from composcope.factors import Factor, latent_grid


def plane(columns: int, rows: int | None = None) -> list[Factor]:
    """Factors x and y on the integers."""
    return [Factor("x", range(columns)), Factor("y", range(columns if rows is None else rows))]


def bumps(latents: Tensor, size: int, sigma: float = 1.0) -> Tensor:
    """Bright bumps in double precision; an absent factor's term is 1, which makes a stripe."""
    pixels = torch.arange(size, dtype=torch.float64)
    profiles = torch.exp(-(pixels - latents.double()[:, :2, None]).square() / (2 * sigma**2))
    profiles = torch.where(latents[:, :2, None].isnan(), 1.0, profiles)
    return torch.einsum("nu,nv->nvu", profiles[:, 0], profiles[:, 1])[:, None]


def crosses(latents: Tensor, size: int, sigma: float = 1.0) -> Tensor:
    """The sum of the vertical and the horizontal stripe at each point."""
    absent = torch.full_like(latents[:, 0], torch.nan)
    vertical, horizontal = torch.stack([latents[:, 0], absent], 1), torch.stack([absent, latents[:, 1]], 1)
    return bumps(vertical, size, sigma) + bumps(horizontal, size, sigma)


def square(factors: Sequence[Factor], low: float, high: float) -> tuple[Tensor, Tensor]:
    """The grid, and which of its points lie in [low, high] on every axis."""
    grid = latent_grid(factors)
    return grid, ((grid >= low) & (grid <= high)).all(1)


def rotation(size: int, seed: int) -> Tensor:
    """A random orthogonal matrix."""
    return torch.linalg.qr(normal(size, size, seed=seed)).Q


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
