import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures.kernels import centred_spectrum
from composcope.measures.probes import FeatureFits, GramFits, _readout, linear_probes, probes_from_gram

from .scenes import normal, plane, rotation, square

seeds = st.integers(0, 10_000)


@pytest.mark.parametrize("width", [2, 10, 150])
def test_a_linear_code_is_read_everywhere(width):
    factors = plane(8)
    grid, heldout = square(factors, 3, 4)
    code = grid.double() @ normal(2, width) + 5
    for score in linear_probes(code, grid, factors, heldout).values():
        assert score.in_sample == pytest.approx(1)
        assert score.cross_validated == pytest.approx(1, abs=1e-6)
        assert score.heldout == pytest.approx(1, abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, width=st.sampled_from([4, 40, 80]))
def test_rotation_and_shift_of_activations_change_no_score(seed, width):
    factors = plane(6)
    grid, heldout = square(factors, 2, 3)
    activations = (grid.double() @ normal(2, width, seed=seed) / 5).relu() + 0.1 * normal(36, width, seed=seed)
    turned = activations @ rotation(width, seed) - 2
    before, after = (linear_probes(a, grid, factors, heldout)["x"] for a in (activations, turned))
    assert before.cross_validated == pytest.approx(after.cross_validated, abs=1e-4)
    assert before.heldout == pytest.approx(after.heldout, abs=1e-4)


def test_a_gram_matrix_summed_over_chunks_is_enough():
    factors = plane(6)
    grid, heldout = square(factors, 2, 3)
    activations = normal(36, 50) + grid.sum(1, keepdim=True).double()
    gram = activations[:, :20] @ activations[:, :20].T + activations[:, 20:] @ activations[:, 20:].T
    direct, summed = linear_probes(activations, grid, factors, heldout), probes_from_gram(gram, grid, factors, heldout)
    for name in ("x", "y"):
        assert direct[name].cross_validated == pytest.approx(summed[name].cross_validated, abs=1e-9)
        assert direct[name].heldout == pytest.approx(summed[name].heldout, abs=1e-9)


def test_narrow_layers_are_fitted_as_by_ordinary_least_squares():
    factors = plane(6)
    grid, heldout = square(factors, 2, 3)
    activations = grid.double().sin() @ normal(2, 4) + 0.1 * normal(36, 4, seed=3)
    design = torch.cat([activations, torch.ones(36, 1)], 1)
    predicted = design @ torch.linalg.lstsq(design, grid.double()).solution
    expected = 1 - (predicted - grid).square().sum(0) / (grid - grid.mean(0)).square().sum(0)
    scores = linear_probes(activations, grid, factors, heldout)
    assert [scores[name].in_sample for name in ("x", "y")] == pytest.approx(expected.tolist())


def test_the_ridge_is_the_best_by_leaving_each_point_out():
    features, targets = normal(12, 20), normal(12, 1, seed=1)
    at = normal(3, 20, seed=2)
    ridges = (1e-3, 1e-1, 1.0)

    def left_out(ridge):
        keep = [torch.arange(12) != i for i in range(12)]
        top = torch.linalg.eigvalsh((features - features.mean(0)) @ (features - features.mean(0)).T)[-1]
        errors = []
        for i, rows in enumerate(keep):
            centred = features[rows] - features[rows].mean(0)
            weights = torch.linalg.solve(
                centred.T @ centred + ridge * top * torch.eye(20), centred.T @ (targets[rows] - targets[rows].mean(0))
            )
            errors.append(targets[i] - targets[rows].mean(0) - (features[i] - features[rows].mean(0)) @ weights)
        return torch.stack(errors).square().mean().item()

    def predicted(ridges):
        fitted_on = torch.arange(15) < 12
        return _readout(FeatureFits(torch.cat([features, at]))(fitted_on, ~fitted_on), targets, ridges)

    best = min(ridges, key=left_out)
    assert torch.equal(predicted(ridges), predicted((best,)))
    others = [ridge for ridge in ridges if ridge != best]
    assert not torch.allclose(predicted(ridges), predicted(others[:1]))


def test_fits_from_a_gram_matrix_are_those_from_features():
    features, targets = normal(30, 20), normal(30, 2, seed=1)
    train = torch.arange(30) % 3 != 0
    centred = features - features.mean(0)
    gram = centred @ centred.T
    by_gram = GramFits(gram, centred_spectrum(gram))
    for fitted_on in (train, torch.ones_like(train)):  # as many directions as features, and with a known spectrum
        readouts = [
            _readout(fits(fitted_on, ~train), targets[fitted_on], (0.0, 1e-2))
            for fits in (FeatureFits(features), by_gram)
        ]
        assert torch.allclose(*readouts, rtol=1e-9, atol=1e-9)


def test_held_out_scores_do_not_see_held_out_points():
    factors = plane(8)
    grid, heldout = square(factors, 3, 4)
    spoiled = grid.double().clone()
    spoiled[heldout] = spoiled[heldout].flip(0)
    score = linear_probes(spoiled, grid, factors, heldout)["x"]
    assert score.heldout == pytest.approx(-3)


def test_circular_factors_are_read_as_cosine_and_sine():
    angle = [Factor("angle", range(0, 360, 10), "circular", 360)]
    grid = latent_grid(angle)
    radians = grid.double() * math.pi / 180
    heldout = (grid[:, 0] > 150) & (grid[:, 0] < 210)
    circle = torch.cat([radians.cos(), radians.sin()], 1) @ normal(2, 5)
    assert linear_probes(circle, grid, angle, heldout)["angle"].heldout == pytest.approx(1)
    assert linear_probes(grid, grid, angle, heldout)["angle"].cross_validated < 0.8


def test_categories_are_scored_by_accuracy():
    factors = [Factor("x", range(10)), Factor("digit", (0, 4, 9), "categorical")]
    grid = latent_grid(factors)
    heldout = (grid[:, 0] > 6) & (grid[:, 1] == 4)
    told = torch.nn.functional.one_hot((grid[:, 1] > 0).long() + (grid[:, 1] > 4)) + 0.01 * normal(30, 3)
    scores = linear_probes(told, grid, factors, heldout)
    assert (scores["digit"].score, scores["x"].score) == ("accuracy", "R2")
    assert scores["digit"].cross_validated == 1
    assert scores["digit"].heldout == 1  # though only one category is held out
    assert linear_probes(normal(30, 2), grid, factors, heldout)["digit"].cross_validated < 0.7


def test_folds_are_fixed_by_the_seed():
    factors = plane(5)
    grid, heldout = square(factors, 2, 2)
    runs = [linear_probes(normal(25, 3), grid, factors, heldout, seed=seed)["x"].cross_validated for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_silent_layers_tell_nothing_and_absent_factors_are_refused():
    factors = plane(4)
    grid, heldout = square(factors, 1, 2)
    silent = linear_probes(torch.ones(16, 3), grid, factors, heldout)["x"]
    assert silent.in_sample == pytest.approx(0)
    assert silent.cross_validated <= 0
    assert linear_probes(normal(16, 3), grid, factors, torch.zeros(16, dtype=torch.bool))["x"].heldout is None
    with pytest.raises(ValueError, match="absent"):
        linear_probes(normal(16, 3), grid.masked_fill(grid == 0, torch.nan), factors, heldout)
    with pytest.raises((ValueError, TypeError)):
        linear_probes(normal(15, 3), grid, factors, heldout)
