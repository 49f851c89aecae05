"""When the kernels are taken and when PyTorch's convolutions are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from composcope import fastconv
from composcope.fastconv.functional import best_kernel, kernel_of_step

needs_kernels = pytest.mark.skipif(not fastconv.status().available, reason="no kernels here")


def ran(run) -> dict[str, int]:
    before = fastconv.used()
    run()
    return dict(fastconv.used() - before)


@pytest.fixture
def x():
    return torch.randn(8, 16, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def conv():
    torch.manual_seed(0)
    return fastconv.Conv3x3(16, 16, relu=True)


@needs_kernels
def test_training_takes_the_kernel(conv, x):
    assert ran(lambda: conv(x)) == {"winograd": 1}
    assert ran(lambda: fastconv.Conv3x3(16, 1)(x)) == {"narrow": 1}
    assert ran(lambda: fastconv.Upsample2x(16, 16)(x)) == {"winograd": 1}


@pytest.mark.parametrize(
    "ours", [fastconv.Conv3x3(3, 5), fastconv.Upsample2x(3, 5), fastconv.Conv3x3(3, 5, bias=False)]
)
def test_state_is_pytorchs(ours):
    bias = ours.bias is not None
    if isinstance(ours, fastconv.Upsample2x):
        theirs: nn.Module = nn.ConvTranspose2d(3, 5, 4, stride=2, padding=1, bias=bias)
    else:
        theirs = nn.Conv2d(3, 5, 3, padding=1, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 9, 9)
    assert torch.equal(ours.eval()(x), theirs(x))


def test_initialisation_is_pytorchs():
    torch.manual_seed(1)
    ours = fastconv.Conv3x3(3, 5)
    torch.manual_seed(1)
    assert torch.equal(ours.weight, nn.Conv2d(3, 5, 3, padding=1).weight)
    torch.manual_seed(1)
    up = fastconv.Upsample2x(3, 5)
    torch.manual_seed(1)
    assert torch.equal(up.bias, nn.ConvTranspose2d(3, 5, 4, stride=2, padding=1).bias)


def test_switch(conv, x):
    with fastconv.using("torch"):
        assert ran(lambda: conv(x)) == {"torch": 1}
        with fastconv.using("auto"):
            assert ran(lambda: conv(x)) == {"winograd" if fastconv.status().available else "torch": 1}
        assert torch.equal(conv(x), F.conv2d(x, conv.weight, conv.bias, padding=1).relu())
    with pytest.raises((ValueError, TypeError), match="auto"), fastconv.using("fast"):
        pass


def test_everywhere_is_without_gradients_too(conv, x):
    conv.relu, before = False, fastconv.used()
    with torch.no_grad(), fastconv.using("everywhere"):
        y = conv(x)
    assert fastconv.used() - before == {"winograd": 1}
    torch.testing.assert_close(y, F.conv2d(x, conv.weight, conv.bias, padding=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("relu", [False, True])
def test_without_gradients_pytorch_runs_to_the_last_bit(conv, x, relu):
    conv.relu = relu
    want = F.conv2d(x, conv.weight, conv.bias, padding=1)
    want = want.relu() if relu else want
    with torch.no_grad():
        assert torch.equal(conv(x), want)
    assert torch.equal(conv.eval()(x), want)


def test_other_types_shapes_and_autocast(conv, x):
    assert ran(lambda: conv.double()(x.double())) == {"torch": 1}
    conv.float()
    assert ran(lambda: conv(x[0])) == {"torch": 1}
    assert ran(lambda: conv(x[:0])) == {"torch": 1}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert conv(x).dtype == torch.bfloat16
    assert conv.to("meta")(x.to("meta")).shape == x.shape
    with pytest.raises(RuntimeError, match="channels"):
        fastconv.Conv3x3(3, 16)(x)


@needs_kernels
@pytest.mark.parametrize("relu", [False, True])
def test_double_backward(relu, x):
    torch.manual_seed(0)
    conv = fastconv.Conv3x3(16, 16, relu=relu)

    def second(mode):
        with fastconv.using(mode):
            at = x.clone().requires_grad_()
            (gx,) = torch.autograd.grad(conv(at).square().sum(), at, create_graph=True)
            return torch.autograd.grad(gx.square().sum(), [at, conv.weight])

    assert ran(lambda: second("auto")) == {"winograd": 1}
    for a, b in zip(second("auto"), second("torch"), strict=True):
        assert torch.allclose(a, b, rtol=1e-2, atol=1e-3 * b.abs().max().item())


@needs_kernels
def test_batched_gradients(conv, x):
    at = x.clone().requires_grad_()
    y = conv(at)
    gys = torch.randn(3, *y.shape)
    (got,) = torch.autograd.grad(y, at, gys, is_grads_batched=True, retain_graph=True)
    for g, gy in zip(got, gys, strict=True):
        assert torch.allclose(g, torch.autograd.grad(y, at, gy, retain_graph=True)[0], atol=1e-4)


def test_forward_mode_and_transforms(conv, x):
    t = torch.randn_like(x)
    plain = lambda a: F.conv2d(a, conv.weight, conv.bias, padding=1).relu()  # noqa: E731
    want = torch.func.jvp(plain, (x,), (t,))
    for a, b in zip(torch.func.jvp(conv, (x,), (t,)), want, strict=True):
        assert torch.equal(a, b)
    with torch.autograd.forward_ad.dual_level():
        y = conv(torch.autograd.forward_ad.make_dual(x, t))
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(y).tangent, want[1])
    assert torch.allclose(torch.func.vmap(conv)(x[:, None])[:, 0], plain(x), atol=1e-5)
    loss = lambda w: torch.func.functional_call(conv, {"weight": w}, x).sum()  # noqa: E731
    assert torch.func.grad(loss)(conv.weight.detach()).shape == conv.weight.shape
    assert torch.func.hessian(lambda a: conv(a).sum())(x[:1, :, :2, :2]).shape == (1, 16, 2, 2) * 2


@needs_kernels
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("layer", [fastconv.Conv3x3, fastconv.Upsample2x])
def test_derivatives_along_codes_take_the_kernel(layer, relu, x):
    torch.manual_seed(0)
    module = layer(16, 16, relu=relu)
    along = torch.randn(3, *x.shape)
    slopes = lambda: torch.func.vmap(lambda t: torch.func.jvp(module, (x,), (t,)))(along)  # noqa: E731
    with torch.no_grad(), fastconv.using("torch"):
        want = slopes()
    with torch.no_grad(), fastconv.using("everywhere"):
        assert ran(slopes) == {"winograd": 1}
        for got, expected in zip(slopes(), want, strict=True):
            assert torch.allclose(got, expected, atol=1e-4)
        weight = module.weight.detach()
        by_weight = lambda w: torch.func.functional_call(module, {"weight": w}, x)  # noqa: E731
        assert ran(lambda: torch.func.jvp(by_weight, (weight,), (weight,))) == {"torch": 1}
        assert ran(lambda: torch.func.grad(lambda a: module(a).sum())(x)) == {"torch": 1}


def test_compiled_tracing_sees_pytorchs(conv, x):
    compiled = torch.compile(conv, backend="eager", fullgraph=True)
    want = F.conv2d(x, conv.weight, conv.bias, padding=1).relu()
    assert torch.equal(compiled(x), want)
    assert torch.equal(torch.jit.trace(conv, x, check_trace=False)(x), want)


def test_flop_counting_sees_the_convolution(conv, x):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        conv(x)
    assert counter.get_total_flops() == 2 * 8 * 16 * 16 * 16 * 16 * 9


@pytest.mark.parametrize("lanes", [16, 8, 4])
def test_rule_takes_the_kernels_for_the_authors_layers(lanes):
    assert best_kernel("conv3x3", 32, 64, 64, 28, 28, lanes) == "winograd"
    assert best_kernel("conv3x3", 32, 64, 1, 28, 28, lanes) == "narrow"
    assert best_kernel("upsample2x", 32, 64, 64, 14, 14, lanes) == "winograd"


@pytest.mark.parametrize("lanes", [16, 8, 4])
def test_rule_leaves_to_pytorch_what_would_not_pay(lanes):
    assert best_kernel("conv3x3", 1, 64, 64, 7, 7, lanes) is None  # transforming the weight costs more
    assert best_kernel("conv3x3", 32, 1, 64, 28, 28, lanes) is None  # one channel fills no vector
    assert best_kernel("upsample2x", 32, 64, 64, 5, 5, lanes) is None  # tiles of 5 cover 6 badly
    assert best_kernel("conv3x3", 1, 2, 2, 8, 8, lanes) is None  # too few values


def test_rule_takes_the_kernel_for_all_doublings_of_few_channels():
    for size in (3, 5, 6):
        assert best_kernel("upsample2x", 16, 16, 16, size, size, 8) == "winograd"
        assert best_kernel("upsample2x", 16, 24, 24, size, size, 8) is None
        assert best_kernel("upsample2x", 16, 16, 16, size, size, 16) is None
    assert best_kernel("upsample2x", 16, 16, 16, 2, 2, 8) is None  # not measured


def test_rule_depends_on_lanes():
    quick = ("upsample2x", 16, 24, 24, 8, 8)  # 24 channels are 3 vectors of 8, and would be padded to 2 of 16
    assert best_kernel(*quick, 8) == "winograd"
    assert best_kernel(*quick, 16) == "winograd8"
    assert best_kernel("conv3x3", 32, 40, 40, 28, 28, 16) == "winograd8"
    assert best_kernel("conv3x3", 32, 56, 56, 28, 28, 16) == "winograd"  # 56 to 64: not enough
    assert best_kernel("conv3x3", 32, 24, 1, 28, 28, 16) == "narrow"


@needs_kernels
@pytest.mark.parametrize("layer", [fastconv.Conv3x3, fastconv.Upsample2x])
def test_24_channels_on_this_machine(layer):
    x = torch.randn(16, 24, 8, 8)
    assert ran(lambda: layer(24, 24)(x)) == {"winograd8" if fastconv.status().lanes == 16 else "winograd": 1}


def test_a_compiled_step_leaves_only_large_slow_layers_to_pytorch():
    for lanes in (16, 8, 4):
        assert kernel_of_step("conv3x3", 1, 64, 64, 7, 7, lanes) == "winograd"  # more than half as fast
        assert kernel_of_step("upsample2x", 16, 4, 4, 2, 2, lanes) in ("winograd", "winograd8")  # small
        assert kernel_of_step("conv3x3", 1, 2, 2, 8, 8, lanes) == "narrow"
        assert kernel_of_step("conv3x3", 32, 1, 65, 28, 28, lanes) == ("winograd" if lanes == 4 else None)


def test_keeping_memory_is_a_plain_yes_or_no():
    run = "from composcope import fastconv; import torch; print(fastconv.keep_memory()); torch.zeros(1 << 24).sum()"
    source = str(Path(fastconv.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", run], env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("True", "False")
