"""Samplings: which latents are trained on."""

import pytest
import torch
from pydantic import ValidationError

import composcope as cs

TASK, HOLE = cs.BumpTask(8), cs.Square(2, 5)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def test_draws_are_with_replacement(rng):
    drawn = cs.Draws(500).sample(TASK, HOLE, rng)
    assert len(drawn) == 500
    assert len(drawn.unique(dim=0)) <= 48


def test_draws_are_about_uniform_over_seen_combinations(rng):
    _, counts = cs.Draws(48 * 200).sample(TASK, HOLE, rng).unique(dim=0, return_counts=True)
    assert len(counts) == 48
    assert counts.min() > 120
    assert counts.max() < 280


def test_everything_is_every_seen_point_once(rng):
    torch.testing.assert_close(cs.Everything().sample(TASK, HOLE, rng), cs.split(TASK, HOLE).seen)


def test_by_default_there_is_one_stripe_per_factor_value(rng):
    stripes = cs.Stripes().sample(TASK, HOLE, rng)
    assert stripes.shape == (16, 2)
    assert stripes[:8, 0].tolist() == stripes[8:, 1].tolist() == list(range(8))
    assert stripes[:8, 1].isnan().all()
    assert stripes[8:, 0].isnan().all()


def test_bumps_added_to_stripes_are_distinct_and_seen(rng):
    sample = cs.Stripes(bumps=20).sample(TASK, HOLE, rng)
    bumps = sample[~sample.isnan().any(1)]
    assert len(bumps) == len(bumps.unique(dim=0)) == 20
    assert not HOLE.contains(bumps).any()


def test_fraction_is_of_the_seen_combinations(rng):
    assert len(cs.Stripes(stripes=0, fraction=0.25).sample(TASK, HOLE, rng)) == 12


def test_fewer_stripes_are_chosen_at_random(rng):
    sample = cs.Stripes(stripes=4).sample(TASK, HOLE, rng)
    assert len(sample) == 4
    assert (sample.isnan().sum(1) == 1).all()


@pytest.mark.parametrize("fields", [{"bumps": 3, "fraction": 0.5}, {"stripes": 0}, {"fraction": 1.5}, {"bumps": -1}])
def test_stripes_refuse_invalid_fields(fields):
    with pytest.raises(ValidationError):
        cs.Stripes(**fields)


@pytest.mark.parametrize(("fields", "complaint"), [({"stripes": 17}, "only 16"), ({"bumps": 49}, "only 48")])
def test_more_than_available_is_refused(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        cs.Stripes(**fields).check(TASK, HOLE)


def test_draws_from_a_region_of_measure_zero_end_with_an_error(rng):
    task = cs.BumpTask(8, continuous=True)
    with pytest.raises(cs.BadInput, match="too little"):
        cs.Draws(10).sample(task, ~cs.Box({"x": (3, 3)}), rng)


def test_draws_need_at_least_one():
    with pytest.raises(ValidationError, match="n"):
        cs.Draws(0)


BRIGHT = cs.BumpTask(8, brightness=(0.5, 1.0))


def present(latents):
    """How many samples have which factors."""
    patterns, counts = (~latents.isnan()).unique(dim=0, return_counts=True)
    return {tuple(pattern): count for pattern, count in zip(patterns.int().tolist(), counts.tolist(), strict=True)}


def test_all_but_one_factor_is_present_and_nothing_unseen_is_shown_together(rng):
    sample = cs.Stripes(subsets="all but one").sample(BRIGHT, HOLE, rng)
    assert present(sample) == {(0, 1, 1): 16, (1, 0, 1): 16, (1, 1, 0): 64 - 16}
    assert not HOLE.contains(sample).any()


def test_all_proper_subsets_of_three_factors(rng):
    sample = cs.Stripes(subsets="all proper subsets", bumps=3).sample(BRIGHT, HOLE, rng)
    two = {(0, 1, 1): 16, (1, 0, 1): 16, (1, 1, 0): 48}
    assert present(sample) == {(1, 0, 0): 8, (0, 1, 0): 8, (0, 0, 1): 2, **two, (1, 1, 1): 3}
    assert len(sample.nan_to_num(-1).unique(dim=0)) == len(sample)


@pytest.mark.parametrize("subsets", ["all but one", "all proper subsets"])
def test_of_two_factors_all_subsets_are_single(subsets):
    first, second = (
        cs.Stripes(bumps=5, subsets=kind).sample(TASK, HOLE, torch.Generator().manual_seed(1))
        for kind in ("single", subsets)
    )
    torch.testing.assert_close(first, second, equal_nan=True)


def test_a_whole_value_that_is_held_out_is_shown_alone_but_not_with_others(rng):
    sample = cs.Stripes(subsets="all proper subsets").sample(BRIGHT, cs.Interval("x", 3, 4), rng)
    with_x = sample[(sample[:, 0] == 3) | (sample[:, 0] == 4)]
    assert present(with_x) == {(1, 0, 0): 2}


def test_more_subsets_than_there_are_are_refused():
    with pytest.raises(ValueError, match="there are only 98, for all proper subsets"):
        cs.Stripes(stripes=99, subsets="all proper subsets").check(BRIGHT, HOLE)
