"""The two regressions against closed forms, scikit-learn and each other's laws."""

import pytest
import torch
from sklearn.linear_model import PoissonRegressor

from composcope.forecasts import regressions
from composcope.forecasts.regressions import (
    Samples,
    fit_gaussian,
    fit_loglinear,
    fit_score,
    gaussian_kernel,
    predict_loglinear,
    with_constant,
)


@pytest.fixture
def data():
    rng = torch.Generator().manual_seed(3)
    codes = torch.rand(40, 5, generator=rng, dtype=torch.float64)
    targets = torch.rand(40, 7, generator=rng, dtype=torch.float64)
    return codes, targets, torch.randint(1, 4, (40,), generator=rng).double()


def test_loglinear_agrees_with_scikit_learn(data):
    codes, targets, counts = data
    weights = fit_loglinear(codes, targets, counts, ridge=0.03)
    for pixel in range(targets.shape[1]):
        # Its objective is a mean over samples, and it does not penalise an intercept of its own.
        other = PoissonRegressor(alpha=0.03 / counts.sum().item(), fit_intercept=False, tol=1e-10, max_iter=1000)
        other.fit(with_constant(codes).numpy(), targets[:, pixel].numpy(), sample_weight=counts.numpy())
        torch.testing.assert_close(weights[:, pixel], torch.from_numpy(other.coef_), atol=1e-4, rtol=1e-4)


def test_the_gradient_vanishes_at_the_solution(data):
    codes, targets, counts = data
    targets[:, 0] = 0  # a pixel that is never lit has a solution too
    weights = fit_loglinear(codes, targets, counts)
    rates = predict_loglinear(weights, codes)
    gradient = with_constant(codes).T @ (counts[:, None] * (rates - targets)) + regressions.LOGLINEAR_RIDGE * weights
    assert gradient.abs().max() < 1e-3
    assert rates[:, 0].max() < 0.05


def test_chunks_of_pixels_and_rows_make_no_difference(data, monkeypatch):
    whole = fit_loglinear(*data)
    monkeypatch.setattr(regressions, "MAX_NUMBERS", 80)
    torch.testing.assert_close(fit_loglinear(*data), whole)


@pytest.mark.parametrize("method", ["loglinear", "gaussian"])
def test_counts_are_repeated_samples(method, data):
    codes, targets, counts = data
    repeated = counts.long().tolist()
    many = [part.repeat_interleave(torch.tensor(repeated), 0) for part in (codes, targets)]
    if method == "loglinear":
        once = predict_loglinear(fit_loglinear(codes, targets, counts), codes)
        again = predict_loglinear(fit_loglinear(*many, torch.ones(sum(repeated))), codes)
    else:
        once = gaussian_kernel(codes, codes) @ fit_gaussian(codes, targets, counts)
        again = gaussian_kernel(codes, many[0]) @ fit_gaussian(*many, torch.ones(sum(repeated)))
    torch.testing.assert_close(once, again, atol=1e-6, rtol=1e-6)


def test_progress_ends_with_every_pixel(data):
    steps = []
    fit_loglinear(*data, on_progress=lambda done, total: steps.append((done, total)))
    assert steps[0] == (0, 7)
    assert steps[-1] == (7, 7)


def grid_of_two(size):
    first, second = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    parts = [torch.nn.functional.one_hot(index.flatten(), size).double() for index in (first, second)]
    return torch.cat(parts, 1), first.flatten(), second.flatten()


def test_a_product_of_factors_is_composed_by_the_loglinear_regression_and_not_by_the_kernel():
    """f(x) g(y) is log-linear in one-hot codes, so that held-out products follow from seen ones."""
    codes, first, second = grid_of_two(6)
    rng = torch.Generator().manual_seed(0)
    f, g = (0.2 + 0.6 * torch.rand(6, 9, generator=rng, dtype=torch.float64) for _ in range(2))
    images = f[first] * g[second]
    heldout = (first >= 3) & (second >= 3)
    weights = fit_loglinear(codes[~heldout], images[~heldout], torch.ones(int((~heldout).sum())), ridge=1e-6)
    assert (predict_loglinear(weights, codes[heldout]) - images[heldout]).abs().max() < 1e-3
    kernel = fit_gaussian(codes[~heldout], images[~heldout], torch.ones(int((~heldout).sum())))
    assert (gaussian_kernel(codes[heldout], codes[~heldout]) @ kernel - images[heldout]).abs().max() > 0.02


def test_predictions_stay_finite_far_from_the_data():
    weights = torch.tensor([[1000.0], [0.0]]).double()
    assert predict_loglinear(weights, torch.tensor([[5.0]]).double()).isfinite().all()


def test_fit_score_is_r_squared(data):
    codes, targets, counts = data
    samples = Samples(codes, targets, counts, 1.0)
    mean = (counts[:, None] * targets).sum(0) / counts.sum()
    assert fit_score(targets, samples) == 1
    assert fit_score(mean.expand_as(targets), samples) == pytest.approx(0)
    assert fit_score(targets, Samples(codes, torch.ones_like(targets), counts, 1.0)) == 0
