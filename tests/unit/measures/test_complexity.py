import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures.complexity import distribution_complexity, independent_blocks, pixel_complexity

from .scenes import bumps, crosses, normal, plane, rng


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), rank=st.integers(1, 4))
def test_a_sum_of_products_has_its_rank_in_every_pixel(seed, rank):
    x, y = normal(rank, 5, 9, seed=seed), normal(rank, 6, 9, seed=seed + 1)
    images = torch.einsum("rxp,ryp->xyp", x, y).reshape(30, 1, 3, 3)
    result = pixel_complexity(images, plane(5, 6))
    assert result.exact.tolist() == [rank] * 9
    assert (result.to_epsilon <= result.exact).all()


def test_single_precision_rounding_is_no_rank():
    grid = latent_grid(plane(16))
    assert pixel_complexity(bumps(grid, 16).float(), plane(16)).maximum == 1
    assert pixel_complexity(crosses(grid, 16).float(), plane(16)).maximum == 2


def test_a_dark_bump_taken_without_its_foreground_is_not_rank_1():
    assert pixel_complexity(1 - bumps(latent_grid(plane(12)), 12), plane(12)).mean == 2


def test_epsilon_forgives_a_little_and_empty_pixels_have_rank_0():
    grid = latent_grid(plane(8))
    images = torch.cat([bumps(grid, 8) + 1e-3 * normal(64, 1, 8, 8), torch.zeros(64, 1, 8, 8)], 1)
    result = pixel_complexity(images, plane(8), epsilon=0.1)
    assert result.exact[:64].tolist() == [8] * 64
    assert (result.maximum_to_epsilon, result.mean_to_epsilon) == (1, 0.5)
    assert result.exact[64:].max() == 0


def test_more_than_two_factors_are_refused():
    with pytest.raises(ValueError, match="two factors"):
        pixel_complexity(torch.zeros(8, 1, 3, 3), [*plane(2), Factor("z", (0, 1))])


def test_blocks_of_factors_are_found():
    factors = [Factor(name, range(3)) for name in "xyzt"]
    x, y, z, t = (latent_grid(factors).double() + 1).T
    assert independent_blocks(x * y * z * t, factors) == (("x",), ("y",), ("z",), ("t",))
    assert independent_blocks((x + z) * (y + t), factors) == (("x", "z"), ("y", "t"))
    assert independent_blocks((x + y * t) * z, factors) == (("x", "y", "t"), ("z",))
    assert independent_blocks(x + y + z + t, factors) == (("x", "y", "z", "t"),)
    several = torch.stack([x * y * z * t, (x + z) * y * t], -1)
    assert independent_blocks(several, factors) == (("x", "z"), ("y",), ("t",))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_separate_blocks_of_probability_need_one_mixture_each(count):
    joint = torch.block_diag(*[torch.ones(2, 3)] * count)
    result = distribution_complexity(joint, rng())
    assert result.components == count
    assert list(result.divergences) == sorted(result.divergences, reverse=True)


def test_one_component_misses_the_mutual_information():
    joint = torch.tensor([[0.4, 0.1], [0.1, 0.4]], dtype=torch.float64)
    expected = (joint * (joint / 0.25).log()).sum().item()
    assert distribution_complexity(joint, rng(), most=1).divergences[0] == pytest.approx(expected)
    assert distribution_complexity(joint, rng(), most=1).components is None


def test_three_factors_and_bad_tables():
    parts = [torch.einsum("a,b,c->abc", *torch.rand(3, 4, generator=rng(seed))) for seed in (1, 2)]
    assert distribution_complexity(parts[0], rng()).components == 1
    spikes = torch.zeros(4, 4, 4)
    spikes[0, 0, 0] = spikes[1, 1, 1] = spikes[3, 2, 3] = 1.0
    assert distribution_complexity(spikes, rng()).components == 3
    with pytest.raises(ValueError, match="no negative entries"):
        distribution_complexity(-parts[0], rng())
