"""The kernels' results: against float64, and whatever the input looks like."""

import resource

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from composcope import fastconv
from composcope.fastconv import functional

pytestmark = pytest.mark.skipif(not fastconv.status().available, reason=f"no kernels: {fastconv.status().reason}")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(layer: str, n: int, c: int, k: int, h: int, w: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(n * 1000003 + c * 10007 + k * 101 + h * 7 + w)
    up = layer == "upsample2x"
    x = torch.randn(n, c, h, w, generator=g)
    weight = torch.randn((c, k, 4, 4) if up else (k, c, 3, 3), generator=g) / (3 * c**0.5)
    bias = torch.randn(k, generator=g)
    return x, weight, bias, torch.randn(n, k, h * (1 + up), w * (1 + up), generator=g)


def by_kernel(layer, kernel, x, weight, bias, gy, relu=False):
    inputs = [t.clone().requires_grad_() for t in (x, weight, bias)]
    y = functional._Kernel.apply(*inputs, relu, layer, kernel)
    return y.detach(), *torch.autograd.grad(y, inputs, gy)


def in_double(layer, x, weight, bias, gy, gate=None):
    inputs = [t.double().requires_grad_() for t in (x, weight, bias)]
    y = functional.by_torch(layer, *inputs, relu=False)
    if gate is not None:  # the kernel's own decision, since a value next to zero may fall on either side
        gy = gy * gate
    grads = torch.autograd.grad(y, inputs, gy.double())
    return (y if gate is None else y * gate).detach(), *grads


def error(got: Tensor, want: Tensor) -> float:
    return ((got - want).norm() / want.norm().clamp_min(1e-12)).item()


SHAPES = [
    (1, 1, 1, 7, 7),
    (33, 2, 3, 8, 8),
    (1, 3, 16, 13, 31),
    (33, 16, 24, 7, 13),
    (2, 24, 64, 28, 28),
    (3, 64, 24, 31, 8),
    (1, 64, 64, 28, 28),
    (2, 9, 17, 70, 31),  # several bands of tiles to an image
    (1, 8, 8, 3, 300),  # one row of tiles longer than a block
    (5, 3, 5, 1, 2),
]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("layer", "kernel"), [("conv3x3", "winograd"), ("upsample2x", "winograd"), ("conv3x3", "narrow")]
)
def test_value_and_gradients_agree_with_float64(layer, kernel, shape, relu):
    parts = made(layer, *shape)
    got = by_kernel(layer, kernel, *parts, relu=relu)
    want = in_double(layer, *parts, gate=got[0] > 0 if relu else None)
    for name, a, b in zip(("y", "gx", "gw", "gb"), got, want, strict=True):
        assert error(a, b) < 1e-5, name


def test_gradient_agrees_with_finite_differences():
    x, weight, bias, gy = made("conv3x3", 1, 3, 8, 8, 8)
    _, gx, gw, gb = by_kernel("conv3x3", "winograd", x, weight, bias, gy)

    def loss(*t: Tensor) -> Tensor:
        return (F.conv2d(*t, padding=1) * gy.double()).sum()

    at = [t.double() for t in (x, weight, bias)]
    for i, grad in enumerate((gx, gw, gb)):
        direction = torch.randn(at[i].shape, generator=torch.Generator().manual_seed(i), dtype=torch.double)
        ends = [loss(*[t + s * 1e-4 * direction if j == i else t for j, t in enumerate(at)]) for s in (1, -1)]
        slope = ((ends[0] - ends[1]) / 2e-4).item()
        size = (grad.norm() * direction.norm()).item()
        assert slope == pytest.approx((grad * direction).sum().item(), abs=1e-5 * size)


@pytest.mark.parametrize("which", [(True, False, False), (False, True, False), (False, False, True)])
def test_only_the_wanted_gradients(which):
    parts = made("conv3x3", 4, 16, 16, 12, 12)
    inputs = [t.clone().requires_grad_(wanted) for t, wanted in zip(parts, which, strict=False)]
    before = fastconv.used()
    fastconv.conv3x3(*inputs).backward(parts[3])
    assert fastconv.used() - before == {"winograd": 1}
    want = in_double("conv3x3", *parts)
    for t, wanted, grad in zip(inputs, which, want[1:], strict=True):
        assert (t.grad is not None) == wanted
        assert not wanted or error(t.grad, grad) < 1e-5


