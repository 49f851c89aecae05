"""Properties specific to each of the other decoders."""

import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from composcope.decoders.lowrank import embeddings_of
from composcope.decoders.tokens import positions


def names(module):
    return [name for name, _ in module.named_children()]


def test_mlp_depth_counts_hidden_layers():
    assert names(cs.MLP(depth=3, width=8).build((5, 5), (1, 8, 8))) == ["hidden1", "hidden2", "hidden3", "image"]


def test_mlp_has_the_right_number_of_weights():
    module = cs.MLP(depth=2, width=16).build((5, 5), (3, 8, 8))
    assert sum(weight.numel() for weight in module.parameters()) == 11 * 16 + 17 * 16 + 17 * 192


@pytest.mark.parametrize("cls", [cs.MLP, cs.LowRank, cs.Pixelwise, cs.Transformer])
def test_depth_zero_is_refused(cls):
    with pytest.raises(ValidationError, match="depth"):
        cls(depth=0)


def test_lowrank_matrices_have_the_given_rank_and_unit_terms():
    module = cs.LowRank(rank=2).build((5, 6), (1, 8, 9))
    matrices = [embedding.matrices() for embedding in embeddings_of(module)]
    assert [tuple(stack.shape) for stack in matrices] == [(5, 8, 9), (6, 8, 9)]
    for matrix in torch.cat(matrices):
        assert torch.linalg.matrix_rank(matrix, rtol=1e-4) == 2
    single = embeddings_of(cs.LowRank(rank=1).build((3,), (1, 8, 8)))[0].matrices()
    torch.testing.assert_close(single.flatten(1).norm(dim=1), torch.ones(3))


def test_lowrank_sums_matrices_weighted_by_the_code():
    module = cs.LowRank(rank=2).build((5, 6), (1, 8, 8))
    code = torch.cat([0.5 * torch.eye(5)[1] + 2 * torch.eye(5)[3], torch.eye(6)[2]])[None]
    first, second = (embedding.matrices() for embedding in embeddings_of(module))
    expected = torch.stack([0.5 * first[1] + 2 * first[3], second[2]])[None]
    torch.testing.assert_close(module.embedding(code), expected)


def test_lowrank_rank_beyond_the_image_is_refused(tiny_spec):
    data = {**tiny_spec.to_dict(), "decoder": {"kind": "lowrank", "rank": 9}}
    with pytest.raises(cs.BadInput, match="decoder: rank = 9 exceeds the image's shorter side, 8"):
        cs.Spec.from_dict(data)


def test_pixelwise_decoder_does_not_mix_pixels():
    module = cs.Pixelwise(depth=2, width=8).build((3,), (1, 4, 4))
    tokens = module.tokens(torch.rand(1, 3))
    tokens.retain_grad()
    activation = tokens
    for layer in list(module)[1:]:
        activation = layer(activation)
    activation[0, 0, 1, 2].backward()
    contributing = tokens.grad.abs().sum(2)[0] > 0
    assert contributing.nonzero().flatten().tolist() == [1 * 4 + 2]


def test_every_pixel_has_a_distinct_position_encoding():
    encoded = positions(13, 9, 16)
    assert encoded.shape == (117, 16)
    assert (torch.cdist(encoded, encoded) + torch.eye(117)).min() > 1e-2


@pytest.mark.parametrize("cls", [cs.Pixelwise, cs.Transformer])
def test_width_is_a_multiple_of_four(cls):
    with pytest.raises(ValidationError, match="multiple of 4"):
        cls(width=10)


def test_heads_divide_the_width():
    with pytest.raises(ValidationError, match="heads = 3 does not divide width = 8"):
        cs.Transformer(width=8, heads=3)


def test_image_encoder_is_scored_on_codes(tiny_spec):
    from dataclasses import replace

    measured = cs.run(replace(tiny_spec, decoder=cs.ImageEncoder(width=4))).measures["error"]
    assert set(measured) == {"seen_code_mse", "heldout_code_mse", "seen_code_accuracy", "code_accuracy"}


def test_autoencoder_is_scored_on_images_and_codes(tiny_spec):
    from dataclasses import replace

    decoder = cs.Autoencoder(cs.MLP(depth=1, width=8), width=4)
    measured = cs.run(replace(tiny_spec, decoder=decoder)).measures["error"]
    assert {"heldout_mse", "accuracy", "heldout_code_mse", "code_accuracy"} <= set(measured)


def test_the_digit_decoder_is_the_authors():
    """Linear to 128 maps of 7 x 7, 128 and 64 channels, one image; Kaiming's variances 2 / fan, biases at zero."""
    torch.manual_seed(0)
    module = cs.DigitCNN().build((2,), (1, 28, 28)).eval()
    weights = [module.first[0].weight, module.conv1[0].weight, module.conv2[0].weight, module.image[0].weight]
    assert [tuple(weight.shape) for weight in weights] == [
        (6272, 2),
        (128, 128, 4, 4),
        (128, 64, 4, 4),
        (1, 64, 3, 3),
    ]
    spreads = [weight.std().item() for weight in weights]
    assert spreads == pytest.approx([1.0, (2 / 2048) ** 0.5, (2 / 2048) ** 0.5, (2 / 9) ** 0.5], rel=0.05)
    assert all(layer[0].bias.abs().max() == 0 for layer in module)
    images = module(torch.randn(3, 2))
    assert images.shape == (3, 1, 28, 28)
    assert images.min() >= 0
    assert images.max() <= 1
