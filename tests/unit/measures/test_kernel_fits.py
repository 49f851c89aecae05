import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures.kernel_fits import fit_outputs

from .scenes import bumps, normal, plane, rng, square


def test_smooth_outputs_are_predicted_in_the_hole_and_noise_is_not():
    factors = plane(10)
    grid, heldout = square(factors, 4, 5)
    smooth = torch.stack([(grid[:, 0] / 4).sin() * (grid[:, 1] / 5).cos(), (grid[:, 0] / 6).cos()], 1)
    assert fit_outputs(smooth, grid, heldout, factors, "factorized", rng()).score > 0.98
    noise = fit_outputs(normal(100, 3), grid, heldout, factors, "radial", rng())
    assert noise.score < 0.3
    assert noise.chosen_score < 0.3


def test_the_score_is_that_of_a_kernel_regression_about_the_mean_of_the_fitted_points():
    factors = plane(7)
    grid, heldout = square(factors, 3, 4)
    outputs = 9 + normal(49, 4) + grid.double()[:, :1]
    kernel = torch.exp(-torch.cdist(grid.double(), grid.double()).square() / 2)

    def expected(fit, at):
        mean = outputs[fit].mean(0)
        alpha = torch.linalg.solve(kernel[fit][:, fit] + 0.1 * torch.eye(len(fit)), outputs[fit] - mean)
        truth, predicted = outputs[at], mean + kernel[at][:, fit] @ alpha
        return (1 - (truth - predicted).square().sum() / (truth - truth.mean(0)).square().sum()).item()

    result = fit_outputs(outputs, grid, heldout, factors, "radial", rng(), lengths=(1.0,), ridge=0.1)
    seen = (~heldout).nonzero()[:, 0]
    order = seen[torch.randperm(len(seen), generator=rng())]
    assert result.score == pytest.approx(expected(seen, heldout.nonzero()[:, 0]))
    assert result.chosen_score == pytest.approx(expected(order[11:], order[:11]))


def test_lengths_do_not_depend_on_what_is_scored():
    factors = plane(8)
    grid, heldout = square(factors, 3, 4)
    outputs = bumps(grid, 8, 2.0).clone()
    before = fit_outputs(outputs, grid, heldout, factors, "factorized", rng())
    outputs[heldout] = normal(4, 1, 8, 8)
    after = fit_outputs(outputs, grid, heldout, factors, "factorized", rng())
    assert (before.lengths, before.chosen_score) == (after.lengths, after.chosen_score)
    assert after.score < before.score


def test_repeated_points_count_once_and_categories_have_no_length():
    factors = [Factor("x", range(6)), Factor("digit", (0, 1), "categorical")]
    grid, heldout = latent_grid(factors), torch.arange(12) % 12 >= 10
    outputs = (grid[:, :1] / 3).sin() + grid[:, 1:]
    twice = [torch.cat([thing, thing[:4]]) for thing in (outputs, grid, heldout)]
    once = fit_outputs(outputs, grid, heldout, factors, "radial", rng())
    again = fit_outputs(*twice, factors, "radial", rng())
    assert set(once.lengths) == {"x"}
    assert once.score == pytest.approx(again.score, abs=1e-6)


def test_too_few_points_are_refused():
    factors = plane(2)
    grid, heldout = square(factors, 1, 1)
    with pytest.raises(ValueError, match="4 distinct seen"):
        fit_outputs(torch.zeros(4, 1), grid, heldout, factors, "radial", rng())
