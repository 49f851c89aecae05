import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.factors import Factor, latent_grid
from composcope.measures import kernels

from .scenes import bumps, normal, plane, square

seeds = st.integers(0, 10_000)


def loops(function, images):
    """The definition, two images at a time."""
    return torch.tensor([[function(a, b) for b in images] for a in images], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kernel", "definition"),
    [
        (kernels.cosine_kernel, lambda a, b: (a * b).sum() / (a.norm() * b.norm())),
        (kernels.l2_distance, lambda a, b: (a - b).norm()),
        (kernels.overlap_kernel, lambda a, b: ((a > 0.3) & (b > 0.3)).double().mean()),
        (kernels.soft_overlap_kernel, lambda a, b: torch.minimum(a, b).sum() / torch.maximum(a, b).sum()),
    ],
    ids=["cosine", "l2", "overlap", "soft overlap"],
)
def test_vectorised_kernels_equal_their_definitions(kernel, definition):
    images = normal(7, 2, 5, 5).abs()
    assert torch.allclose(kernel(images), loops(definition, images), atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, kernel=st.sampled_from([kernels.cosine_kernel, kernels.soft_overlap_kernel]))
def test_kernels_are_symmetric_bounded_with_unit_diagonal(seed, kernel):
    gram = kernel(normal(6, 1, 4, 4, seed=seed).abs())
    assert torch.equal(gram, gram.T)
    assert torch.allclose(gram.diagonal(), torch.ones(6, dtype=torch.float64))
    assert gram.min() >= -1e-12
    assert gram.max() <= 1 + 1e-12


@settings(max_examples=25, deadline=None)
@given(seed=seeds, scale=st.floats(0.1, 10))
def test_cosines_ignore_brightness_and_distances_scale_with_it(seed, scale):
    images = normal(5, 1, 4, 4, seed=seed)
    assert torch.allclose(kernels.cosine_kernel(scale * images), kernels.cosine_kernel(images))
    assert torch.allclose(kernels.l2_distance(scale * images), scale * kernels.l2_distance(images))


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_distances_keep_the_triangle_inequality(seed):
    distance = kernels.l2_distance(normal(6, 1, 3, 3, seed=seed))
    assert (distance[:, None, :] <= distance[:, :, None] + distance[None] + 1e-9).all()


def test_empty_images_are_like_nothing():
    images = torch.stack([torch.zeros(1, 3, 3), torch.ones(1, 3, 3)])
    for kernel in (kernels.cosine_kernel, kernels.overlap_kernel, kernels.soft_overlap_kernel):
        assert kernel(images)[0].tolist() == [0, 0]
        assert kernel(images)[1, 1].item() == pytest.approx(1)


def test_faint_images_lose_the_hard_overlap_but_not_the_soft_one():
    faint = 0.2 * bumps(torch.tensor([[3.0, 3.0], [3.0, 4.0]]), 8)
    assert kernels.overlap_kernel(faint).max() == 0
    assert kernels.soft_overlap_kernel(faint)[0, 1] > 0.3


def test_the_soft_overlap_takes_what_is_below_the_background_as_nothing():
    image = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, -5.0]])
    assert kernels.soft_overlap_kernel(image)[0, 1].item() == 0.5


def test_the_slice_has_held_out_rows_and_seen_columns():
    _, heldout = square(plane(4), 1, 2)
    gram = torch.arange(256.0).reshape(16, 16)
    cut = kernels.heldout_seen_slice(gram, heldout)
    assert cut.shape == (4, 12)
    assert cut[0, 0].item() == gram[5, 0].item()


def test_the_binary_kernel_is_1_where_any_value_is_shared():
    factors = [*plane(2, 3), Factor("digit", (0, 1), "categorical")]
    grid = latent_grid(factors)
    shared = (grid[:, None] == grid[None]).any(-1)
    assert torch.equal(kernels.binary_kernel(grid, factors), shared.double())


def test_two_factors_follow_inclusion_and_exclusion():
    factors = plane(5)
    grid = latent_grid(factors)
    a, b = kernels.factor_kernels(grid, factors, widths=1.3)
    assert torch.allclose(kernels.binary_kernel(grid, factors, 1.3), a + b - a * b)
    assert torch.allclose(kernels.product_kernel(grid, factors, 1.3), a * b)


def test_the_smoothed_product_kernel_is_the_cosine_of_well_resolved_bumps():
    factors = plane(24)
    grid, inside = square(factors, 8, 15)
    cosine = kernels.cosine_kernel(bumps(grid[inside], 24, sigma=1.5))
    assert torch.allclose(cosine, kernels.product_kernel(grid[inside], factors, widths=1.5), atol=1e-4)


def test_smoothing_narrows_to_the_exact_kernel_and_can_be_told_by_factor():
    factors = plane(4)
    grid = latent_grid(factors)
    exact = kernels.binary_kernel(grid, factors)
    assert torch.allclose(kernels.binary_kernel(grid, factors, 0.05), exact, atol=1e-12)
    by_name = kernels.factor_kernels(grid, factors, {"y": 2.0})
    assert torch.equal(by_name[0], kernels.factor_kernels(grid, factors)[0])
    assert not torch.equal(by_name[1], kernels.factor_kernels(grid, factors)[1])


def test_circles_wrap_and_absent_factors_are_like_nothing():
    angle = [Factor("angle", range(0, 360, 10), "circular", 360)]
    [kernel] = kernels.factor_kernels(torch.tensor([[0.0], [350.0], [10.0], [torch.nan]]), angle, widths=10.0)
    assert kernel[0, 1].item() == pytest.approx(kernel[0, 2].item())
    assert kernel[3].tolist() == [0, 0, 0, 0]


def test_agreement_is_a_correlation():
    a, b = normal(4, 5, seed=1), normal(4, 5, seed=2)
    assert kernels.kernel_agreement(a, 3 * a + 1) == pytest.approx(1)
    assert kernels.kernel_agreement(a, -a) == pytest.approx(-1)
    assert abs(kernels.kernel_agreement(a, b)) < 0.9
    assert kernels.kernel_agreement(a, torch.ones(4, 5)) == 0
    with pytest.raises(ValueError, match="cannot be compared"):
        kernels.kernel_agreement(a, b.T)
