"""Conditional flow matching."""

from collections import OrderedDict
from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError
from torch import nn

import composcope as cs
from composcope.decoders.flow_matching import Sampler

SHAPE = (1, 9, 11)


def build(seed=0, **fields):
    torch.manual_seed(seed)
    return cs.FlowMatching(**{"width": 4, **fields}).build((5, 4), SHAPE).eval()


class Towards(nn.Module):
    """A prediction that knows the clean image: the mean of the maps."""

    def forward(self, images, time, maps):
        return maps.mean(1, keepdim=True)


@pytest.mark.parametrize("steps", [1, 2, 15])
def test_a_right_prediction_is_drawn_exactly(steps):
    maps = torch.rand(3, 4, 9, 11)
    images = Sampler(Towards(), torch.randn(1, *SHAPE), steps)(maps)
    torch.testing.assert_close(images, maps.mean(1, keepdim=True))


class Constant(nn.Module):
    """The prediction x / 2: dx/dt = -x / (2 (1 - t)), so x(t) = x(0) sqrt(1 - t)."""

    def forward(self, images, time, maps):
        return images / 2


def test_euler_steps_follow_the_flow():
    noise, steps = torch.randn(1, *SHAPE), 4
    factor = 1.0
    for step in range(steps):
        factor *= 1 - 0.5 / (steps - step)
    drawn = Sampler(Constant(), noise, steps)(torch.zeros(2, 4, 9, 11))
    torch.testing.assert_close(drawn, factor * noise.expand(2, -1, -1, -1))


def test_time_runs_from_zero_in_equal_steps():
    times = []

    class Watching(Towards):
        def forward(self, images, time, maps):
            times.append(time[0].item())
            return super().forward(images, time, maps)

    Sampler(Watching(), torch.randn(1, *SHAPE), 4)(torch.zeros(1, 4, 9, 11))
    assert times == [0, 0.25, 0.5, 0.75]


def test_the_image_of_a_code_does_not_depend_on_the_others_or_on_chance():
    module, codes = build(), torch.rand(6, 9)
    images = module(codes)
    torch.manual_seed(99)
    torch.testing.assert_close(module(codes[3:4]), images[3:4])


def test_noise_is_a_seed_and_part_of_the_weights():
    noises = [build(seed, noise=noise).state_dict()["image.noise"] for seed, noise in ((0, 0), (1, 0), (0, 1))]
    assert torch.equal(noises[0], noises[1])
    assert not torch.equal(noises[0], noises[2])


def test_loss_is_the_error_of_the_predicted_image():
    images = torch.rand(4, *SHAPE)
    sampler = Sampler(Towards(), torch.zeros(1, *SHAPE), 2)
    module = nn.Sequential(OrderedDict(maps=nn.Unflatten(1, SHAPE), image=sampler))
    loss = cs.FlowMatching().loss(module, images.flatten(1), images + 0.5, torch.Generator())
    assert loss.item() == pytest.approx(0.25)


def test_loss_depends_on_its_generator_only():
    module, codes, images = build(), torch.rand(4, 9), torch.rand(4, *SHAPE)
    losses = [
        cs.FlowMatching(width=4).loss(module, codes, images, torch.Generator().manual_seed(seed)).item()
        for seed in (0, 0, 1)
    ]
    assert losses[0] == losses[1] != losses[2]


def test_l1_is_refused(tiny_spec):
    with pytest.raises(ValidationError, match=r"training: l1 = 0\.1 is not used by flow_matching"):
        replace(tiny_spec, decoder=cs.FlowMatching(), training=cs.Training(steps=3, l1=0.1))


def test_an_autoencoder_of_it_is_refused():
    with pytest.raises(ValidationError, match="its own loss"):
        cs.Autoencoder(cs.FlowMatching())


@pytest.mark.parametrize("fields", [{"steps": 0}, {"width": 0}, {"noise": -1}], ids=str)
def test_bad_field_is_named(fields):
    with pytest.raises(ValidationError, match=next(iter(fields))):
        cs.FlowMatching(**fields)
