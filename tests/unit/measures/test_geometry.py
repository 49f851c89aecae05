import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures import geometry

from .scenes import normal, plane, rotation

seeds = st.integers(0, 10_000)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, features=st.integers(1, 6), axes=st.integers(1, 4))
def test_metrics_are_symmetric_and_positive_semidefinite(seed, features, axes):
    metric = geometry.metric_tensor(normal(5, features, axes, seed=seed))
    assert torch.equal(metric, metric.mT)
    assert torch.linalg.eigvalsh(metric).min() >= -1e-9
    assert (geometry.volume_element(metric) >= 0).all()


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_rotating_activations_changes_no_geometry(seed):
    activations = normal(12, 5, seed=seed)
    factors = plane(3, 4)
    before = geometry.grid_metric(activations, factors)
    after = geometry.grid_metric(activations @ rotation(5, seed) + 3, factors)
    assert torch.allclose(before, after)
    assert geometry.factorization(after).mean_of_ratios == pytest.approx(geometry.factorization(before).mean_of_ratios)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, axes=st.integers(2, 4), scale=st.floats(1e-3, 1e3))
def test_factorization_lies_between_a_half_and_1_and_ignores_scale(seed, axes, scale):
    metric = geometry.metric_tensor(normal(4, 6, axes, seed=seed))
    for value in (geometry.factorization(metric), geometry.factorization(scale * metric)):
        assert 0.5 <= value.mean_of_ratios <= 1
        assert 0.5 <= value.ratio_of_means <= 1
    assert geometry.factorization(scale * metric).mean_of_ratios == pytest.approx(
        geometry.factorization(metric).mean_of_ratios
    )


def test_chunks_of_features_add_up():
    jacobian = normal(4, 10, 2)
    parts = geometry.metric_tensor(jacobian[:, :3]) + geometry.metric_tensor(jacobian[:, 3:])
    assert torch.allclose(parts, geometry.metric_tensor(jacobian))
    activations = normal(12, 10)
    whole = geometry.grid_metric(activations, plane(3, 4))
    assert torch.allclose(geometry.grid_metric(activations, plane(3, 4), chunk=3), whole)


def test_differences_are_central_inside_and_one_sided_at_the_ends():
    x = [Factor("x", range(5))]
    slopes = geometry.grid_jacobian(torch.tensor([[0.0], [1.0], [4.0], [9.0], [16.0]]), x)[:, 0, 0]
    assert slopes.tolist() == [1, 2, 4, 6, 7]


def test_differences_know_uneven_steps():
    x = [Factor("x", (0, 1, 3, 7))]
    values = torch.tensor(x[0].values).double()
    slopes = geometry.grid_jacobian((values**2)[:, None], x)[:, 0, 0]
    assert slopes[1:3].tolist() == pytest.approx([2, 6])


def test_circular_differences_go_round():
    angle = [Factor("angle", range(0, 360, 5), "circular", 360)]
    radians = latent_grid(angle).double() * math.pi / 180
    metric = geometry.grid_metric(torch.cat([radians.cos(), radians.sin()], 1), angle)
    expected = (math.sin(math.radians(5)) / 5) ** 2
    assert metric[:, 0, 0].tolist() == pytest.approx([expected] * 72)
    half = [Factor("angle", range(0, 180, 5), "circular", 360)]
    ends = geometry.grid_metric(torch.cat([radians.cos(), radians.sin()], 1)[:36], half)[:, 0, 0]
    assert ends[0].item() == pytest.approx(ends[-1].item())
    assert ends[0].item() != pytest.approx(expected, rel=1e-4)


def test_categories_and_single_values_have_no_derivative():
    factors = [Factor("digit", range(3), "categorical"), Factor("x", range(4)), Factor("z", (1,))]
    assert geometry.differentiable(factors) == (1,)
    activations = latent_grid(factors).double()
    assert geometry.grid_metric(activations, factors).flatten().tolist() == pytest.approx([1.0] * 12)
    only_category = [Factor("digit", range(3), "categorical")]
    assert geometry.grid_jacobian(normal(3, 2), only_category).shape == (3, 2, 0)


def test_points_without_any_slope_are_left_out_and_counted():
    metric = torch.zeros(4, 2, 2, dtype=torch.float64)
    metric[:3] = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    result = geometry.factorization(metric)
    assert result == geometry.Factorization(0.75, 0.75, 1)
    assert geometry.factorization_map(metric)[3].isnan()
    assert geometry.factorization(metric[3:]) == geometry.Factorization(None, None, 1)


def test_the_two_averages_differ_where_scales_do():
    metric = torch.tensor([[[1.0, 1.0], [1.0, 1.0]], [[9.0, 0.0], [0.0, 9.0]]])
    result = geometry.factorization(metric)
    assert result.mean_of_ratios == pytest.approx(0.75)
    assert result.ratio_of_means == pytest.approx(0.95)


def test_more_factors_are_averaged_over_pairs():
    metric = torch.eye(3)[None].clone()
    metric[0, 0, 1] = metric[0, 1, 0] = 1.0
    assert geometry.factorization(metric).mean_of_ratios == pytest.approx((0.5 + 1 + 1) / 3)
    metric[0, 1, 1] = metric[0, 2, 2] = metric[0, 0, 1] = metric[0, 1, 0] = 0
    assert geometry.factorization(metric) == geometry.Factorization(1.0, 1.0, 0)


def test_one_factor_has_a_volume_but_no_factorization():
    metric = torch.tensor([[[4.0]]])
    assert geometry.volume_element(metric).item() == 2
    assert geometry.factorization(metric) == geometry.Factorization(None, None, 0)
    assert geometry.factorization_map(metric).isnan().all()


def test_volume_means_are_of_logs_with_a_floor_that_is_told():
    volume = torch.tensor([1.0, 100.0, 1e-3, 0.0], dtype=torch.float64)
    heldout = torch.tensor([False, False, True, True])
    summary = geometry.volume_summary(volume, heldout, floor=1e-5)
    assert summary.seen == pytest.approx(1)
    assert summary.heldout == pytest.approx(-4)
    assert summary.gap == pytest.approx(-5)
    assert (summary.floor, summary.floored) == (1e-5, 1)
    assert geometry.volume_summary(volume, torch.zeros(4, dtype=torch.bool)).gap is None
