"""The parts of the verdict against closed forms."""

import pytest
import torch

from composcope.factors import Factor, latent_grid
from composcope.measures.grid import grid_index
from composcope.verdict.defect import fit_defect
from composcope.verdict.references import fit_additive
from composcope.verdict.residuals import left
from composcope.verdict.verdict import cluster_interval
from known_decoders import blurred, shifted

AB = [Factor("a", range(4)), Factor("b", range(5))]
INDEX = grid_index(latent_grid(AB), AB)


class TestDefect:
    truth = torch.rand(20, 2, 12, 12, generator=torch.Generator().manual_seed(0))

    @pytest.mark.parametrize(
        "defect",
        [
            lambda images: 0.4 * images,
            lambda images: images + torch.tensor([0.5, -0.2])[:, None, None],
            lambda images: blurred(images, 1.2),
            lambda images: shifted(images, 3, -2),
            lambda images: 0.7 * shifted(blurred(images, 0.6), -1, 0) + 0.1,
        ],
    )
    def test_blur_shift_fading_and_offset_are_found(self, defect):
        outputs = defect(self.truth)
        found = fit_defect(outputs, self.truth)
        rest = outputs - found.offset - found.drawn(self.truth)
        assert rest.square().sum() < 2e-3 * outputs.square().sum()

    def test_a_perfect_decoder_has_none(self):
        assert fit_defect(self.truth, self.truth).kernel is None

    def test_it_cannot_turn_one_image_into_another(self):
        found = fit_defect(self.truth.roll(1, 0), self.truth)
        rest = self.truth.roll(1, 0) - found.offset - found.drawn(self.truth)
        centred = self.truth - self.truth.mean((0, 2, 3), keepdim=True)
        assert rest.square().sum() > 0.8 * centred.square().sum()


class TestAdditive:
    effects = torch.arange(4.0)[:, None, None] * 10 + torch.arange(5.0)[None, :, None]
    images = (effects + torch.tensor([0.0, 1.0, -3.0])).reshape(20, 3)

    def test_sums_are_predicted_exactly_on_points_that_were_not_seen(self):
        seen = torch.ones(20, dtype=torch.bool)
        seen[[6, 7, 11]] = False
        model = fit_additive(self.images, INDEX, seen, AB)
        assert torch.allclose(model.predicted(INDEX), self.images, atol=1e-4)

    def test_a_value_that_was_never_seen_has_no_prediction(self):
        model = fit_additive(self.images, INDEX, INDEX[:, 0] != 2, AB)
        assert model.predicted(INDEX).isnan().any(1).tolist() == (INDEX[:, 0] == 2).tolist()

    def test_leaving_one_out_is_the_fit_without_it(self):
        images = self.images + torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
        seen = torch.ones(20, dtype=torch.bool)
        whole = fit_additive(images, INDEX, seen, AB).left_out(INDEX, images)
        for row in (0, 7, 19):
            without = fit_additive(images, INDEX, torch.arange(20) != row, AB).predicted(INDEX[row : row + 1])[0]
            assert torch.allclose(whole[row], without, atol=1e-4)


class TestInterval:
    def test_one_factor_has_the_spread_of_independent_clusters(self):
        """Each value's images agree, so the mean over k values has variance p (1 - p) / k, however many images."""
        index = torch.arange(40).repeat_interleave(10)[:, None]
        values = (index[:, 0] % 4 == 0).double()
        low, high = cluster_interval(values, index)
        deviation = (0.25 * 0.75 / 40) ** 0.5
        assert (low, high) == pytest.approx((0.25 - 1.96 * deviation, 0.25 + 1.96 * deviation), abs=0.03)

    def test_images_that_all_agree_have_no_width(self):
        assert cluster_interval(torch.ones(20), INDEX) == (1, 1)

    def test_a_single_combination_has_none(self):
        assert cluster_interval(torch.ones(1), INDEX[:1]) is None

    def test_it_covers_the_true_share(self):
        """Effects of both factors' values: in 95 % of such tables, or nearly, the interval has the mean of them all."""
        rng = torch.Generator().manual_seed(0)
        factors = [Factor("a", range(12)), Factor("b", range(12))]
        index = grid_index(latent_grid(factors), factors)
        covered = 0
        for _ in range(100):
            a, b = torch.randn(2, 12, generator=rng)
            values = (a[index[:, 0]] + b[index[:, 1]] > 0).double()
            low, high = cluster_interval(values, index)
            covered += low <= 0.5 <= high
        assert covered >= 88


def test_residuals_have_closed_forms():
    target, reference = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])
    assert left(target, reference, True).item() == pytest.approx(16 / 25)
    assert left(target, reference, False).item() == pytest.approx(20 / 25)
    assert left(target, -reference, True).item() == pytest.approx(1)
