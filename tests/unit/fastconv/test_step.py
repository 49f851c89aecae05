"""Compiled training steps: their gradients and whole runs against autograd, and what is left to autograd."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import composcope as cs
from catalogue import DECODERS, label
from composcope import fastconv
from composcope.fastconv import CompiledStep, build, state

pytestmark = pytest.mark.skipif(not fastconv.status().available, reason=f"no kernels: {fastconv.status().reason}")

PENALTIES = (cs.Entropy(0.2), cs.Variance(0.05))
# A decoder, the sizes of its codes, the image's shape, the size of a batch.
CASES = [
    (cs.CNN(depth=1, width=4), (5, 3), (1, 8, 8), 3),
    (cs.CNN(depth=2, width=5), (8, 8), (2, 13, 10), 5),  # cropped
    (cs.CNN(depth=3, width=24), (16, 16), (1, 16, 16), 16),
    (cs.CNN(depth=4, width=20, output="sigmoid", last_init="transposed"), (7, 6, 2), (3, 12, 20), 2),
    (cs.CNN(depth=2, width=24, batch_norm=True, output="sigmoid"), (2,), (1, 28, 28), 6),
    (cs.CNN(depth=4, width=4, batch_norm=True), (4, 4), (1, 7, 9), 3),
    (cs.CNN(depth=1, width=64), (28, 28), (1, 28, 28), 2),
    (cs.DigitCNN(width=4), (2,), (1, 14, 14), 4),
    (cs.DigitCNN(width=10), (2, 3), (1, 9, 12), 3),
    (cs.MLP(depth=1, width=8), (5, 3), (1, 8, 8), 4),
    (cs.MLP(depth=3, width=33), (9, 9), (2, 7, 5), 17),
    (cs.LowRank(), (16, 16), (1, 16, 16), 32),
    (cs.LowRank(rank=3, depth=1, init="authors", activate_embedding=True), (5, 7), (1, 9, 12), 4),
    (cs.LowRank(channels=6), (4, 5, 3), (2, 28, 28), 3),
]
SETTINGS = [
    {},
    {"l1": 0.3, "clip": 0.01, "schedule": "cosine"},
    {"validation": 0.3, "schedule": "plateau", "weight_decay": 0.1},
    {"epochs": None, "steps": 7, "snapshots": (2, 7), "lr": 3e-3},
]


@pytest.fixture(params=[4, 8, 16], ids="{} lanes".format)
def lanes(request, monkeypatch) -> None:
    """The compiled code for these lanes, whatever this processor has."""
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, f"-DCOMPOSCOPE_LANES={request.param}", "-Wno-psabi"))
    monkeypatch.setattr(state, "_loaded", (build.load(), ""))
    assert fastconv.status().lanes == request.param


def samples(sizes: tuple[int, ...], shape: tuple[int, ...], count: int, one_hot: bool) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(1)
    if one_hot:
        columns = [torch.randint(size, (count,), generator=g) for size in sizes]
        code = [torch.nn.functional.one_hot(c, size).float() for c, size in zip(columns, sizes, strict=True)]
        return torch.cat(code, 1), torch.rand(count, *shape, generator=g)
    return torch.randn(count, sum(sizes), generator=g), torch.rand(count, *shape, generator=g)


def made(module: nn.Module, codes: Tensor, images: Tensor, penalties=(), batch: int = 4, **settings) -> CompiledStep:
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in module.parameters()]
    options = {"l1": 0.0, "clip": None, "weight_decay": 0.0} | settings
    return CompiledStep(module, codes, images, penalties, moments, batch, *options.values())


def penalties_for(decoder: cs.Decoder) -> tuple[cs.Penalty, ...]:
    return PENALTIES if decoder.embeds else ()


def error(got: Tensor, want: Tensor, floor: float) -> float:
    return ((got - want).norm() / want.norm().clamp_min(floor)).item()


@pytest.mark.parametrize("l1", [0.0, 0.5])
@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{label(case[0])}-{case[2]}")
@pytest.mark.usefixtures("lanes")
def test_gradients_agree_with_float64(case, one_hot, l1):
    decoder, sizes, shape, batch = case
    module = decoder.build(sizes, shape).train()
    codes, images = samples(sizes, shape, batch + 3, one_hot)
    chosen = torch.randperm(batch + 3)[:batch]
    double = decoder.build(sizes, shape).double().train()
    double.load_state_dict(module.state_dict())
    outputs, targets = double(codes[chosen].double()), images[chosen].double()
    want_error = nn.functional.mse_loss(outputs, targets) + l1 * nn.functional.l1_loss(outputs, targets)
    want_penalty = sum((penalty.loss(double) for penalty in penalties_for(decoder)), torch.zeros(()))
    (want_error + want_penalty).backward()

    step = made(module, codes, images, penalties_for(decoder), batch, l1=l1)
    got_error, got_penalty = step(chosen, 0.0, 1)
    assert got_error == pytest.approx(want_error.item(), rel=1e-5)
    assert got_penalty == pytest.approx(float(want_penalty), rel=1e-5)
    # A bias before batch norm has no gradient, only its rounding.
    floor = 1e-2 * max(p.grad.norm().item() for p in double.parameters())
    for (name, ours), theirs in zip(module.named_parameters(), double.parameters(), strict=True):
        assert error(ours.grad, theirs.grad, floor) < 1e-4, name
    for name, buffer in module.named_buffers():
        torch.testing.assert_close(buffer.double(), double.get_buffer(name).double(), msg=name)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("case", [CASES[i] for i in (1, 2, 5, 10, 12)], ids=lambda case: label(case[0]))
def test_runs_agree_with_autograd(case, settings):
    decoder, sizes, shape, _ = case
    codes, images = samples(sizes, shape, 23, one_hot=decoder.embeds)
    training = replace(cs.Training(epochs=2, batch=5), **settings)

    def trained(kernels: str) -> cs.Trained:
        torch.manual_seed(2)
        module, rows = decoder.build(sizes, shape), []
        before = fastconv.used()
        with fastconv.using(kernels):
            run = cs.train(
                module, codes, images, training, 3, penalties_for(decoder), on_epoch=lambda r, _: rows.append(r)
            )
        assert (fastconv.used() - before)["compiled step"] == (0 if kernels == "torch" else rows[-1]["step"])
        assert rows == run.curve
        assert not module.training
        return run

    ours, theirs = trained("auto"), trained("torch")
    normalised = getattr(decoder, "batch_norm", False)  # biases before it follow rounding, and running means them
    for mine, other in zip(ours.curve, theirs.curve, strict=True):
        assert mine == pytest.approx(other, rel=1e-2 if normalised else 1e-3)
    pairs = [(ours.weights, theirs.weights), *((ours.snapshots[s], theirs.snapshots[s]) for s in theirs.snapshots)]
    assert list(ours.snapshots) == list(theirs.snapshots)
    for mine, other in pairs:
        for name, value in other.items():
            # AdamW makes a whole step of a gradient that is nothing but rounding, and few weights have one
            wrong = (mine[name] - value).abs() > 1e-4 + 1e-3 * value.abs()
            assert (normalised and name.endswith(("0.bias", "running_mean"))) or wrong.float().mean() < 0.02, name


def test_same_seed_same_bytes():
    decoder, sizes, shape, _ = CASES[2]
    codes, images = samples(sizes, shape, 40, one_hot=False)

    def weights() -> dict[str, Tensor]:
        torch.manual_seed(5)
        return cs.train(decoder.build(sizes, shape), codes, images, cs.Training(epochs=2, batch=16)).weights

    first = weights()
    rubbish = torch.full((1 << 20,), float("nan"))  # what fresh memory holds must not matter
    del rubbish
    assert all(torch.equal(value, first[name]) for name, value in weights().items())


@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_every_decoder_trains_and_says_how(decoder):
    """Those made of known parts by compiled steps, all others by autograd."""
    codes, images = samples((8, 8), (1, 8, 8), 12, one_hot=True)
    module = decoder.build((8, 8), (1, 8, 8))
    inputs, targets = decoder.pairs(codes, images)
    before = fastconv.used()
    loss = decoder.loss if decoder.has_own_loss else None
    cs.train(module, inputs, targets, cs.Training(steps=3, batch=4), loss=loss)
    known = type(decoder) in (cs.CNN, cs.DigitCNN, cs.MLP, cs.LowRank)
    assert (fastconv.used() - before)["compiled step"] == (3 if known else 0)


def steps_taken(module: nn.Module, codes: Tensor | None = None, **options) -> int:
    codes = torch.randn(8, 4) if codes is None else codes
    before = fastconv.used()
    cs.train(module, codes, torch.rand(8, 1, 8, 8), cs.Training(steps=3, batch=4), **options)
    return (fastconv.used() - before)["compiled step"]


def network() -> nn.Sequential:
    return cs.CNN(depth=2, width=4).build((2, 2), (1, 8, 8))


class OwnReLU(nn.ReLU):
    pass


class OwnSequential(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def own_class(module):
    module.first[1] = OwnReLU()


def hook(module):
    module.conv1[0].register_forward_hook(lambda *_: None)


def gradient_hook(module):
    module.conv1[0].weight.register_hook(lambda gradient: gradient)


def later_hook(module):
    module.conv1[0].weight.register_post_accumulate_grad_hook(lambda parameter: None)


def own_forward(module):
    conv = module.conv1[0]
    conv.forward = lambda x: nn.functional.conv_transpose2d(x, conv.weight, conv.bias, 2, 1)


def frozen(module):
    module.conv1[0].weight.requires_grad_(False)


def tied(module):
    module.conv2[0].weight = module.conv1[0].weight


def shared_memory(module):
    module.conv2[0].weight.data = module.conv1[0].weight.data


def additional_parameter(module):
    module.first.scale = nn.Parameter(torch.ones(1))


def weight_norm(module):
    torch.nn.utils.parametrizations.weight_norm(module.conv1[0])


@pytest.mark.parametrize(
    "change",
    [
        own_class,
        hook,
        gradient_hook,
        later_hook,
        own_forward,
        frozen,
        tied,
        shared_memory,
        additional_parameter,
        weight_norm,
    ],
)
def test_a_changed_network_is_left_to_autograd(change):
    module = network()
    change(module)
    assert steps_taken(module) == 0


def test_a_network_of_ones_own_class_is_left_to_autograd():
    assert steps_taken(OwnSequential(network())) == 0
    assert steps_taken(network()) == 3


def test_other_samples_losses_penalties_and_switches_are_left_to_autograd():
    class Own(cs.Penalty):
        def loss(self, module):
            return module.first[0].weight.square().sum()

    assert steps_taken(network().double(), torch.randn(8, 4).double()) == 0
    assert steps_taken(network(), torch.randn(8, 4, requires_grad=True)) == 0
    assert steps_taken(network(), penalties=[Own()]) == 0
    assert steps_taken(network(), loss=lambda module, x, y, rng: (module(x) - y).square().mean()) == 0
    with fastconv.using("torch"):
        assert steps_taken(network()) == 0
    with torch.nn.modules.module.register_module_forward_hook(lambda *_: None):
        assert steps_taken(network()) == 0


def test_without_a_compiler_autograd_takes_the_steps(monkeypatch):
    monkeypatch.setattr(state, "_loaded", (None, "no compiler"))
    assert steps_taken(network()) == 0


@pytest.mark.parametrize("change", [hook, frozen])
def test_what_a_callback_changes_is_heeded(change):
    """The rest of the run is then autograd's, with AdamW's state as the compiled steps left it."""
    codes, images = samples((2, 2), (1, 8, 8), 8, one_hot=False)

    def trained(kernels: str) -> tuple[cs.Trained, int]:
        torch.manual_seed(4)
        module, before = network(), fastconv.used()

        def on_step(step: int, module: nn.Module) -> None:
            if step == 4:
                change(module)

        with fastconv.using(kernels):
            run = cs.train(module, codes, images, cs.Training(steps=9, batch=4), on_step=on_step)
        return run, (fastconv.used() - before)["compiled step"]

    (ours, steps), (theirs, none) = trained("auto"), trained("torch")
    assert (steps, none) == (4, 0)
    for name, value in theirs.weights.items():
        torch.testing.assert_close(ours.weights[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        own_class,
        hook,
        gradient_hook,
        later_hook,
        own_forward,
        frozen,
        tied,
        shared_memory,
        additional_parameter,
        weight_norm,
    ],
)
def test_every_change_is_noticed(change):
    module = network().train()
    step = made(module, torch.randn(8, 4), torch.rand(8, 1, 8, 8))
    assert step.is_valid()
    change(module)
    assert not step.is_valid()


def test_settings_that_a_compiled_step_was_made_for():
    module = network().train()
    step = made(module, torch.randn(8, 4), torch.rand(8, 1, 8, 8))
    module.conv1[0].relu = False
    assert not step.is_valid()
    module.conv1[0].relu = True
    assert step.is_valid()
    module.extra = "a note"
    module.eval().train()
    assert step.is_valid()
    module.eval()
    assert not step.is_valid()
    module.train()
    torch.set_num_threads(2)
    assert not step.is_valid()
    torch.set_num_threads(1)
    assert step.is_valid()


def test_callbacks_see_gradients_and_may_write_weights():
    sizes = []

    def on_step(step: int, module: nn.Module) -> None:
        sizes.append(module.first[0].weight.grad.norm().item())
        with torch.no_grad():
            module.first[0].weight.zero_()

    assert steps_taken(module := network(), on_step=on_step) == 3
    assert all(size > 0 for size in sizes)
    assert module.first[0].weight.abs().max() == 0


def test_a_network_that_does_not_fit_its_targets_is_refused_as_before():
    with pytest.raises(cs.RunFailed, match="where the targets are"):
        cs.train(network(), torch.randn(8, 4), torch.rand(8, 1, 9, 9), cs.Training(steps=1, batch=4))


def test_divergence_is_noticed():
    with pytest.raises(cs.RunFailed, match="diverged"):
        cs.train(network(), 1e18 * torch.randn(8, 4), torch.rand(8, 1, 8, 8), cs.Training(epochs=3, batch=4))


def test_vectors_and_weights_of_zero():
    """Their gradients are those of the formulas, with the constants that keep these from dividing by zero."""
    decoder, sizes, shape = cs.LowRank(rank=3), (4, 5), (1, 9, 12)
    module, double = decoder.build(sizes, shape), decoder.build(sizes, shape).double()
    with torch.no_grad():
        module.embedding.factors[0].v[1, 0] = 0.0
        module.embedding.factors[0].weight[2] = 0.0
        module.embedding.factors[1].weight[3] = 1e-8
        module.embedding.factors[1].weight[1, 2] = 0.0
    double.load_state_dict(module.state_dict())
    codes, images = samples(sizes, shape, 6, one_hot=False)
    error_term = nn.functional.mse_loss(double(codes.double()), images.double())
    sum((penalty.loss(double) for penalty in PENALTIES), error_term).backward()
    made(module, codes, images, PENALTIES, 6)(torch.arange(6), 0.0, 1)
    for (name, ours), theirs in zip(module.named_parameters(), double.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-3, atol=1e-5, msg=name)
