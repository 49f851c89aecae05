"""Factors and the latent grid."""

import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from composcope.factors import absent, column, latent_grid


@pytest.mark.parametrize("values", [(), (1, 1), (2, 1), (0, float("nan")), (0, float("inf"))], ids=str)
def test_values_must_be_finite_and_strictly_increasing(values):
    with pytest.raises(ValidationError):
        cs.Factor("x", values)


def test_only_a_circular_factor_has_a_period():
    with pytest.raises(ValidationError, match="period"):
        cs.Factor("x", range(4), period=4)
    with pytest.raises(ValidationError, match="period"):
        cs.Factor("angle", range(4), "circular")


def test_circular_values_stay_within_one_period():
    with pytest.raises(ValidationError, match="whole period of 360"):
        cs.Factor("angle", (0, 180, 360), "circular", 360)


def test_step_is_the_mean_distance_between_neighbours():
    assert cs.Factor("b", (0.0, 0.5, 2.0)).step == 1.0
    assert cs.Factor("constant", (7.0,)).step == 1.0


def test_circular_difference_goes_the_short_way_round():
    angle = cs.Factor("angle", range(0, 360, 10), "circular", 360)
    difference = angle.difference(torch.tensor([350.0, 10.0, 90.0]), torch.tensor([10.0, 350.0, 0.0]))
    assert difference.tolist() == [-20, 20, 90]


def test_index_finds_listed_values_only():
    brightness = cs.Factor("brightness", (0.25, 0.5, 1.0))
    assert brightness.index(torch.tensor([0.25, 1.0, 0.3, torch.nan, 2.0, 0.0])).tolist() == [0, 2, -1, -1, -1, -1]


def test_index_tolerates_rounding():
    thirds = cs.Factor("t", [i / 3 for i in range(10)])
    assert thirds.index(torch.arange(10) * (1 / 3)).tolist() == list(range(10))


def test_in_a_grid_of_three_factors_the_first_varies_slowest():
    grid = latent_grid([cs.Factor(name, range(size)) for name, size in (("a", 2), ("b", 3), ("c", 4))])
    assert grid.shape == (24, 3)
    assert torch.equal(grid.reshape(2, 3, 4, 3)[1, 2, 3], torch.tensor([1.0, 2.0, 3.0]))


def test_grid_of_one_factor_keeps_its_column():
    assert latent_grid([cs.Factor("a", range(3))]).tolist() == [[0], [1], [2]]


def test_absent_is_nan():
    assert absent(torch.tensor([[1.0, torch.nan]])).tolist() == [[False, True]]


def test_unknown_column_is_named():
    with pytest.raises(ValueError, match=r"'z'; the factors are x, y"):
        column(cs.BumpTask(8).factors, "z")


def test_repr_is_short():
    assert repr(cs.Factor("x", range(28))) == 'Factor("x", 0..27)'
    assert repr(cs.Factor("digit", (1, 4), "categorical")) == 'Factor("digit", 1, 4, categorical)'


def test_a_word_is_not_a_list_of_letters():
    with pytest.raises(ValidationError, match="values"):
        cs.Factor("x", "abc")
    assert cs.Factor("x", list("abc")).names == ("a", "b", "c")
