"""Closed forms: what every measure must say of maps, kernels and images whose answer can be written down."""

import math

import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures import complexity, geometry, kernel_structure, kernels, probes
from composcope.verdict import classify
from known_decoders import oracle_images


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plane(count, low=0.0, high=1.0):
    """x and y on an even grid."""
    values = [low + (high - low) * i / (count - 1) for i in range(count)]
    return [Factor("x", values), Factor("y", values)]


def exact_grid(factors):
    return torch.cartesian_prod(*(torch.tensor(factor.values, dtype=torch.float64) for factor in factors))


def bumps(latents, size, sigma=1.0):
    pixels = torch.arange(size, dtype=torch.float64)
    profiles = torch.exp(-(pixels - latents.double()[:, :, None]).square() / (2 * sigma**2))
    profiles = torch.where(latents[:, :, None].isnan(), 1.0, profiles)
    return torch.einsum("nu,nv->nvu", profiles[:, 0], profiles[:, 1])[:, None]


def bump_jacobian(latents, size, sigma=1.0):
    """d image / d x = (u - x) / sigma^2 image, and likewise for y."""
    pixels = torch.arange(size, dtype=torch.float64)
    image = bumps(latents, size, sigma)[:, 0]
    along_x = (pixels[None, None, :] - latents[:, 0, None, None]) / sigma**2 * image
    along_y = (pixels[None, :, None] - latents[:, 1, None, None]) / sigma**2 * image
    return torch.stack([along_x.flatten(1), along_y.flatten(1)], -1)


class TestLinearMaps:
    """f(x, y) = A (x, y): g = A^T A everywhere, and differences on a grid are exact."""

    @pytest.mark.parametrize(
        ("matrix", "volume", "factorization"),
        [
            ([[1, 0], [0, 1], [0, 0]], 1, 1),  # isometric
            ([[0.6, -0.8], [0.8, 0.6]], 1, 1),  # a turn
            ([[3, 0], [0, 2]], 6, 1),  # a scaling
            ([[1, 1], [0, 1]], 1, 1 - 1 / 3),  # a shear
            ([[1, 1], [1, 1]], 0, 0.5),  # folded on a line
            ([[1, 0.5], [0, 2]], 2, 1 - 0.5 / 5.25),
        ],
    )
    def test_metric_volume_and_factorization(self, matrix, volume, factorization):
        matrix = torch.tensor(matrix, dtype=torch.float64)
        factors = plane(5)
        metric = geometry.grid_metric(exact_grid(factors) @ matrix.T, factors)
        assert torch.allclose(metric, (matrix.T @ matrix).expand(25, 2, 2))
        assert torch.allclose(metric, geometry.metric_tensor(matrix.expand(25, -1, 2)))
        assert geometry.volume_element(metric).tolist() == pytest.approx([volume] * 25, abs=1e-7)
        result = geometry.factorization(metric)
        assert result.mean_of_ratios == pytest.approx(factorization)
        assert result.ratio_of_means == pytest.approx(factorization)


class TestSphere:
    """(sin t cos p, sin t sin p, cos t): g = diag(1, sin^2 t), dv = sin t, and nothing off the diagonal."""

    @staticmethod
    def world(count):
        polar = Factor("polar", [0.4 + 2 * i / (count - 1) for i in range(count)])
        around = Factor("around", [2 * math.pi * i / count for i in range(count)], "circular", 2 * math.pi)
        t, p = exact_grid([polar, around]).T
        points = torch.stack([t.sin() * p.cos(), t.sin() * p.sin(), t.cos()], 1)
        tangents = torch.stack(
            [
                torch.stack([t.cos() * p.cos(), t.cos() * p.sin(), -t.sin()], 1),
                torch.stack([-t.sin() * p.sin(), t.sin() * p.cos(), torch.zeros_like(p)], 1),
            ],
            -1,
        )
        return [polar, around], t, points, tangents

    def test_exact(self):
        _, t, _, tangents = self.world(12)
        metric = geometry.metric_tensor(tangents)
        assert torch.allclose(metric[:, 0, 0], torch.ones_like(t))
        assert torch.allclose(metric[:, 1, 1], t.sin().square())
        assert torch.allclose(geometry.volume_element(metric), t.sin())
        assert geometry.factorization(metric).mean_of_ratios == pytest.approx(1)

    def test_differences_converge_to_it_in_second_order_inside(self):
        errors = []
        for count in (11, 21, 41):
            factors, t, points, _ = self.world(count)
            volume = geometry.volume_element(geometry.grid_metric(points, factors)).reshape(count, count)
            errors.append((volume - t.sin().reshape(count, count))[1:-1].abs().max().item())
        assert errors[0] / errors[1] > 3
        assert errors[1] / errors[2] > 3


