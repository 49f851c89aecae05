import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures.grid import grid_index, grid_order, grid_steps, on_grid, wraps

from .scenes import plane


def test_maps_over_the_grid_have_the_first_factor_first():
    factors = plane(3, 4)
    grid = on_grid(latent_grid(factors), factors)
    assert grid.shape == (3, 4, 2)
    assert grid[2, 1].tolist() == [2, 1]


def test_wrong_numbers_of_points_and_factors_are_told():
    with pytest.raises(ValueError, match="12 points; got 11"):
        on_grid(torch.zeros(11), plane(3, 4))
    with pytest.raises(ValueError, match="2 factors"):
        grid_index(torch.zeros(4, 3), plane(3))


def test_only_values_that_close_the_circle_wrap():
    assert wraps(Factor("angle", range(0, 360, 10), "circular", 360))
    assert not wraps(Factor("angle", range(0, 180, 10), "circular", 360))
    assert not wraps(Factor("x", range(9)))


def test_steps_are_symmetric_and_infinite_off_the_grid():
    factors = plane(4)
    place = grid_index(torch.cat([latent_grid(factors), torch.tensor([[0.5, 1.0]])]), factors)
    steps = grid_steps(place, place, factors)
    assert torch.equal(steps, steps.T)
    assert steps[0, 7].item() == 4
    assert torch.isinf(steps[-1]).all()


def test_grid_order_sorts_any_rows_with_the_first_factor_slowest():
    factors = plane(3, 4)
    grid = latent_grid(factors)
    rows = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert torch.equal(grid[rows][grid_order(grid[rows], factors)], grid)
    assert grid_order(grid, factors).tolist() == list(range(12))
    some = grid[rows[:7]]
    assert some[grid_order(some, factors)].tolist() == sorted(some.tolist())
