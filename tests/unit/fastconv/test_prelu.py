"""PReLU with a faster gradient: the same values and gradients as PyTorch's."""

import pytest
import torch
from torch import nn

from composcope import fastconv
from composcope.fastconv import PReLU
from composcope.fastconv import modules as module_under_test


@pytest.fixture(autouse=True)
def small_tensors_too(monkeypatch):
    monkeypatch.setattr(module_under_test, "MIN_NUMBERS", 1)


def pair() -> tuple[PReLU, nn.PReLU]:
    ours, theirs = PReLU(), nn.PReLU()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def numbers() -> torch.Tensor:
    x = torch.randn(3, 2, 5, 4)
    x[0, 0, 0] = 0.0  # where the slope changes
    return x


def test_values_and_gradients_are_pytorchs():
    x, weights = numbers(), torch.randn(3, 2, 5, 4)
    values, gradients = [], []
    for layer in pair():
        given = x.clone().requires_grad_()
        y = layer(given)
        values.append(y.detach())
        gradients.append(torch.autograd.grad((y * weights).sum(), (given, layer.weight)))
    assert torch.equal(*values)
    assert torch.equal(gradients[0][0], gradients[1][0])
    torch.testing.assert_close(gradients[0][1], gradients[1][1])


def test_the_gradient_can_be_differentiated():
    x = numbers()
    found = []
    for layer in pair():
        given = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(layer(given).square().sum(), given, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), (given, layer.weight)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.fixture
def counted(monkeypatch):
    calls = []
    monkeypatch.setattr(module_under_test, "_PReLU", type("_", (), {"apply": lambda *a: calls.append(1) or a[0]}))
    return calls


def test_it_is_used_in_training_only_and_not_with_pytorchs_kernels(counted):
    layer, x = PReLU(), numbers()
    layer(x)
    assert len(counted) == 1
    with fastconv.using("torch"):
        layer(x)
    layer.double()(x.double())
    layer.float().eval()(x)
    with torch.no_grad():
        layer.train()(x)
    assert len(counted) == 1


def test_derivatives_along_the_input_are_pytorchs():
    ours, theirs = pair()
    x, direction = numbers(), torch.randn(3, 2, 5, 4)
    for layer in (ours.train(), ours.eval()):
        torch.testing.assert_close(
            torch.func.jvp(layer, (x,), (direction,)), torch.func.jvp(theirs, (x,), (direction,))
        )


def test_small_tensors_are_left_to_pytorch(counted, monkeypatch):
    monkeypatch.setattr(module_under_test, "MIN_NUMBERS", 4 * numbers().numel())
    layer = PReLU()
    layer(numbers())
    assert not counted
    layer(torch.cat([numbers()] * 4))
    assert len(counted) == 1
