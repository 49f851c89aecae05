"""A layer's activations in a few dimensions: principal components always, UMAP where it is installed."""

import importlib.util
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.measures.gram import Spectrum, centred_spectrum, gram_matrix

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
    import umap

    nearest = max(2, min(neighbours, len(activations) - 1))
    reducer = umap.UMAP(n_components=components, n_neighbors=nearest, random_state=seed, n_jobs=1)
    coordinates = reducer.fit_transform(activations.flatten(1).float().cpu().numpy())
    return Embedding("umap", torch.as_tensor(coordinates).double(), None)
