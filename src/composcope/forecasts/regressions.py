"""Two regressions of images on codes, log-linear and Gaussian kernel, and the training set as they see it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.holdouts import split
from composcope.randomness import generator
from composcope.runs.spec import Spec, training_latents

CHUNK = 1024  # images at a time
# Of more distinct samples, as continuous factors give, so many are drawn: regressions with one weight per code unit
# need no more, and a forecast has to be cheap.
MAX_SAMPLES = 2000
# Combinations whose codes give the scale.
MAX_SCALED = 20_000


@dataclass(frozen=True)
class Samples:
    """Distinct training samples, at most `MAX_SAMPLES`.

    - `codes`: divided by `scale`, s^2 = mean |code|^2 / number of factors over the grid, so that one factor's part has
      a mean square of 1; `counts`: how often each is in the training set.
    - `foregrounds`: the object on a background of zero, one row of pixels per sample.
    """

    codes: Float[Tensor, "n code"]
    foregrounds: Float[Tensor, "n pixels"]
    counts: Float[Tensor, "n"]
    scale: float


def training_samples(spec: Spec) -> Samples:
    """What a run of this spec is trained on, in double precision."""
    task, encoding = spec.task, spec.encoding
    latents = training_latents(task, spec.holdout, spec.sampling, spec.seed)
    codes, first, counts = _distinct(encoding.encode(latents, task.factors).double())
    if len(codes) > MAX_SAMPLES:
        rows = torch.randperm(len(codes), generator=generator(spec.seed, "forecast"))[:MAX_SAMPLES].sort().values
        codes, first, counts = codes[rows], first[rows], counts[rows] * (counts.sum() / counts[rows].sum())
    chosen = latents[first]
    scale = _scale(spec)
    foregrounds = torch.cat([task.foreground(task.render(part)).double().flatten(1) for part in chosen.split(CHUNK)])
    return Samples(codes / scale, foregrounds, counts, scale)


def _scale(spec: Spec) -> float:
    """s, from the codes of all combinations, or of some of very many."""
    latents = split(spec.task, spec.holdout).latents
    if len(latents) > MAX_SCALED:
        latents = latents[torch.randperm(len(latents), generator=generator(spec.seed, "scale"))[:MAX_SCALED]]
    codes = spec.encoding.encode(latents, spec.task.factors).double()
    return (codes.square().sum(1).mean() / len(spec.task.factors)).sqrt().clamp(min=1e-12).item()


def _distinct(codes: Float[Tensor, "n code"]) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct rows, the first sample that has each, and how many do."""
    rows, member, counts = codes.unique(dim=0, return_inverse=True, return_counts=True)
    first = torch.full((len(rows),), len(codes)).scatter_reduce(0, member, torch.arange(len(codes)), "amin")
    return rows, first, counts.double()


def fit_score(predicted: Float[Tensor, "n pixels"], samples: Samples) -> float:
    """R^2 = 1 - sum |y - f|^2 / sum |y - mean y|^2 over the training set; 0 where all images are the same."""
    weights = samples.counts[:, None]
    mean = (weights * samples.foregrounds).sum(0) / weights.sum()
    spread = (weights * (samples.foregrounds - mean).square()).sum().item()
    error = (weights * (samples.foregrounds - predicted).square()).sum().item()
    return 1 - error / spread if spread > 0 else 0.0


LOGLINEAR_RIDGE = 0.03
# Newton's method has converged when a step would lower the objective by less than this. It starts near the solution and
# doubles the correct digits with every step; the others are a limit for what cannot happen.
MIN_GAIN, MAX_STEPS, MAX_HALVINGS = 1e-8, 100, 30
# Pixels are predicted up to e^8: an exponential far from the data can be anything, and images must be finite.
MAX_EXPONENT = 8.0
# Numbers held at a time: second derivatives of a chunk of pixels, and products of pairs of code units.
MAX_NUMBERS = 20_000_000

OnProgress = Callable[[int, int], None]


def fit_loglinear(
    codes: Float[Tensor, "n code"],
    targets: Float[Tensor, "n pixels"],
    counts: Float[Tensor, "n"],
    ridge: float = LOGLINEAR_RIDGE,
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
    chunk = max(1, min(pixels, MAX_NUMBERS // size**2))
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
    return (with_constant(codes.double()) @ weights).clamp(max=MAX_EXPONENT).exp()


def with_constant(codes: Float[Tensor, "n code"]) -> Float[Tensor, "n inputs"]:
    return torch.cat([codes, torch.ones_like(codes[:, :1])], 1)


def _newton(inputs: Tensor, targets: Tensor, counts: Tensor, ridge: float) -> Float[Tensor, "inputs pixels"]:
    """All pixels at once; each has steps of its own, halved until its objective falls, and is left when it is done."""
    weights = torch.zeros(inputs.shape[1], targets.shape[1], dtype=torch.float64)
    mean = (counts[:, None] * targets).sum(0) / counts.sum()
    weights[-1] = mean.clamp(min=1e-4).log()
    active = torch.arange(targets.shape[1])
    for _ in range(MAX_STEPS):
        own, wanted = weights[:, active], targets[:, active]
        rate = (inputs @ own).exp()
        slope = inputs.T @ (counts[:, None] * (rate - wanted)) + ridge * own
        factor = torch.linalg.cholesky(_curvature(inputs, counts[:, None] * rate, ridge))
        step = torch.cholesky_solve(slope.T[:, :, None], factor)[:, :, 0].T
        gain = (slope * step).sum(0)
        moving = gain > MIN_GAIN
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
    chunk = max(1, MAX_NUMBERS // len(first))
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
    for _ in range(MAX_HALVINGS):
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


GAUSSIAN_RIDGE = 1e-2


def gaussian_kernel(first: Float[Tensor, "n code"], second: Float[Tensor, "m code"]) -> Float[Tensor, "n m"]:
    """exp(-|a - b|^2 / 2)."""
    return (-torch.cdist(first, second).square() / 2).exp()


def fit_gaussian(
    codes: Float[Tensor, "n code"],
    targets: Float[Tensor, "n pixels"],
    counts: Float[Tensor, "n"],
    ridge: float = GAUSSIAN_RIDGE,
) -> Float[Tensor, "n pixels"]:
    """The coefficients a of images sum_n k(code, code_n) a_n: (K + ridge / counts) a = y.

    >>> codes = torch.eye(2).double()
    >>> weights = fit_gaussian(codes, torch.tensor([[1.0], [0.2]]).double(), torch.ones(2), 1e-9)
    >>> [round(value, 2) for value in (gaussian_kernel(codes, codes) @ weights).flatten().tolist()]
    [1.0, 0.2]
    """
    kernel = gaussian_kernel(codes, codes) + torch.diag(ridge / counts.double())
    return torch.cholesky_solve(targets.double(), torch.linalg.cholesky(kernel))
