"""Whether maps are bands: the share of variance along an axis, and the effective rank."""

import pytest
import torch

from composcope.papers.forced_rendering.lowrank.figures import axis_variances, effective_rank, mean_rank, own_axis_share

PROFILE = torch.tensor([0.0, 1.0, 4.0, 1.0])
VERTICAL, HORIZONTAL = PROFILE.expand(4, 4)[None], PROFILE[:, None].expand(4, 4)[None]


def test_a_band_varies_along_one_axis_only():
    variance = PROFILE.var(correction=0).item()
    assert axis_variances(VERTICAL)[0].tolist() == pytest.approx([variance, 0, 0])
    assert axis_variances(HORIZONTAL)[0].tolist() == pytest.approx([0, variance, 0])
    corner = torch.zeros(1, 2, 2)
    corner[0, 0, 0] = 4.0  # a third each of columns, rows, and neither
    assert axis_variances(corner)[0].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_own_axis_share_of_bands_crosses_and_noise():
    assert own_axis_share(VERTICAL, HORIZONTAL) == pytest.approx(1)
    assert own_axis_share(HORIZONTAL, VERTICAL) == pytest.approx(0)
    cross = (PROFILE[None] + PROFILE[:, None])[None]
    assert own_axis_share(cross, cross) == pytest.approx(0.5)
    noise = torch.randn(4000, 4, 4, generator=torch.Generator().manual_seed(0))
    assert own_axis_share(noise, noise) == pytest.approx(1 / 5, abs=0.01)
    assert own_axis_share(torch.ones(2, 3, 3), torch.ones(2, 3, 3)) is None


def test_own_axis_share_hardly_counts_faint_maps():
    faint = 0.01 * torch.eye(4)[None]
    assert own_axis_share(faint, faint) == pytest.approx(0)
    assert own_axis_share(torch.cat([VERTICAL, faint]), faint) > 0.99


def test_effective_rank():
    assert effective_rank(torch.outer(PROFILE, PROFILE)) == pytest.approx(1)
    assert effective_rank(torch.eye(5)) == pytest.approx(5)
    assert effective_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0, 0.0]))) == pytest.approx(
        (4 / 6) ** (-4 / 6) * (1 / 6) ** (-2 / 6)
    )
    assert mean_rank([torch.eye(3)[None], torch.ones(2, 3, 3)]) == pytest.approx((3 + 1 + 1) / 3)
