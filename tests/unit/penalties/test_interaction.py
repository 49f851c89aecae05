"""The compositional contrast, against closed forms and against reverse-mode derivatives."""

import itertools

import pytest
import torch
from torch import nn

import composcope as cs
from composcope.penalties.interaction import compositional_contrast


class Bilinear(nn.Module):
    """Two pixels: a b, and a + 2 b + c."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, codes):
        a, b, c = codes.unbind(1)
        return self.scale * torch.stack([a * b, a + 2 * b + c], 1)


def test_closed_form_of_a_bilinear_module():
    codes = torch.tensor([[3.0, -5.0, 1.0], [1.0, 2.0, 0.0]])
    # Pixel 1: |da| |db| = |b| |a|. Pixel 2: 1 * 2 + 1 * 1 + 2 * 1 over the three pairs of factors.
    expected = ((15 + 5) + (2 + 5)) / 2
    torch.testing.assert_close(compositional_contrast(Bilinear(), codes, (1, 1, 1)), torch.tensor(expected))


def test_columns_of_one_factor_count_together():
    codes = torch.tensor([[3.0, -5.0, 1.0]])
    # The first factor has a and b: pixel 1 has no derivative along c, pixel 2 sqrt(1 + 4) * 1.
    torch.testing.assert_close(compositional_contrast(Bilinear(), codes, (2, 1)), torch.tensor(5.0).sqrt())


def test_gradient_of_the_closed_form():
    module = Bilinear()
    compositional_contrast(module, torch.tensor([[3.0, -5.0, 1.0]]), (1, 1, 1)).backward()
    torch.testing.assert_close(module.scale.grad, torch.tensor(2 * 20.0))  # it grows with the square of the scale


class Halves(nn.Module):
    """The left half of the image depends on the first factor alone, the right half on the second."""

    def __init__(self):
        super().__init__()
        self.left, self.right = (nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 12)) for _ in range(2))

    def forward(self, codes):
        sides = [self.left(codes[:, :3]), self.right(codes[:, 3:])]
        return torch.cat([side.unflatten(1, (1, 4, 3)) for side in sides], 3)


def test_zero_where_every_pixel_depends_on_one_factor_only():
    torch.manual_seed(0)
    codes = torch.rand(5, 6)
    assert compositional_contrast(Halves(), codes, (3, 3)).item() == 0
    assert compositional_contrast(Halves(), codes, (2, 4)).item() > 0


def test_images_that_are_added_on_the_same_pixels_are_not_zero():
    torch.manual_seed(0)
    module = cs.Additive(cs.MLP(depth=1, width=8)).build((3, 3), (1, 4, 4))
    assert compositional_contrast(module, torch.rand(5, 6), (3, 3)).item() > 0


def test_one_factor_has_no_pairs():
    assert compositional_contrast(Bilinear(), torch.rand(2, 3), (3,)).item() == 0


@pytest.mark.parametrize(
    "decoder",
    [cs.CNN(depth=2, width=8), cs.SpatialBroadcast(depth=1, width=4), cs.FlowMatching(width=4, steps=2)],
    ids=lambda decoder: decoder.kind,
)
def test_forward_mode_agrees_with_reverse_mode(decoder):
    torch.manual_seed(0)
    sizes = (4, 3, 2)
    module, codes = decoder.build(sizes, (1, 6, 6)).train(), torch.rand(3, 9)
    expected = 0.0
    for code in codes:
        jacobian = torch.autograd.functional.jacobian(lambda z: module(z[None]).flatten(), code)
        lengths = [part.norm(dim=1) for part in jacobian.split(sizes, 1)]
        expected += sum((one * other).sum() for one, other in itertools.combinations(lengths, 2)) / 3
    torch.testing.assert_close(compositional_contrast(module, codes, sizes), expected, rtol=1e-4, atol=1e-7)


def test_training_with_it_lowers_it(tiny_spec):
    from dataclasses import replace

    tiny_spec = replace(tiny_spec, training=cs.Training(steps=60, batch=16))
    codes = cs.run(tiny_spec).codes
    contrasts = [
        compositional_contrast(cs.run(replace(tiny_spec, penalties=penalties)).module, codes, (8, 8)).item()
        for penalties in ((), (cs.Interaction(weight=1.0),))
    ]
    assert contrasts[1] < 0.8 * contrasts[0]


def test_batch_statistics_and_modes_are_left_alone():
    module = cs.CNN(depth=1, width=4, batch_norm=True).build((4, 4), (1, 8, 8)).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    codes = torch.rand(6, 8)
    data = cs.TrainingData(codes, torch.rand(6, 1, 8, 8), codes[:0], (4, 4), torch.Generator())
    cs.Interaction().start(data)(module, cs.Batch(codes, data.images, None)).backward()
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(part.training for part in module.modules())