def test_without_bias_and_under_checkpointing():
    x, weight, _, gy = made("conv3x3", 4, 16, 16, 12, 12)
    inputs = [x.requires_grad_(), weight.requires_grad_()]
    plain = torch.autograd.grad(fastconv.conv3x3(*inputs), inputs, gy)
    again = torch.utils.checkpoint.checkpoint(fastconv.conv3x3, *inputs, use_reentrant=False)
    for a, b, c in zip(
        plain,
        torch.autograd.grad(again, inputs, gy),
        torch.autograd.grad(F.conv2d(*inputs, padding=1), inputs, gy),
        strict=True,
    ):
        assert torch.equal(a, b)
        assert error(a, c) < 1e-5


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("layer", "kernel"), [("conv3x3", "winograd"), ("upsample2x", "winograd"), ("conv3x3", "narrow")]
)
def test_same_bytes_every_time(layer, kernel, threads):
    torch.set_num_threads(threads)
    parts = made(layer, 7, 16, 8, 20, 20)
    first = by_kernel(layer, kernel, *parts)
    for _ in range(3):
        rubbish = torch.full((1 << 20,), float("nan"))  # what fresh memory holds must not matter
        del rubbish
        assert all(torch.equal(a, b) for a, b in zip(first, by_kernel(layer, kernel, *parts), strict=True))


@pytest.mark.parametrize("layer", ["conv3x3", "upsample2x"])
def test_threads_agree(layer):
    parts = made(layer, 7, 16, 16, 20, 20)
    one = by_kernel(layer, "winograd", *parts)
    torch.set_num_threads(3)
    for a, b in zip(one, by_kernel(layer, "winograd", *parts), strict=True):
        assert error(a, b) < 1e-5


@pytest.mark.parametrize("layout", ["channels_last", "expanded", "sliced", "transposed"])
def test_layout_of_the_input_does_not_matter(layout):
    x, weight, bias, gy = made("conv3x3", 4, 16, 16, 12, 12)
    if layout == "expanded":
        x, gy = x[:1].expand(4, -1, -1, -1), gy[:1].expand(4, -1, -1, -1)
    want = by_kernel("conv3x3", "winograd", x.contiguous(), weight, bias, gy.contiguous())
    change = {
        "channels_last": lambda t: t.contiguous(memory_format=torch.channels_last),
        "expanded": lambda t: t,
        "sliced": lambda t: torch.cat([t, t], 3)[..., : t.shape[3]],
        "transposed": lambda t: t.transpose(2, 3).contiguous().transpose(2, 3),
    }[layout]
    inputs = [change(x).requires_grad_(), change(weight).requires_grad_(), bias.requires_grad_()]
    y = fastconv.conv3x3(*inputs)
    got = (y, *torch.autograd.grad(y, inputs, change(gy)))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize(
    ("layer", "kernel"), [("conv3x3", "winograd"), ("upsample2x", "winograd"), ("conv3x3", "narrow")]
)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_not_finite_is_not_hidden(layer, kernel, relu, value):
    x, weight, bias, gy = made(layer, 2, 8, 8, 9, 9)
    x[1, 3, 4, 5] = value
    y, _, gw, _ = by_kernel(layer, kernel, x, weight, bias, gy, relu)
    want = functional.by_torch(layer, x, weight, bias, relu)
    assert y[0].isfinite().all()
    assert not y[1][~want[1].isfinite()].isfinite().any()
    assert not gw.isfinite().all()
    x[1, 3, 4, 5] = 0.0
    gy[1, 2, 4, 5] = value
    y, gx, gw, gb = by_kernel(layer, kernel, x, weight, bias, gy)
    assert not any(t.isfinite().all() for t in (gx, gw, gb))


def test_memory_is_freed():
    layer = nn.Sequential(fastconv.Conv3x3(16, 16, relu=True), fastconv.Upsample2x(16, 16), fastconv.Conv3x3(16, 1))
    x = torch.randn(8, 16, 32, 32)

    def step() -> None:
        layer(x).square().mean().backward()

    for _ in range(20):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(150):
        step()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kilobytes


def test_the_loss_curve_is_pytorchs():
    def curve(mode: str) -> Tensor:
        torch.manual_seed(3)
        model = nn.Sequential(
            fastconv.Upsample2x(16, 16, relu=True), fastconv.Conv3x3(16, 16, relu=True), fastconv.Conv3x3(16, 1)
        )
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x, y = torch.randn(8, 16, 14, 14), torch.rand(8, 1, 28, 28)
        losses = []
        with fastconv.using(mode):
            for _ in range(40):
                optimiser.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                optimiser.step()
                losses.append(loss.detach())
        return torch.stack(losses)

    before = fastconv.used()
    ours = curve("auto")
    assert set(fastconv.used() - before) == {"winograd", "narrow"}
    assert torch.allclose(ours, curve("torch"), rtol=1e-4)