class TestOneHiddenLayer:
    """f(t) = V tanh(W t + b): J = V diag(1 - tanh^2) W, written out."""

    @staticmethod
    def network(latents, seed=0):
        inner, shift, outer = normal(7, 2, seed=seed), normal(7, seed=seed + 1), normal(5, 7, seed=seed + 2)
        hidden = (latents @ inner.T + shift).tanh()
        jacobian = torch.einsum("oh,nh,hi->noi", outer, 1 - hidden.square(), inner)
        return hidden @ outer.T, jacobian

    def test_written_out_jacobian_is_the_one_by_automatic_differentiation(self):
        latents = normal(4, 2, seed=9)
        automatic = [torch.autograd.functional.jacobian(lambda t: self.network(t[None])[0][0], t) for t in latents]
        assert torch.allclose(self.network(latents)[1], torch.stack(automatic))

    def test_exact_and_difference_geometry_agree_as_the_grid_gets_finer(self):
        errors = []
        for count in (9, 17, 33):
            factors = plane(count, -1, 1)
            outputs, jacobian = self.network(exact_grid(factors))
            exact, differences = geometry.metric_tensor(jacobian), geometry.grid_metric(outputs, factors)
            errors.append((exact - differences).norm().item() / exact.norm().item())
            gap = geometry.factorization(exact).mean_of_ratios - geometry.factorization(differences).mean_of_ratios
        assert errors[0] > 1.8 * errors[1] > 1.8**2 * errors[2]
        assert errors[2] < 0.02
        assert abs(gap) < 0.01


