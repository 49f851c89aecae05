"""The curvature of a layer's manifold: circles, lines, spirals, and what it must not depend on."""

import math

import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures.kernels import gram_matrix
from composcope.measures.manifold import curvature

ANGLES = Factor("angle", tuple(range(0, 360, 20)), "circular", period=360)
LINE = Factor("x", range(6))


def circle(radius, count=18, dimensions=2):
    angle = torch.arange(count).double() * (2 * math.pi / count)
    points = radius * torch.stack([angle.cos(), angle.sin()], 1)
    return torch.nn.functional.pad(points, (0, dimensions - 2))


@pytest.mark.parametrize("radius", [0.01, 1.0, 300.0])
def test_a_circle_has_1_everywhere(radius):
    turns = curvature(gram_matrix(circle(radius) + 2), [ANGLES])
    torch.testing.assert_close(turns.maps["angle"], torch.ones(18), atol=1e-4, rtol=0)
    assert turns.means["angle"] == pytest.approx(1)


def test_rotations_and_shifts_leave_it():
    curve = torch.rand(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rotation = torch.linalg.qr(torch.rand(5, 5, dtype=torch.float64)).Q
    one, other = (curvature(gram_matrix(points), [LINE]).maps["x"] for points in (curve, 9 * curve @ rotation + 4))
    torch.testing.assert_close(one, other, equal_nan=True)


def test_a_line_is_straight_and_its_ends_have_none():
    points = torch.outer(torch.arange(6).double() ** 2, torch.tensor([1.0, 2.0, -1.0]).double())  # at uneven speed
    turns = curvature(gram_matrix(points), [LINE])
    assert turns.maps["x"].isnan().tolist() == [True, False, False, False, False, True]
    assert turns.means["x"] < 1e-3


def test_a_part_of_a_circle_is_curved_by_its_size():
    """An arc of radius r: 1 / r times the spread of the arc itself."""
    arc = circle(2.0, count=40)[:6]
    spread = (arc - arc.mean(0)).square().sum(1).mean().sqrt().item()
    assert curvature(gram_matrix(arc), [LINE]).means["x"] == pytest.approx(spread / 2, rel=1e-3)


def test_each_factor_has_its_own_on_a_cylinder():
    latents = latent_grid([ANGLES, LINE])
    angle = latents[:, 0] * (math.pi / 180)
    points = torch.stack([angle.cos(), angle.sin(), latents[:, 1]], 1).double()
    turns = curvature(gram_matrix(points), [ANGLES, LINE])
    spread = (points - points.mean(0)).square().sum(1).mean().sqrt().item()
    assert turns.means["angle"] == pytest.approx(spread, rel=1e-4)
    assert turns.means["x"] < 1e-3


def test_categories_pairs_and_points_that_coincide_have_none():
    factors = [Factor("shape", (0, 1, 2), "categorical"), Factor("y", (0, 1))]
    assert curvature(gram_matrix(torch.rand(6, 4)), factors).maps == {}
    assert curvature(gram_matrix(torch.ones(6, 3)), [LINE]).means == {"x": None}
