import math

import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures import error

from .scenes import bumps, plane, square


def test_mse_is_the_mean_over_pixels_of_each_image():
    images = torch.zeros(2, 1, 2, 2)
    images[1, 0, 0, 0] = 2.0
    assert error.mse(images, torch.zeros_like(images)).tolist() == [0.0, 1.0]


def test_blank_scores_as_an_empty_image_does_and_better_than_a_bump_two_pixels_off():
    truth = bumps(torch.tensor([[14.0, 14.0]]), 28)
    blank = error.blank_mse(truth)
    assert blank.item() == pytest.approx(math.pi / 784, rel=1e-3)
    assert torch.equal(blank, error.mse(torch.zeros_like(truth), truth))
    assert error.mse(bumps(torch.tensor([[16.0, 14.0]]), 28), truth) > blank


@pytest.mark.parametrize("side", [4, 5, 8, 28, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_ssim_error_is_0_for_the_truth_and_grows_with_damage(side, channels):
    truth = bumps(torch.tensor([[1.0, 2.0]]), side).expand(1, channels, side, side)
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    same, little, much = (error.ssim_error(truth + a * noise, truth).item() for a in (0.0, 0.05, 0.5))
    assert same == pytest.approx(0, abs=1e-12)
    assert 0 < little < much


@pytest.mark.parametrize("shape", [(3, 16, 12), (1, 5, 9), (2, 3, 4)])
def test_ssim_is_that_of_scikit_image(shape):
    from skimage.metrics import structural_similarity

    truth, images = torch.rand(3, *shape), torch.rand(3, *shape)
    side = min(shape[1:])
    window = min(7, side - 1 + side % 2)
    for a, b, ours in zip(images, truth, error.ssim_error(images, truth, 1.5), strict=True):
        pair = (a.double().numpy(), b.double().numpy())
        theirs = structural_similarity(*pair, win_size=window, data_range=1.5, channel_axis=0)
        assert ours.item() == pytest.approx(1 - theirs, abs=1e-10)


def test_ssim_takes_its_range_from_the_truth_so_scaling_both_changes_nothing():
    truth = bumps(torch.tensor([[3.0, 4.0], [5.0, 2.0]]), 12)
    images = truth.roll(1, -1)
    assert torch.allclose(error.ssim_error(images, truth), error.ssim_error(7 * images, 7 * truth))
    assert not torch.allclose(error.ssim_error(images, truth), error.ssim_error(images, truth, data_range=10.0))


def test_ssim_refuses_images_without_room_for_a_window():
    with pytest.raises(ValueError, match="at least 3 x 3"):
        error.ssim_error(torch.zeros(1, 1, 2, 9), torch.zeros(1, 1, 2, 9))
    assert len(error.ssim_error(torch.zeros(0, 1, 8, 8), torch.zeros(0, 1, 8, 8))) == 0


def test_shape_correlation_ignores_brightness_and_background_but_not_shape():
    truth = bumps(torch.tensor([[3.0, 3.0]]), 9)
    assert error.shape_correlation(0.2 * truth + 0.7, truth).item() == pytest.approx(1)
    assert error.shape_correlation(1 - truth, truth).item() == pytest.approx(-1)
    assert error.shape_correlation(truth.roll(4, -1), truth).item() < 0.1
    assert error.shape_correlation(torch.full_like(truth, 0.3), truth).item() == 0


def test_positions_within_one_pixel_count_as_placed():
    truth = torch.tensor([[3.0, 4.0]]).expand(4, 2)
    positions = torch.tensor([[3.0, 4.0], [4.3, 3.0], [3.0, 6.0], [torch.nan, 4.0]])
    assert error.placed(positions, truth).tolist() == [True, True, False, False]
    assert error.position_error(positions, truth)[2].item() == 2


def test_distance_to_the_edge_of_a_square_hole_grows_inwards():
    factors = plane(9)
    grid, heldout = square(factors, 2, 6)
    distances = error.distance_to_seen(grid, heldout, factors).reshape(9, 9)
    assert distances[4].tolist() == [0, 0, 1, 2, 3, 2, 1, 0, 0]
    assert distances[2].tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0]


def test_distances_go_round_a_circle_and_count_categories_as_one_step():
    factors = [Factor("angle", range(0, 360, 30), "circular", 360), Factor("digit", (1, 4, 9), "categorical")]
    grid = latent_grid(factors)
    heldout = (grid[:, 0] <= 60) & (grid[:, 1] != 9)
    distances = error.distance_to_seen(grid, heldout, factors).reshape(12, 3)
    assert distances[:3, 0].tolist() == [1, 1, 1]
    without_nine = heldout | (grid[:, 1] == 9)
    assert error.distance_to_seen(grid, without_nine, factors).reshape(12, 3)[:3, 0].tolist() == [1, 2, 1]


def test_absent_factors_are_not_seen_points_and_nothing_seen_is_infinitely_far():
    factors = plane(3)
    latents = torch.tensor([[1.0, 1.0], [1.0, torch.nan], [2.0, 2.0]])
    heldout = torch.tensor([True, False, False])
    assert error.distance_to_seen(latents, heldout, factors).tolist() == [2, 0, 0]
    assert error.distance_to_seen(latents[:1], heldout[:1], factors).tolist() == [math.inf]


def test_mean_by_distance_leaves_nan_out_and_counts():
    curve = error.mean_by_distance(torch.tensor([1.0, torch.nan, 5.0, 7.0]), torch.tensor([2.0, 1.0, 1.0, 2.0]))
    assert curve.distances.tolist() == [1, 2]
    assert curve.means.tolist() == [5, 4]
    assert curve.counts.tolist() == [1, 2]