class TestBumpImage:
    """Around a well-resolved bump, sum of squared slopes = pi / 2 whatever sigma, and g_xy = 0."""

    @pytest.mark.parametrize("sigma", [1.0, 2.0])
    def test_exact_metric(self, sigma):
        latents = torch.tensor([[14.0, 14.0], [13.3, 15.7], [12.5, 14.5]], dtype=torch.float64)
        metric = geometry.metric_tensor(bump_jacobian(latents, 28, sigma))
        assert torch.allclose(metric, math.pi / 2 * torch.eye(2, dtype=torch.float64), atol=5e-3)
        assert geometry.volume_element(metric).tolist() == pytest.approx([math.pi / 2] * 3, rel=5e-3)
        assert geometry.factorization(metric).mean_of_ratios == pytest.approx(1, abs=1e-6)

    def test_differences_on_the_integers_miss_much_of_a_narrow_bump_and_little_of_a_wide_one(self):
        factors = [Factor("x", range(28)), Factor("y", range(28))]
        middle = slice(14 * 28 + 14, 14 * 28 + 15)
        found = {
            sigma: geometry.grid_metric(bumps(latent_grid(factors), 28, sigma), factors)[middle][0, 0, 0].item()
            for sigma in (1.0, 4.0)
        }
        # (|f(x+1)|^2 + |f(x-1)|^2 - 2 f(x+1) f(x-1)) / 4 for a Gaussian: pi sigma^2 (1 - exp(-1 / sigma^2)) / 2
        for sigma, value in found.items():
            assert value == pytest.approx(math.pi * sigma**2 * (1 - math.exp(-1 / sigma**2)) / 2, rel=1e-2)
        assert found[1.0] < 0.65 * math.pi / 2
        assert found[4.0] > 0.95 * math.pi / 2

    def test_finer_grids_converge_on_pi_over_2(self):
        errors = []
        for step in (1.0, 0.5, 0.25):
            values = [10 + step * i for i in range(int(8 / step) + 1)]
            factors = [Factor("x", values), Factor("y", values)]
            metric = geometry.grid_metric(bumps(exact_grid(factors), 28), factors)
            errors.append(abs(metric[len(metric) // 2, 0, 0].item() - math.pi / 2))
        assert errors[0] > 3 * errors[1] > 9 * errors[2]


class TestKernels:
    def test_a_bump_kernel_is_one_product_and_the_binary_kernel_two(self):
        factors = [Factor("x", range(7)), Factor("y", range(8))]
        grid = latent_grid(factors)
        cosine = kernels.cosine_kernel(bumps(grid, 9))
        assert kernel_structure.schmidt(cosine, factors).rank(1e-9) == 1
        # 1 - (1 - k_x)(1 - k_y): the all-ones product and one more
        assert kernel_structure.schmidt(kernels.binary_kernel(grid, factors), factors).rank(1e-9) == 2

    def test_kronecker_sums_have_as_many_terms_as_were_put_in(self):
        factors = [Factor("x", range(5)), Factor("y", range(6))]
        for terms in (1, 2, 3, 5):
            gram = torch.zeros(30, 30, dtype=torch.float64)
            for term in range(terms):
                a, b = normal(5, 5, seed=term), normal(6, 6, seed=50 + term)
                gram += torch.kron(a @ a.T, b @ b.T)
            assert kernel_structure.schmidt(gram, factors).rank(1e-9) == terms

    def test_pf_coeff_of_a_product_a_sum_and_a_mixture(self):
        factors = [Factor("x", range(4)), Factor("y", range(4))]
        ones, centred = torch.ones(4, 4, dtype=torch.float64), torch.eye(4, dtype=torch.float64) - 0.25
        added = torch.kron(centred, ones) + torch.kron(ones, centred)
        multiplied = torch.kron(centred, centred)
        assert kernel_structure.kernel_terms(added, factors).pf_coeff() == pytest.approx(1)
        assert kernel_structure.kernel_terms(multiplied, factors).pf_coeff() == pytest.approx(0, abs=1e-12)
        # |centred| = sqrt 3 and |ones| = 4, so the terms measure 4 sqrt 3, 4 sqrt 3 and 3
        mixture = kernel_structure.kernel_terms(added + multiplied, factors)
        assert mixture.pf_coeff() == pytest.approx(8 * 3**0.5 / (8 * 3**0.5 + 3))
        assert mixture.pf_coeff(weight=lambda theta: theta**2) == pytest.approx(96 / 105)
        # the identity is (1/4 + centred) x (1/4 + centred), its terms sqrt 3, sqrt 3 and 3
        identity = kernel_structure.kernel_terms(torch.eye(16), factors)
        assert identity.pf_coeff() == pytest.approx(2 * 3**0.5 / (2 * 3**0.5 + 3))


class TestComplexity:
    FACTORS = (Factor("x", range(12)), Factor("y", range(12)))

    def test_a_bump_is_1_and_a_cross_2(self):
        grid = latent_grid(self.FACTORS)
        absent = torch.full_like(grid[:, 0], torch.nan)
        stripes = [bumps(torch.stack(pair, 1), 12) for pair in ((grid[:, 0], absent), (absent, grid[:, 1]))]
        bump = complexity.pixel_complexity(bumps(grid, 12), self.FACTORS)
        cross = complexity.pixel_complexity(stripes[0] + stripes[1], self.FACTORS)
        assert (bump.mean, bump.maximum) == (1, 1)
        assert (cross.mean, cross.maximum) == (2, 2)


class TestProbes:
    FACTORS = (Factor("x", range(16)), Factor("y", range(16)))

    def scores(self, activations):
        grid = latent_grid(self.FACTORS)
        heldout = ((grid >= 5) & (grid <= 10)).all(1)
        return probes.linear_probes(activations, grid, self.FACTORS, heldout)["x"]

    def test_a_linear_code_is_read_on_unseen_points(self):
        score = self.scores(latent_grid(self.FACTORS).double() @ normal(2, 600))
        assert score.cross_validated == pytest.approx(1, abs=1e-6)
        assert score.heldout == pytest.approx(1, abs=1e-6)

    def test_noise_wider_than_the_points_is_1_in_sample_and_nothing_elsewhere(self):
        score = self.scores(normal(256, 600))
        assert score.in_sample == pytest.approx(1)
        assert -0.2 < score.cross_validated < 0.15
        assert score.heldout < 0.2


@pytest.mark.parametrize(("size", "low", "high"), [(16, 4, 11), (28, 6, 22)])
def test_oracles_are_judged_as_themselves(size, low, high):
    factors = [Factor("x", range(size)), Factor("y", range(size))]
    grid = latent_grid(factors)
    heldout = ((grid >= low) & (grid <= high)).all(1)
    absent = torch.full_like(grid[:, 0], torch.nan)
    cross = sum(bumps(torch.stack(pair, 1), size) for pair in ((grid[:, 0], absent), (absent, grid[:, 1])))
    truth = bumps(grid, size)
    for name, images in oracle_images(truth, grid, heldout, factors, cross).items():
        result = classify(images, truth, grid, heldout, factors, cross)
        assert result.shares[name] == 1, (name, result.shares)
        assert result.score == (1 if name == "composer" else 0)
