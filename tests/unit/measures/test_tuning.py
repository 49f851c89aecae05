import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures.linear_factorization import effect_variances
from composcope.measures.tuning import _medians, tuning_maps, tuning_marginals, unit_scores

from .scenes import bumps, crosses, normal, plane


def maps_of(images):
    """Pixels as units: one column a pixel."""
    return images.flatten(1)


def test_maps_have_units_first_and_then_the_grid():
    factors = plane(3, 4)
    maps = tuning_maps(latent_grid(factors), factors)
    assert maps.shape == (2, 3, 4)
    assert maps[0, 2].tolist() == [2, 2, 2, 2]
    x, y = tuning_marginals(maps)
    assert x[0].tolist() == [0, 1, 2]
    assert y[0].tolist() == [1, 1, 1, 1]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), axis=st.integers(0, 1))
def test_any_function_of_one_factor_is_a_stripe(seed, axis):
    factors = plane(9, 7)
    profile = normal(9, seed=seed)
    units = profile[latent_grid(factors)[:, axis].long()][:, None]
    scores = unit_scores(units, factors)
    assert scores.stripe.item() == pytest.approx(1)
    assert scores.bump.item() == 0
    assert scores.main[0].argmax().item() == axis


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("background", [0.0, 0.5])
def test_a_localised_bump_is_a_bump_upright_or_inverted(sign, background):
    factors = plane(28)
    middle = maps_of(bumps(latent_grid(factors), 28))[:, 14 * 28 + 12 : 14 * 28 + 15]
    scores = unit_scores(background + sign * middle, factors)
    assert scores.bump.tolist() == pytest.approx([1] * 3, abs=1e-3)
    assert scores.stripe.tolist() == pytest.approx([0] * 3, abs=1e-3)


def test_every_pixel_of_a_bump_image_even_in_corners_is_mostly_a_bump():
    factors = plane(16)
    scores = unit_scores(maps_of(bumps(latent_grid(factors), 16)), factors)
    assert scores.bump.min() > 0.95


def test_crosses_ramps_and_noise_are_no_bumps():
    factors = plane(28)
    grid = latent_grid(factors).double()
    cross = unit_scores(maps_of(crosses(grid, 28))[:, [14 * 28 + 14]], factors)
    assert cross.stripe.item() == pytest.approx(0.5, abs=0.1)
    assert cross.bump.item() < 0.3
    ramp = unit_scores((grid[:, :1] + 1) * (grid[:, 1:] + 1), factors)
    assert ramp.bump.item() < 0.3
    noise = unit_scores(normal(784, 50), factors)
    assert noise.stripe.max() < 0.2
    assert noise.bump.max() < 0.2


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(0.01, 100), shift=st.floats(-5, 5))
def test_scores_lie_in_0_to_1_together_and_ignore_scale_and_shift(seed, scale, shift):
    factors = plane(6, 5)
    units = normal(30, 4, seed=seed)
    a, b = unit_scores(units, factors), unit_scores(scale * units + shift, factors)
    assert (a.stripe + a.bump <= 1 + 1e-9).all()
    assert torch.minimum(a.stripe, a.bump).min() >= 0
    assert torch.allclose(a.stripe, b.stripe, atol=1e-6)
    assert torch.allclose(a.bump, b.bump, atol=1e-6)


def test_silent_units_score_nothing():
    factors = plane(5)
    grid = latent_grid(factors).double()
    scores = unit_scores(torch.stack([torch.full((25,), 0.1), grid[:, 0]], 1), factors)
    assert scores.silent.tolist() == [True, False]
    assert scores.stripe.tolist() == pytest.approx([0, 1])


def test_three_factors_and_chunks():
    factors = [*plane(8), Factor("z", range(8))]
    grid = latent_grid(factors).double()
    bump = torch.exp(-(grid - 4).square().sum(1) / 0.5)
    units = torch.stack([bump, grid[:, 2], bump], 1)
    whole, chunked = unit_scores(units, factors), unit_scores(units, factors, chunk=1)
    assert whole.bump.tolist() == pytest.approx([1, 0, 1], abs=1e-3)
    assert whole.stripe.tolist() == pytest.approx([0, 1, 0], abs=1e-3)
    assert torch.allclose(whole.bump, chunked.bump)


@pytest.mark.parametrize("values", [7, 8])
def test_medians_are_pytorchs(values):
    rows = torch.randn(8, values, generator=torch.Generator().manual_seed(0))
    rows[3, 2] = torch.nan
    for row, zeros in zip(rows[4:], (3, 4, 5, values), strict=True):  # below, at and above half of the values
        row.abs_()[:zeros] = 0.0
    assert torch.equal(_medians(rows).nan_to_num(99), rows.median(1).values.nan_to_num(99))


def test_effects_are_those_of_the_units():
    units = torch.randn(16, 5, generator=torch.Generator().manual_seed(0))
    factors = plane(4)
    want = effect_variances(units, factors)
    got = unit_scores(units, factors, chunk=2).effects
    assert got.keys() == want.keys()
    assert all(torch.allclose(got[term], want[term]) for term in want)
