"""Log-linear (Poisson) regression of every pixel on the code, by Newton's method."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

RIDGE = 0.03
# Newton's method has converged when a step would lower the objective by less than this. It starts near the solution and
# doubles the correct digits with every step; the others are a limit for what cannot happen.
LEAST_GAIN, MOST_STEPS, MOST_HALVINGS = 1e-8, 100, 30
# Pixels are predicted up to e^8: an exponential far from the data can be anything, and images must be finite.
LARGEST_EXPONENT = 8.0
# Numbers held at a time: second derivatives of a chunk of pixels, and products of pairs of code units.
MOST_NUMBERS = 20_000_000

OnProgress = Callable[[int, int], None]


def fit_loglinear(
    codes: Float[Tensor, "n code"],
    targets: Float[Tensor, "n pixels"],
    counts: Float[Tensor, "n"],
    ridge: float = RIDGE,
    on_progress: OnProgress = lambda done, total: None,
) -> Float[Tensor, "inputs pixels"]:
    """For every pixel argmin over w of sum_n c_n [exp(x_n w) - y_n x_n w] + ridge / 2 |w|^2, with x = [code, 1].

    - `targets`: y, brought into 0..1; `counts`: c, how often a sample occurs.

    >>> weights = fit_loglinear(torch.eye(2).double(), torch.tensor([[1.0], [0.2]]).double(), torch.ones(2), 1e-6)
    >>> [round(value, 2) for value in predict_loglinear(weights, torch.eye(2).double()).flatten().tolist()]
    [1.0, 0.2]
    """
    inputs, clamped = with_constant(codes.double()), targets.double().clamp(0, 1)
    size, pixels = inputs.shape[1], targets.shape[1]
    chunk = max(1, min(pixels, MOST_NUMBERS // size**2))
    fitted = []
    on_progress(0, pixels)
    for part in clamped.split(chunk, 1):
        fitted.append(_newton(inputs, part, counts.double(), ridge))
        on_progress(sum(weights.shape[1] for weights in fitted), pixels)
    return torch.cat(fitted, 1)


def predict_loglinear(
    weights: Float[Tensor, "inputs pixels"], codes: Float[Tensor, "n code"]
) -> Float[Tensor, "n pixels"]:
    """exp(x w), x = [code, 1]."""
    return (with_constant(codes.double()) @ weights).clamp(max=LARGEST_EXPONENT).exp()


def with_constant(codes: Float[Tensor, "n code"]) -> Float[Tensor, "n inputs"]:
    return torch.cat([codes, torch.ones_like(codes[:, :1])], 1)


def _newton(inputs: Tensor, targets: Tensor, counts: Tensor, ridge: float) -> Float[Tensor, "inputs pixels"]:
    """All pixels at once; each has steps of its own, halved until its objective falls, and is left when it is done."""
    weights = torch.zeros(inputs.shape[1], targets.shape[1], dtype=torch.float64)
    mean = (counts[:, None] * targets).sum(0) / counts.sum()
    weights[-1] = mean.clamp(min=1e-4).log()
    active = torch.arange(targets.shape[1])
    for _ in range(MOST_STEPS):
        own, wanted = weights[:, active], targets[:, active]
        rate = (inputs @ own).exp()
        slope = inputs.T @ (counts[:, None] * (rate - wanted)) + ridge * own
        factor = torch.linalg.cholesky(_curvature(inputs, counts[:, None] * rate, ridge))
        step = torch.cholesky_solve(slope.T[:, :, None], factor)[:, :, 0].T
        gain = (slope * step).sum(0)
        moving = gain > LEAST_GAIN
        if not moving.any():
            break
        active = active[moving]
        start, step, wanted = own[:, moving], step[:, moving], wanted[:, moving]
        weights[:, active] = _halved(inputs, wanted, counts, ridge, start, step, gain[moving])
    return weights


def _curvature(inputs: Tensor, rates: Float[Tensor, "n pixels"], ridge: float) -> Float[Tensor, "pixels inputs inputs"]:
    """The lower half of X^T diag(rate) X + ridge for every pixel, as one product of the rates with pairs of inputs."""
    size = inputs.shape[1]
    first, second = torch.tril_indices(size, size)
    total = torch.zeros(rates.shape[1], len(first), dtype=torch.float64)
    chunk = max(1, MOST_NUMBERS // len(first))
    for rows, rate in zip(inputs.split(chunk), rates.split(chunk), strict=True):
        total += rate.T @ (rows[:, first] * rows[:, second])
    lower = torch.zeros(rates.shape[1], size, size, dtype=torch.float64)
    lower[:, first, second] = total  # a Cholesky factorization reads nothing else
    lower.diagonal(dim1=1, dim2=2).add_(ridge)
    return lower


def _halved(
    inputs: Tensor, targets: Tensor, counts: Tensor, ridge: float, start: Tensor, step: Tensor, gain: Tensor
) -> Float[Tensor, "inputs pixels"]:
    """start - t step, with t = 1, 1/2, 1/4, ... until the objective has fallen by a share of what was expected."""
    length = torch.ones(start.shape[1], dtype=torch.float64)
    before = _objective(inputs, targets, counts, ridge, start)
    for _ in range(MOST_HALVINGS):
        after = _objective(inputs, targets, counts, ridge, start - length * step)
        worse = ~(after <= before - 1e-4 * length * gain + 1e-12 * before.abs())
        if not worse.any():
            break
        length[worse] /= 2
    return start - length * step


def _objective(
    inputs: Tensor, targets: Tensor, counts: Tensor, ridge: float, weights: Tensor
) -> Float[Tensor, "pixels"]:
    exponent = inputs @ weights
    fit = (counts[:, None] * (exponent.exp() - targets * exponent)).sum(0)
    return fit + ridge / 2 * weights.square().sum(0)
