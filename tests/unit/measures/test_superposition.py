import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures.superposition import edge_blend, gap_blend, shared_value_means, superposition

from .scenes import bumps, normal, plane, rng, square


def test_a_sum_of_its_parts_correlates_1_and_its_shuffled_control_less():
    factors = plane(12)
    grid, heldout = square(factors, 3, 8)
    parts = shared_value_means(bumps(grid, 12), grid, heldout, factors)
    result = superposition(0.4 * sum(parts) + 0.1, parts, rng())
    assert result.correlation == pytest.approx(1)
    assert result.control < 0.7
    assert result.correlations.shape == (36,)


def test_the_control_catches_sums_that_all_look_alike():
    alike = bumps(torch.tensor([[2.0, 2.0]]), 8) + 0.01 * normal(10, 1, 8, 8)
    result = superposition(2 * alike, [alike, alike.clone()], rng())
    assert result.correlation > 0.99
    assert result.control > 0.95


def test_the_control_is_fixed_by_its_generator():
    outputs, parts = normal(6, 1, 4, 4, seed=1), [normal(6, 1, 4, 4, seed=s) for s in (2, 3)]
    assert superposition(outputs, parts, rng(5)).control == superposition(outputs, parts, rng(5)).control
    assert superposition(outputs, parts, rng(5)).control != superposition(outputs, parts, rng(6)).control


def test_shared_means_are_over_seen_points_with_the_same_value():
    factors = plane(3)
    grid, heldout = square(factors, 1, 1)
    outputs = torch.arange(9.0)[:, None, None, None]
    of_x, of_y = shared_value_means(outputs, grid, heldout, factors)
    assert of_x.item() == (3 + 5) / 2
    assert of_y.item() == (1 + 7) / 2


def test_shared_means_work_for_three_factors_and_refuse_a_value_never_seen():
    factors = [*plane(2), Factor("shape", (0, 1), "categorical")]
    grid = latent_grid(factors)
    outputs = torch.arange(8.0)[:, None, None, None]
    heldout = torch.arange(8) == 7
    means = [part.item() for part in shared_value_means(outputs, grid, heldout, factors)]
    assert means == pytest.approx([5, 11 / 3, 3])
    with pytest.raises(ValueError, match=r"no seen point has x = \[1.0\]"):
        shared_value_means(outputs, grid, grid[:, 0] == 1, factors)


def test_parts_of_another_shape_are_refused():
    with pytest.raises((ValueError, TypeError)):
        superposition(torch.zeros(2, 1, 4, 4), [torch.zeros(2, 1, 3, 3)], rng())
    with pytest.raises(ValueError, match="one part per factor"):
        superposition(torch.zeros(2, 1, 4, 4), [], rng())


def test_the_blend_of_a_gap_is_linear_between_its_edges():
    angle = [Factor("angle", range(0, 360, 10), "circular", 360)]
    grid = latent_grid(angle)
    images = normal(36, 1, 4, 4)
    heldout = (grid[:, 0] > 160) & (grid[:, 0] < 200)
    blend = edge_blend(images, grid, heldout, angle, "angle")
    assert torch.allclose(blend[1], (images[16] + images[20]) / 2)
    assert torch.allclose(blend[0], 0.75 * images[16] + 0.25 * images[20])


def test_a_gap_over_the_seam_of_a_circle_blends_across_it():
    angle = [Factor("angle", range(0, 360, 10), "circular", 360)]
    grid = latent_grid(angle)
    images = normal(36, 1, 2, 2)
    heldout = (grid[:, 0] < 20) | (grid[:, 0] > 340)
    blend = edge_blend(images, grid, heldout, angle, "angle")
    assert torch.allclose(blend[0], (images[34] + images[2]) / 2)


def test_only_points_that_share_the_other_factors_are_edges():
    factors = [Factor("x", range(5)), Factor("digit", (0, 1), "categorical")]
    grid = latent_grid(factors)
    images = normal(10, 1, 2, 2)
    heldout = (grid[:, 0] == 2) & (grid[:, 1] == 1)
    blend = edge_blend(images, grid, heldout, factors, "x")
    assert torch.allclose(blend[0], (images[3] + images[7]) / 2)


def test_without_a_second_edge_the_first_stands_alone_and_without_any_it_is_an_error():
    x = [Factor("x", range(4))]
    grid = latent_grid(x)
    images = normal(4, 1, 2, 2)
    assert torch.equal(edge_blend(images, grid, grid[:, 0] == 3, x, "x")[0], images[2])
    assert torch.equal(edge_blend(images, grid, grid[:, 0] == 0, x, "x")[0], images[1])
    with pytest.raises(ValueError, match="no seen point"):
        edge_blend(images, grid, grid[:, 0] >= 0, x, "x")


def test_gap_blend_tells_a_blender_from_a_composer():
    blend, truth = normal(5, 1, 6, 6, seed=1), normal(5, 1, 6, 6, seed=2)
    blender, composer = gap_blend(blend, blend, truth), gap_blend(truth, blend, truth)
    assert (blender.share_nearer_blend, composer.share_nearer_blend) == (1, 0)
    assert blender.correlation_with_blend.mean().item() == pytest.approx(1)
    assert composer.mse_to_truth.max().item() == 0
