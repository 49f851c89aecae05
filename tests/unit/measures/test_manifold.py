import sys
import types

import numpy as np
import pytest
import torch

from composcope.measures import manifold
from composcope.measures.manifold import embed, pca

from .scenes import normal, rotation


@pytest.mark.parametrize("features", [3, 40])
def test_pca_keeps_distances_and_orders_variance(features):
    activations = normal(20, features) * torch.arange(1, features + 1)
    result = pca(activations, components=min(20, features))
    assert torch.allclose(torch.pdist(result.coordinates), torch.pdist(activations))
    assert result.explained.sum().item() == pytest.approx(1)
    assert (result.explained.diff() <= 1e-12).all()


def test_pca_of_a_rotated_plane_is_the_plane():
    flat = torch.cat([normal(30, 2) * torch.tensor([3.0, 1.0]), torch.zeros(30, 4)], 1)
    result = pca(flat @ rotation(6, 1) + 2, components=3)
    assert result.explained[2].item() == pytest.approx(0, abs=1e-12)
    straight = pca(flat, components=2).coordinates
    assert torch.allclose(result.coordinates[:, :2], straight, atol=1e-8)


def test_missing_directions_are_zeros():
    result = pca(normal(5, 2), components=4)
    assert result.coordinates.shape == (5, 4)
    assert result.coordinates[:, 2:].abs().max() == 0
    assert result.explained.shape == (4,)
    assert pca(torch.ones(4, 3), components=1).explained.tolist() == [0]


def test_embedding_says_that_it_fell_back(monkeypatch):
    monkeypatch.setattr(manifold, "umap_installed", lambda: False)
    result = embed(normal(20, 5))
    assert result.method == "pca"
    assert result.coordinates.shape == (20, 2)


def test_umap_is_used_where_installed(monkeypatch):
    asked = {}

    class UMAP:
        def __init__(self, **settings):
            asked.update(settings)

        def fit_transform(self, points):
            return np.asarray(points)[:, : asked["n_components"]]

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=UMAP))
    monkeypatch.setattr(manifold, "umap_installed", lambda: True)
    result = embed(normal(8, 5), components=2, seed=3)
    assert (result.method, result.explained) == ("umap", None)
    assert (asked["random_state"], asked["n_neighbors"]) == (3, 7)


def test_umap_leaves_the_number_of_threads_as_it_was(monkeypatch):
    """UMAP's own code sets that of OpenMP, by which sums would be rounded differently from then on."""

    class Threaded:
        def __init__(self, **options):
            pass

        def fit_transform(self, values):
            torch.set_num_threads(3)
            return np.zeros((len(values), 2), dtype=np.float32)

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=Threaded))
    monkeypatch.setattr(manifold, "umap_installed", lambda: True)
    before = torch.get_num_threads()
    embed(torch.randn(20, 3))
    assert torch.get_num_threads() == before
