"""The convolutional decoder."""

import pytest
import torch
from pydantic import ValidationError
from torch import nn

import composcope as cs
from composcope.decoders.cnn import Crop, FirstMap


def build(**fields):
    torch.manual_seed(0)
    return cs.CNN(**{"width": 6, **fields}).build((28, 28), (1, 28, 28))


def test_first_map_is_a_transposed_convolution_of_one_pixel():
    torch.manual_seed(0)
    first = FirstMap(10, 5, (7, 4))
    code = torch.rand(3, 10)
    plain = nn.ConvTranspose2d(10, 5, (7, 4))
    plain.load_state_dict(first.state_dict())
    torch.testing.assert_close(first(code), plain(code[:, :, None, None]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 6])
def test_depth_counts_the_layers_between_first_and_last(depth):
    names = [name for name, _ in build(depth=depth).named_children()]
    assert names == ["first", *(f"conv{level}" for level in range(1, depth + 1)), "image"]


@pytest.mark.parametrize(("depth", "side", "start"), [(1, 28, 14), (2, 28, 7), (4, 28, 7), (4, 13, 4), (1, 13, 7)])
def test_first_map_is_a_quarter_of_the_image_or_half_at_depth_one(depth, side, start):
    module = cs.CNN(depth=depth, width=6).build((5, 5), (1, side, side))
    assert module.first(torch.rand(2, 10)).shape == (2, 6, start, start)


def test_maps_double_twice_and_then_keep_their_size():
    activation, sides = torch.rand(1, 56), []
    for layer in build(depth=4):
        activation = layer(activation)
        sides.append(activation.shape[-1])
    assert sides == [7, 14, 28, 28, 28, 28]


def test_every_hidden_layer_ends_after_its_relu():
    activation = torch.randn(4, 56)
    for name, layer in build(depth=3).named_children():
        activation = layer(activation)
        assert activation.min() == 0 or name == "image"


def test_batch_norm_comes_before_each_relu():
    kinds = [[type(part) for part in layer] for layer in build(depth=3, batch_norm=True)]
    assert all(kind[-2:] == [nn.BatchNorm2d, nn.ReLU] for kind in kinds[:-1])
    assert nn.BatchNorm2d not in kinds[-1]
    assert not any(isinstance(part, nn.BatchNorm2d) for part in build().modules())


def test_sigmoid_keeps_the_image_within_0_and_1():
    codes = 1000 * torch.randn(4, 56)
    torch.testing.assert_close(build(output="sigmoid")(codes), build()(codes).sigmoid())


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("depth", [1, 4])
def test_network_equals_plain_pytorch_layers(depth, batch_norm):
    """Whichever kernels compute it: transposed convolutions, convolutions and ReLUs, with the same weights."""
    module = build(depth=depth, batch_norm=batch_norm)
    doublings = min(depth, 2)
    norm = [nn.BatchNorm2d(6)] if batch_norm else []
    plain = [nn.ConvTranspose2d(56, 6, 28 // 2**doublings), *norm, nn.ReLU()]
    for level in range(depth):
        grow = nn.ConvTranspose2d(6, 6, 4, 2, 1) if level < doublings else nn.Conv2d(6, 6, 3, padding=1)
        plain += [grow, *([nn.BatchNorm2d(6)] if batch_norm else []), nn.ReLU()]
    reference = nn.Sequential(*plain, nn.Conv2d(6, 1, 3, padding=1))
    weights = module.state_dict().values()
    reference.load_state_dict(dict(zip(reference.state_dict(), weights, strict=True)))
    codes = torch.rand(5, 56)
    torch.testing.assert_close(module(codes), reference(codes[:, :, None, None]), atol=1e-5, rtol=1e-4)


def test_crop_takes_the_centre():
    maps = torch.arange(36.0).reshape(1, 1, 6, 6)
    assert torch.equal(Crop([4, 2])(maps), maps[:, :, 1:5, 2:4])


def test_number_of_weights_of_the_papers_network():
    module = cs.CNN(depth=4, width=64).build((28, 28), (1, 28, 28))
    first, grow, keep = 56 * 64 * 49 + 64, 64 * 64 * 16 + 64, 64 * 64 * 9 + 64
    assert sum(weight.numel() for weight in module.parameters()) == first + 2 * grow + 2 * keep + 64 * 9 + 1


@pytest.mark.parametrize("fields", [{"depth": 0}, {"width": 0}, {"depth": -2}, {"output": "tanh"}], ids=str)
def test_bad_field_is_named(fields):
    with pytest.raises(ValidationError, match=next(iter(fields))):
        cs.CNN(**fields)


def test_the_last_layer_can_start_like_a_transposed_convolution():
    shapes = {"code_sizes": (4, 4), "image_shape": (1, 8, 8)}
    plain, transposed = (cs.CNN(depth=2, width=64, last_init=init).build(**shapes) for init in ("conv", "transposed"))
    bounds = [module.image[0].weight.abs().max().item() for module in (plain, transposed)]
    assert bounds == pytest.approx([1 / 24, 1 / 3], rel=0.05)  # 1 / sqrt(64 * 9) and 1 / sqrt(1 * 9)
