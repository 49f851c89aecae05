"""Decoders that add or multiply one image per factor, and the spatial broadcast decoder."""

from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError

import composcope as cs

SIZES, SHAPE = (5, 4, 3), (2, 6, 7)


def build(decoder):
    torch.manual_seed(0)
    return decoder.build(SIZES, SHAPE)


def swapped(codes, factor):
    """The codes with one factor's columns taken from the next code."""
    columns = [slice(0, 5), slice(5, 9), slice(9, 12)][factor]
    changed = codes.clone()
    changed[:, columns] = codes.roll(1, 0)[:, columns]
    return changed


def test_additive_decoder_has_no_interaction():
    """D(x', y') - D(x', y) - D(x, y') + D(x, y) = 0 for any two factors."""
    module, codes = build(cs.Additive()), torch.rand(6, 12)
    both, one, other = swapped(swapped(codes, 0), 1), swapped(codes, 0), swapped(codes, 1)
    mixed = module(both) - module(one) - module(other) + module(codes)
    assert mixed.abs().max() < 1e-5
    assert (module(one) - module(codes)).abs().max() > 1e-3


@pytest.mark.parametrize("polarity", ["dark", "bright"])
def test_foregrounds_of_the_product_multiply(polarity):
    module, codes = build(cs.Product(polarity=polarity)), torch.rand(6, 12)

    def foreground(codes):
        return 1 - module(codes) if polarity == "dark" else module(codes)

    both, one, other = swapped(swapped(codes, 0), 1), swapped(codes, 0), swapped(codes, 1)
    torch.testing.assert_close(foreground(both) * foreground(codes), foreground(one) * foreground(other))
    assert foreground(codes).min() > 0


@pytest.mark.parametrize("cls", [cs.Additive, cs.Product])
def test_each_factor_has_a_network_of_its_own_columns(cls):
    module, codes = build(cls(cs.MLP(depth=1, width=8))), torch.rand(6, 12)
    parts = module.parts(codes)
    assert parts.shape == (6, 3, *SHAPE)
    changed = (module.parts(swapped(codes, 1)) - parts).abs().amax((0, 2, 3, 4)) > 0
    assert changed.tolist() == [False, True, False]


@pytest.mark.parametrize("cls", [cs.Additive, cs.Product])
@pytest.mark.parametrize(
    "network", [cs.ImageEncoder(), cs.Autoencoder(cs.MLP()), cs.FlowMatching()], ids=lambda decoder: decoder.kind
)
def test_a_network_must_draw_from_codes_by_the_ordinary_loss(cls, network):
    with pytest.raises(ValidationError, match=r"takes images|its own loss"):
        cls(network)


def test_a_network_that_does_not_fit_is_refused(tiny_spec):
    with pytest.raises(ValidationError, match="decoder: rank = 9 exceeds"):
        replace(tiny_spec, decoder=cs.Additive(cs.LowRank(rank=9)))


def test_the_other_polarity_than_the_tasks_is_refused(tiny_spec):
    with pytest.raises(ValidationError, match='polarity = "bright", and the task draws dark objects'):
        replace(tiny_spec, decoder=cs.Product(polarity="bright"))
    with pytest.raises(ValidationError, match='use polarity = "dark"'):
        replace(tiny_spec, decoder=cs.Autoencoder(cs.Product(polarity="bright")))


def test_one_hot_factors_of_a_bump_are_a_product_exactly():
    """A bump is the product of a column profile and a row profile, so its foreground is of the form of Product."""
    task = cs.BumpTask(6)
    latents = torch.tensor([[2.0, 4.0], [2.0, 1.0], [5.0, 4.0], [5.0, 1.0]])
    a, b, c, d = task.foreground(task.render(latents))
    torch.testing.assert_close(a * d, b * c)


def test_broadcast_repeats_the_code_and_appends_coordinates():
    codes = torch.rand(3, 12)
    maps = build(cs.SpatialBroadcast()).broadcast(codes)
    assert maps.shape == (3, 14, 6, 7)
    assert torch.equal(maps[:, :12], codes[:, :, None, None].expand(-1, -1, 6, 7))
    assert maps[0, 12, 0].tolist() == pytest.approx(torch.linspace(-1, 1, 7).tolist())
    assert maps[0, 13, :, 0].tolist() == pytest.approx(torch.linspace(-1, 1, 6).tolist())


def test_broadcast_has_no_weight_for_a_single_pixel():
    """Its weights do not grow with the image: it knows positions by their coordinates alone."""
    counts = [
        sum(weight.numel() for weight in cs.SpatialBroadcast().build(SIZES, (1, side, side)).parameters())
        for side in (6, 40)
    ]
    assert counts[0] == counts[1]
