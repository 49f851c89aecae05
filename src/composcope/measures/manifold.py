"""A layer's activations as a manifold: in a few dimensions (principal components, UMAP), and how it is curved."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_sizes, wraps
from composcope.measures.kernels import Spectrum, centred_gram, centred_spectrum, gram_matrix

Method = Literal["pca", "umap"]


@dataclass(frozen=True)
class Embedding:
    """Coordinates of every point, the method, and each component's share of the variance (PCA only)."""

    method: Method
    coordinates: Float[Tensor, "points components"]
    explained: Float[Tensor, "components"] | None


def umap_installed() -> bool:
    """Whether UMAP is installed."""
    return importlib.util.find_spec("umap") is not None


def pca(activations: Float[Tensor, "points ..."], components: int = 3) -> Embedding:
    """Projections on the directions of largest variance, and each one's share of the whole.

    From the smaller of the two Gram matrices. A component's sign is such that its largest coordinate is positive; where
    there are fewer directions than `components`, the rest are zeros.

    >>> pca(torch.tensor([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]]), components=1).explained.tolist()
    [1.0]
    """
    features = activations.flatten(1) - activations.flatten(1).mean(0)
    if features.shape[1] > features.shape[0]:
        return pca_from_gram(gram_matrix(features), components)
    features = features.double()
    variances, vectors = torch.linalg.eigh(features.T @ features)
    return _leading(variances, features @ vectors, components)


def pca_from_gram(
    gram: Float[Tensor, "points points"], components: int = 3, spectrum: Spectrum | None = None
) -> Embedding:
    """The same as `pca` from `gram_matrix(activations)` alone; `spectrum` is `centred_spectrum(gram)`, if known."""
    variances, vectors = spectrum or centred_spectrum(gram)
    return _leading(variances, vectors * variances.clamp(min=0).sqrt(), components)


def _leading(variances: Tensor, coordinates: Tensor, components: int) -> Embedding:
    """The largest components first, with signs fixed, padded with zeros."""
    total = variances.clamp(min=0).sum()
    variances, coordinates = variances.clamp(min=0).flip(0)[:components], coordinates.flip(1)[:, :components]
    largest = coordinates.gather(0, coordinates.abs().argmax(0, keepdim=True))
    coordinates = coordinates * torch.where(largest < 0, -1.0, 1.0)
    shares = variances / total if total > 0 else torch.zeros_like(variances)
    missing = components - len(variances)
    return Embedding(
        "pca", torch.nn.functional.pad(coordinates, (0, missing)), torch.nn.functional.pad(shares, (0, missing))
    )


def embed(
    activations: Float[Tensor, "points ..."], components: int = 2, seed: int = 0, neighbours: int = 15
) -> Embedding:
    """UMAP of the activations, or their principal components where UMAP is not installed: `method` says which.

    - `seed`: makes UMAP repeatable; `neighbours`: how far it looks, at most one fewer than the points.
    """
    if not umap_installed():
        return pca(activations, components)
    nearest = max(2, min(neighbours, len(activations) - 1))
    threads = torch.get_num_threads()
    try:
        import umap

        reducer = umap.UMAP(n_components=components, n_neighbors=nearest, random_state=seed, n_jobs=1)
        coordinates = reducer.fit_transform(activations.flatten(1).float().cpu().numpy())
    finally:
        torch.set_num_threads(threads)  # UMAP sets OpenMP's number of threads, which is PyTorch's too
    return Embedding("umap", torch.as_tensor(coordinates).double(), None)


@dataclass(frozen=True)
class Curvature:
    """Curvature along each factor that has distances: its map over the grid, and its mean, None where it has none."""

    maps: dict[str, Float[Tensor, "points"]]
    means: dict[str, float | None]


def curvature(gram: Float[Tensor, "points points"], factors: Sequence[Factor]) -> Curvature:
    """rho / radius of the circle through a point and its two neighbours along a factor, rho^2 = mean |a - mean a|^2.

    - `gram`: `gram_matrix(activations)` over the whole grid.

    0 where the manifold is straight, 1 everywhere on a full circle, whatever its size, place and direction. NaN where a
    factor's first and last values have one neighbour only, or where neighbours coincide.

    >>> angle = torch.arange(12) * (torch.pi / 6)
    >>> circle = gram_matrix(5 * torch.stack([angle.cos(), angle.sin()], 1) + 3)
    >>> turns = Factor("angle", tuple(range(0, 360, 30)), "circular", period=360)
    >>> round(curvature(circle, [turns]).means["angle"], 6)
    1.0
    """
    centred = centred_gram(gram)
    spread = centred.diagonal().mean().clamp(min=0).sqrt()
    index = torch.arange(len(gram)).reshape(grid_sizes(factors))
    maps = {}
    for axis, factor in enumerate(factors):
        if factor.kind == "categorical" or factor.size < 3:
            continue
        before, after = index.roll(1, axis), index.roll(-1, axis)
        turns = _inverse_radius(centred, before.flatten(), index.flatten(), after.flatten()) * spread
        if not wraps(factor):
            turns = turns.reshape(index.shape).movedim(axis, 0)
            turns[0] = turns[-1] = torch.nan
            turns = turns.movedim(0, axis).flatten()
        maps[factor.name] = turns.float()
    means = {name: turns.nanmean().item() if turns.isfinite().any() else None for name, turns in maps.items()}
    return Curvature(maps, means)


def _inverse_radius(gram: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Float[Tensor, "points"]:
    """4 area / (|ab| |bc| |ca|) of the triangles abc, from scalar products; NaN where two corners coincide."""
    own = gram.diagonal()
    ab, bc, ca = (own[i] + own[j] - 2 * gram[i, j] for i, j in ((a, b), (b, c), (c, a)))
    least = 1e-12 * own.mean()  # less than rounding leaves
    four_areas = (4 * ab * bc - (ab + bc - ca).square()).clamp(min=0).sqrt()
    distinct = (ab > least) & (bc > least) & (ca > least)
    return torch.where(distinct, four_areas / (ab * bc * ca).clamp(min=1e-300).sqrt(), torch.nan)
