import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures.linear_factorization import additive_blocks, effect_variances, shares_of

from .scenes import normal, plane, rotation

CUBE = [*plane(3, 4), Factor("shape", range(5), "categorical")]


def variance_shares(activations, factors):
    return shares_of({term: units.sum().item() for term, units in effect_variances(activations, factors).items()})


def test_sums_are_main_effects_and_centred_products_are_not():
    x, y, z = (latent_grid(CUBE).double() - latent_grid(CUBE).double().mean(0)).T
    assert variance_shares((x**2 + 3 * y - z)[:, None], CUBE).main_effects == pytest.approx(1)
    assert variance_shares((x * y)[:, None], CUBE).by_term[("x", "y")] == pytest.approx(1)
    assert variance_shares((x * y * z)[:, None], CUBE).by_order == pytest.approx((0, 0, 1))


def test_a_mixture_has_its_known_shares():
    x, y, z = (latent_grid(CUBE).double() - latent_grid(CUBE).double().mean(0)).T
    unit = [part / part.std(unbiased=False) for part in (x, x * y, x * y * z)]
    shares = variance_shares((3 * unit[0] + 2 * unit[1] + unit[2])[:, None], CUBE)
    assert shares.by_order == pytest.approx((9 / 14, 4 / 14, 1 / 14))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_shares_sum_to_1_and_ignore_rotation_and_shift(seed):
    activations = normal(60, 4, seed=seed)
    shares = variance_shares(activations, CUBE)
    assert sum(shares.by_order) == pytest.approx(1)
    assert min(shares.by_term.values()) >= 0
    turned = variance_shares(activations @ rotation(4, seed) + 7, CUBE)
    assert turned.by_order == pytest.approx(shares.by_order)


def test_effects_of_each_unit_add_up_to_its_variance():
    units = normal(60, 3)
    total = torch.stack(list(effect_variances(units, CUBE).values())).sum(0)
    assert torch.allclose(total, units.var(0, unbiased=False))


def test_one_factor_is_all_main_effect_and_a_constant_layer_has_no_shares():
    x = [Factor("x", range(5))]
    assert variance_shares(normal(5, 2), x).by_order == (1,)
    assert variance_shares(torch.full((5, 2), 0.5), x) is None


@pytest.mark.parametrize(
    ("function", "blocks"),
    [
        (lambda x, y, z: x + y**2 - z, (("x",), ("y",), ("z",))),
        (lambda x, y, z: x * y + 5 * z, (("x", "y"), ("z",))),
        (lambda x, y, z: x * z + y, (("x", "z"), ("y",))),
        (lambda x, y, z: x * y * z, (("x", "y", "z"),)),
    ],
)
def test_blocks_are_the_factors_that_interact(function, blocks):
    factors = [Factor(name, range(4)) for name in "xyz"]
    x, y, z = latent_grid(factors).double().unbind(1)
    activations = torch.stack([function(x - 1.5, y - 1.5, z - 1.5), function(x, y, z)], 1)
    assert additive_blocks(variance_shares(activations, factors), 1e-6) == blocks


def test_small_interactions_are_left_out_of_blocks_and_the_finest_split_wins():
    shares = {("x",): 0.4, ("y",): 0.3, ("z",): 0.2, ("x", "y"): 0.03, ("x", "z"): 0.01, ("x", "y", "z"): 0.06}
    found = shares_of(shares)
    assert additive_blocks(found, 0.2) == (("x",), ("y",), ("z",))
    assert additive_blocks(found, 0.08) == (("x", "y"), ("z",))
    assert additive_blocks(found, 0.05) == (("x", "y", "z"),)
