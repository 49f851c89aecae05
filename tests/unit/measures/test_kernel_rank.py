"""The CP rank of kernels over many factors: known answers, laws, and TensorLy beside it."""

import math

import pytest
import tensorly
import torch
from tensorly.decomposition import non_negative_parafac_hals

from composcope.factors import Factor, latent_grid
from composcope.measures.kernel_structure import cp_rank, kernel_terms, symmetric_table
from composcope.measures.kernels import binary_kernel, product_kernel

SIZES = {"x": 4, "y": 3, "z": 5}
FACTORS = [Factor(name, range(size)) for name, size in SIZES.items()]


def sum_of_products(terms, factors=FACTORS, seed=0):
    """Kernels of two nonnegative random features per factor, multiplied and added."""
    rng = torch.Generator().manual_seed(seed)
    total = torch.zeros(1, dtype=torch.float64)
    for _ in range(terms):
        product = torch.ones(1, 1, dtype=torch.float64)
        for factor in factors:
            features = torch.rand(factor.size, 2, generator=rng, dtype=torch.float64)
            product = torch.kron(product, features @ features.T)
        total = total + product / product.norm()
    return total


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_a_sum_of_products_has_as_many_terms(terms):
    found = cp_rank(sum_of_products(terms), FACTORS, epsilon=0.01)
    assert found.rank == terms
    assert len(found.errors) == terms
    assert all(error > 0.05 for error in found.errors[:-1])


def test_four_factors():
    factors = [*FACTORS[:2], Factor("u", range(3)), Factor("v", range(2))]
    assert cp_rank(sum_of_products(2, factors), factors, epsilon=0.01).rank == 2


def test_a_product_kernel_has_rank_1_and_the_binary_kernel_that_of_its_factors():
    factors = [Factor(name, range(4)) for name in "xyz"]
    latents = latent_grid(factors)
    assert cp_rank(product_kernel(latents, factors, dict.fromkeys("xyz", 1.0)), factors).rank == 1
    assert cp_rank(binary_kernel(latents, factors), factors).rank == 3


@pytest.mark.parametrize("terms", [1, 2])
def test_tensorly_finds_no_better_fit(terms):
    """Beside an independent implementation of nonnegative CP, at ranks below the true one."""
    gram = sum_of_products(4)
    own = cp_rank(gram, FACTORS, epsilon=0.0, most=terms, steps=100).errors[-1]
    table = symmetric_table(gram, FACTORS)
    fits = []
    for seed in range(2):
        parts = non_negative_parafac_hals(table.numpy(), terms, n_iter_max=150, random_state=seed, tol=1e-9)
        fits.append(float(((tensorly.cp_to_tensor(parts) - table.numpy()) ** 2).sum()) ** 0.5 / gram.norm().item())
    assert own == pytest.approx(min(fits), abs=0.003)


def test_errors_fall_and_do_not_depend_on_scale_or_on_the_order_of_factors():
    gram = sum_of_products(4)
    errors = cp_rank(gram, FACTORS, epsilon=0.0, most=3, steps=100).errors
    assert list(errors) == sorted(errors, reverse=True)
    assert cp_rank(7 * gram, FACTORS, epsilon=0.0, most=2, steps=100).errors == pytest.approx(errors[:2], abs=1e-3)
    table = gram.reshape(*SIZES.values(), *SIZES.values())
    turned = table.permute(2, 0, 1, 5, 3, 4).reshape(gram.shape)
    others = [FACTORS[2], *FACTORS[:2]]
    assert cp_rank(turned, others, epsilon=0.0, most=2, steps=100).errors == pytest.approx(errors[:2], abs=1e-3)


def test_tables_of_pairs_keep_the_norm_of_symmetric_kernels():
    gram = sum_of_products(2)
    assert symmetric_table(gram, FACTORS).shape == (10, 6, 15)
    assert symmetric_table(gram, FACTORS).norm().item() == pytest.approx(gram.norm().item())


def test_no_kernel_and_a_kernel_of_another_grid():
    assert cp_rank(torch.zeros(60, 60), FACTORS).rank == 0
    with pytest.raises(ValueError, match="60 points"):
        cp_rank(torch.eye(8), FACTORS)
    assert cp_rank(torch.eye(60), FACTORS).rank == 1
    assert cp_rank(sum_of_products(4), FACTORS, epsilon=1e-9, most=2, steps=5).rank is None


def test_the_cumulative_curve_of_pf_coeff_ends_at_1():
    factors = [Factor(name, range(3)) for name in "xyz"]
    same = torch.eye(3, dtype=torch.float64)
    ones = torch.ones(3, 3, dtype=torch.float64)
    only_x = torch.kron(torch.kron(same, ones), ones)
    x_and_y = torch.kron(torch.kron(same - 1 / 3, same - 1 / 3), ones)
    assert kernel_terms(only_x, factors).cumulative() == pytest.approx((1, 1, 1))
    assert kernel_terms(x_and_y, factors).cumulative() == pytest.approx((0, 1, 1))
    both = kernel_terms(only_x / only_x.norm() + x_and_y / x_and_y.norm(), factors)
    single = both.theta[("x",)]
    assert both.cumulative() == pytest.approx((single / (single + 1), 1, 1))
    assert single == pytest.approx(math.sqrt(2 / 3))  # without the constant part of "same x"
    assert kernel_terms(torch.ones(27, 27), factors).cumulative() is None
