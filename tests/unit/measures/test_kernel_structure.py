import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures.kernel_structure import Schmidt, block_score, kernel_terms, schmidt
from composcope.measures.kernels import binary_kernel, product_kernel

from .scenes import normal, plane

seeds = st.integers(0, 10_000)


def positive(size, seed):
    """A positive definite matrix."""
    root = normal(size, size, seed=seed)
    return root @ root.T


def centred(matrix):
    matrix = matrix - matrix.mean(0, keepdim=True)
    return matrix - matrix.mean(1, keepdim=True)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, terms=st.integers(1, 4))
def test_sums_of_kronecker_products_have_their_rank(seed, terms):
    gram = sum(torch.kron(positive(4, seed + 10 * i), positive(5, seed + 10 * i + 5)) for i in range(terms))
    assert schmidt(gram, plane(4, 5)).rank(1e-9) == terms


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_symmetric_kernels_are_decomposed_in_halves_with_the_same_values(seed):
    gram = normal(12, 12, seed=seed)
    gram = gram + gram.T
    table = gram.reshape(3, 4, 3, 4).permute(0, 2, 1, 3).reshape(9, 16)
    values = schmidt(gram, plane(3, 4)).values
    assert torch.allclose(values[:9], torch.linalg.svdvals(table), atol=1e-10)
    assert values.square().sum().sqrt().item() == pytest.approx(gram.norm().item())


def test_an_unsymmetric_kernel_is_decomposed_whole():
    gram = torch.kron(normal(3, 3, seed=1), normal(4, 4, seed=2)) + torch.kron(
        normal(3, 3, seed=3), normal(4, 4, seed=4)
    )
    assert schmidt(gram, plane(3, 4)).rank(1e-9) == 2


def test_factors_of_one_value_leave_a_product():
    assert schmidt(positive(4, 0), plane(1, 4)).rank() == 1


def test_ranks_to_epsilon_and_effective_rank():
    spectrum = Schmidt(torch.tensor([3.0, 4e-2, 1e-9], dtype=torch.float64))
    assert (spectrum.rank(), spectrum.rank_to(0.1), spectrum.rank_to(0.001)) == (2, 1, 2)
    assert Schmidt(torch.ones(5)).effective_rank == pytest.approx(5)


def test_schmidt_refuses_other_than_two_factors_and_other_sizes():
    with pytest.raises(ValueError, match="two factors"):
        schmidt(torch.eye(8), [*plane(2), Factor("z", (0, 1))])
    with pytest.raises(ValueError, match=r"9 points; the kernel has shape \(8, 8\)"):
        schmidt(torch.eye(8), plane(3))


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_terms_and_the_mixed_rest_add_up_to_the_kernel(seed):
    gram = positive(24, seed)
    terms = kernel_terms(gram, [*plane(2, 3), Factor("z", range(4))])
    assert len(terms.theta) == 7
    parts = sum(theta**2 for theta in terms.theta.values()) + (gram.mean().item() * 24) ** 2 + terms.mixed**2
    assert parts == pytest.approx(gram.square().sum().item())


def test_a_stationary_kernel_mixes_nothing():
    circle = Factor("angle", range(0, 360, 45), "circular", 360)
    gram = product_kernel(latent_grid([circle]), [circle], widths=40.0)
    terms = kernel_terms(gram, [circle])
    assert terms.mixed == 0
    assert terms.pf_coeff() == pytest.approx(1)


def test_subsets_and_weights_of_pf_coeff_can_be_chosen():
    factors = plane(3, 4)
    ones = torch.ones(4, 4, dtype=torch.float64)
    x, y = centred(positive(3, 1)), centred(positive(4, 2))
    gram = torch.kron(x, ones) / x.norm() / 4 + 3 * torch.kron(x, y) / x.norm() / y.norm()
    terms = kernel_terms(gram, factors)
    assert terms.pf_coeff() == pytest.approx(1 / 4)
    assert terms.pf_coeff(weight=lambda theta: theta**2) == pytest.approx(1 / 10)
    assert terms.pf_coeff([("y",)]) == pytest.approx(0, abs=1e-12)
    assert terms.pf_coeff([("x",), ("x", "y")]) == pytest.approx(1)
    assert terms.pf_coeff(2) == pytest.approx(1)
    with pytest.raises(ValueError, match="no terms"):
        terms.pf_coeff([("z",)])


def test_pf_coeff_of_a_constant_kernel_is_undefined():
    assert kernel_terms(torch.zeros(4, 4), plane(2)).pf_coeff() is None


def test_block_score_is_1_for_blocks_little_for_noise_and_between_for_smooth_kernels():
    factors = plane(8)
    grid = latent_grid(factors)
    noise = normal(64, 64)
    smooth = block_score(product_kernel(grid, factors, widths=2.0), grid, factors)
    assert block_score(binary_kernel(grid, factors), grid, factors) == pytest.approx(1)
    assert block_score(noise + noise.T, grid, factors) < 0.01
    assert 0.05 < smooth < 0.6
    assert block_score(torch.ones(64, 64), grid, factors) is None


def test_the_diagonal_is_no_pair():
    factors = plane(5)
    grid = latent_grid(factors)
    gram = product_kernel(grid, factors, widths=1.0)
    assert block_score(gram + 3 * torch.eye(25), grid, factors) == pytest.approx(block_score(gram, grid, factors))


def test_blocks_of_one_factor_are_told_apart_from_those_of_another():
    factors = plane(6)
    grid = latent_grid(factors)
    by_x = (grid[:, None, 0] == grid[None, :, 0]).double()
    assert block_score(by_x, grid[:, :1], factors[:1]) == pytest.approx(1)
    assert block_score(by_x, grid[:, 1:], factors[1:]) < 0.1
    assert block_score(by_x, grid, factors) == pytest.approx(1)
