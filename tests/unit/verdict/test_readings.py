"""Shares corrected by a reader's mistakes: known answers."""

import pytest
import torch

from composcope.factors import Factor
from composcope.verdict.readings import Readings, confusion, corrected, counted_pairs, estimate, shares_of

FACTOR = Factor("shape", ("disc", "bar", "ring"))


def readings(true, read, group=None):
    true, read = torch.tensor(true)[:, None], torch.tensor(read)[:, None]
    groups = true[:, 0] if group is None else torch.tensor(group)
    return Readings(true, read, torch.zeros(len(true), dtype=torch.long), groups)


def test_a_reader_without_mistakes_changes_nothing():
    counts = torch.tensor([[[30.0, 10, 0], [0, 40, 0], [20, 0, 20]]])
    shares = corrected(counts, confusion(1000 * torch.eye(3))[None])
    assert torch.allclose(shares, counts / 40, atol=0.01)


def test_mistakes_of_the_reader_are_no_mistakes_of_the_generator():
    reader = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    counts = 1000 * torch.stack([reader, reader.roll(1, 0)])  # all right; each value drawn as the one before
    shares = corrected(counts, reader.expand(2, 3, 3).clamp(min=1e-4))
    assert torch.allclose(shares[0], torch.eye(3), atol=0.02)
    assert torch.allclose(shares[1], torch.eye(3).roll(1, 0), atol=0.02)


def test_corrected_shares_stay_within_bounds_where_the_inverse_leaves_them():
    reader = torch.tensor([[0.6, 0.4], [0.4, 0.6]])
    shares = corrected(torch.tensor([[[9.0, 1.0], [0.0, 10.0]]]), reader[None])
    assert shares.min() >= 0
    assert torch.allclose(shares.sum(-1), torch.ones(1, 2))
    assert shares[0, 0, 0] > 0.98


def test_pairs_are_counted_with_their_weights():
    counts = counted_pairs(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, torch.tensor([[1.0, 2, 3]]))
    assert counts.tolist() == [[[1, 2], [0, 3]]]


@pytest.mark.parametrize(("share", "images", "upper"), [(0.0, 6, 0.46), (0.0, 200, 0.03)])
def test_images_that_all_agree_have_the_interval_that_they_deserve(share, images, upper):
    found = estimate(share, torch.full((100,), share), images, 1.0)
    assert found.interval[0] == 0
    assert found.interval[1] == pytest.approx(upper, abs=0.07)


def test_the_joint_share_is_relative_to_what_the_reader_achieves():
    # On real images it is right in 80 %, on the generator's in 40 %: half of these are right.
    real = readings([0, 1] * 50, [0, 1] * 40 + [1, 0] * 10)
    drawn = readings([0, 1] * 50, [0, 1] * 20 + [1, 0] * 30, [number // 10 for number in range(100)])
    shares = shares_of(drawn, real, [Factor("side", ("left", "right"))], ["side"], 0, False, 1.0)
    assert shares.joint.share == pytest.approx(0.5)
    assert shares.joint.interval[0] < 0.5 < shares.joint.interval[1]
    # As a share of two values: 0.8 p + 0.2 (1 - p) = 0.4.
    assert shares.factors["side"].share == pytest.approx(1 / 3, abs=0.03)


def test_a_wider_interval_where_the_reader_rests_on_other_combinations():
    drawn = readings([0, 1, 2] * 30, [0, 1, 2] * 20 + [1, 2, 0] * 10, [number // 9 for number in range(90)])
    real = readings([0, 1, 2] * 30, [0, 1, 2] * 30)
    widths = [
        shares_of(drawn, real, [FACTOR], ["shape"], 0, widened > 1, widened).joint.width for widened in (1.0, 1.5)
    ]
    assert widths[1] == pytest.approx(1.5 * widths[0], rel=0.1)
