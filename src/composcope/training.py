"""Train a module on in-memory inputs and targets: AdamW on the mean squared error, or on another loss."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from pydantic.dataclasses import dataclass as validated
from torch import Tensor, nn
from torch.optim.adamw import adamw

from composcope.components import CONFIG, Listed
from composcope.errors import RunFailed
from composcope.fastconv import compiled_step, prepare
from composcope.penalties import Batch, Penalty, TrainingData
from composcope.randomness import generator, seeded

Weights = dict[str, Tensor]
OnStep = Callable[[int, nn.Module], None]
Loss = Callable[[nn.Module, Tensor, Tensor, torch.Generator], Tensor]
"""The loss of one step: of a module, its inputs and targets, with a source of random numbers."""
OnEpoch = Callable[[Mapping[str, float], nn.Module], None]

# Training has diverged when an epoch's mean loss exceeds this multiple of the targets' mean square (at least 1, so that
# targets near zero do not make an ordinary loss look like divergence).
DIVERGED = 1e4

# With the schedule "plateau", the rate is halved once the loss has not fallen by this share for more than so many
# epochs, and not below the smallest rate.
MIN_FALL, PATIENCE, MIN_RATE = 1e-4, 5, 1e-6


@validated(frozen=True, config=CONFIG)
class Training:
    """How to train: the number of epochs (50 by default) or of steps, in shuffled batches.

    - `schedule`: the learning rate is "constant", decays to zero along half a cosine ("cosine"), or is halved whenever
      the validation loss (without validation, the training loss) has stopped falling ("plateau").
    - `l1`: weight of the mean absolute error, added to the mean squared error.
    - `clip`: gradients are scaled down to this norm if theirs is larger.
    - `validation`: share of the samples, chosen at random, that is not trained on; its loss is in the curve.
    - `snapshots`: steps after which a copy of the weights is kept, since some effects fade with more training.
    """

    epochs: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1)] | None = None
    batch: Annotated[int, Field(ge=1)] = 32
    lr: Annotated[float, Field(gt=0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    schedule: Literal["constant", "cosine", "plateau"] = "constant"
    l1: Annotated[float, Field(ge=0)] = 0.0
    clip: Annotated[float, Field(gt=0)] | None = None
    validation: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    snapshots: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Listed] = ()

    def __post_init__(self) -> None:
        if self.epochs is not None and self.steps is not None:
            raise ValueError(f"epochs = {self.epochs} and steps = {self.steps}: give one of them, not both")
        if self.epochs is None and self.steps is None:
            object.__setattr__(self, "epochs", 50)

    def check(self, samples: int) -> None:
        """Raise ValueError if a snapshot is scheduled after the last step, or if no sample is left for validation."""
        if self.validation and not self.validation_samples(samples):
            raise ValueError(f"validation: a share of {self.validation:g} of {samples} samples is less than one")
        last = self.total_steps(samples)
        if self.snapshots and max(self.snapshots) > last:
            raise ValueError(f"snapshots: step {max(self.snapshots)} comes after the last, {last}")

    def total_steps(self, samples: int) -> int:
        """The number of optimizer steps for a training set of this size.

        >>> Training(epochs=50, batch=32).total_steps(2000)
        3150
        """
        trained = samples - self.validation_samples(samples)
        return self.steps or (self.epochs or 0) * math.ceil(trained / self.batch)

    def validation_samples(self, samples: int) -> int:
        """How many samples of a training set of this size are not trained on."""
        return int(self.validation * samples)


@dataclass(frozen=True)
class Trained:
    """The result of training: weights, loss curve, seconds, and snapshots by step.

    The curve has one row per epoch: epoch, step, the mean loss without penalties and, if there are any, the mean of the
    penalties and the loss of the validation samples.

    - `seconds`: by the clock. `cpu_seconds`: of CPU time over all of its threads, which waiting for a busy machine does
      not lengthen; None if it was not measured.
    """

    weights: Weights
    curve: list[dict[str, float]]
    seconds: float
    snapshots: dict[int, Weights] = field(default_factory=dict)
    cpu_seconds: float | None = None

    @property
    def times(self) -> dict[str, float]:
        """`seconds` and, if it was measured, `cpu_seconds`."""
        return {"seconds": self.seconds, **({} if self.cpu_seconds is None else {"cpu_seconds": self.cpu_seconds})}


def train(
    module: nn.Module,
    inputs: Float[Tensor, "samples ..."],
    targets: Float[Tensor, "samples ..."],
    settings: Training,
    seed: int = 0,
    penalties: Sequence[Penalty] = (),
    device: str | torch.device = "cpu",
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
    loss: Loss | None = None,
    data: TrainingData | None = None,
) -> Trained:
    """Train the module in place and set it to eval mode; the same seed gives the same weights.

    `on_step(step, module)` is called after every step, `on_epoch(row, module)` with every row of the curve.

    - `loss`: takes the place of the error set by `settings`, as `Decoder.loss` does.
    - `data`: what penalties may know; by default the inputs are codes of one factor, the targets images, and nothing
      is held out. It has one row per input.
    """
    if torch.device(device).type == "cpu":
        prepare(module)
    cpu_time = _cpu_clock(device)
    start, cpu_start = time.perf_counter(), cpu_time()
    module.to(device).train()
    inputs, targets = inputs.to(device), targets.to(device)
    data = data or TrainingData(inputs, targets, inputs[:0], (inputs.shape[1:].numel(),), generator(seed, "penalties"))
    ceiling = DIVERGED * max(targets.square().mean().item(), 1.0)
    total = settings.total_steps(len(inputs))
    rate = _Rate(settings, total)
    trained, validated = _parts(settings, len(inputs), seed)
    curve: list[dict[str, float]] = []
    snapshots: dict[int, Weights] = {}
    rng, step = generator(seed, "batches"), 0
    with seeded(seed, "training"):
        objective = _Objective(module, inputs, targets, settings.l1, loss, penalties, data, seed)
        take_step = _Steps(objective, penalties, settings)
        while step < total:
            order = trained[torch.randperm(len(trained), generator=rng)].to(device)
            batches = order.split(settings.batch)[: total - step]
            losses, added = torch.zeros((), device=device), torch.zeros((), device=device)
            for batch in batches:
                error, penalty = take_step(batch, rate.at(step))
                losses += error
                added += penalty
                step += 1
                if step in settings.snapshots:
                    snapshots[step] = weights_of(module)
                if on_step is not None:
                    on_step(step, module)
                    take_step.check()
            row = {"epoch": len(curve) + 1, "step": step, "loss": losses.item() / len(batches)}
            if penalties:
                row["penalty"] = added.item() / len(batches)
            if not row["loss"] < ceiling:
                raise RunFailed(
                    f"training diverged: loss {row['loss']:g} in epoch {row['epoch']} (step {step}); try a lower lr"
                )
            if len(validated):
                row["validation"] = objective.validation(validated.to(device))
            rate.end_epoch(row.get("validation", row["loss"]))
            curve.append(row)
            if on_epoch is not None:
                on_epoch(row, module)
                take_step.check()
    module.eval()
    weights = weights_of(module)
    return Trained(weights, curve, time.perf_counter() - start, snapshots, cpu_time() - cpu_start)


@dataclass(frozen=True)
class _Terms:
    """What one step minimizes: the error and the penalties."""

    error: Tensor
    penalties: Sequence[Tensor]

    @property
    def total(self) -> Tensor:
        return sum(self.penalties, self.error)


class _Objective:
    """The loss of a step, from the rows of its samples."""

    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        l1: float,
        loss: Loss | None,
        penalties: Sequence[Penalty],
        data: TrainingData,
        seed: int,
    ) -> None:
        self.module, self.inputs, self.targets, self.l1, self.loss = module, inputs, targets, l1, loss
        self.rng = generator(seed, "loss")
        device = inputs.device
        self.codes, self.images = data.codes.to(device), data.images.to(device)
        heldout_codes = data.heldout_codes.to(device)
        moved = replace(data, codes=self.codes, images=self.images, heldout_codes=heldout_codes)
        self.penalties = [
            penalty.start(replace(moved, rng=generator(seed, f"penalty {index}")))
            for index, penalty in enumerate(penalties)
        ]

    def __call__(self, rows: Tensor) -> _Terms:
        outputs, error = self._error(rows)
        if not self.penalties:
            return _Terms(error, ())
        batch = Batch(self.codes.index_select(0, rows), self.images.index_select(0, rows), outputs)
        return _Terms(error, [penalty(self.module, batch) for penalty in self.penalties])

    def _error(self, rows: Tensor) -> tuple[Tensor | None, Tensor]:
        """The module's outputs, None with a loss of its own, and the error without penalties."""
        inputs, targets = self.inputs.index_select(0, rows), self.targets.index_select(0, rows)
        if self.loss is not None:
            return None, self.loss(self.module, inputs, targets, self.rng)
        outputs = self.module(inputs)
        if outputs.shape != targets.shape:
            raise RunFailed(f"the module gives {tuple(outputs.shape)} where the targets are {tuple(targets.shape)}")
        error = nn.functional.mse_loss(outputs, targets)
        return outputs, error + self.l1 * nn.functional.l1_loss(outputs, targets) if self.l1 else error

    @torch.no_grad()
    def validation(self, rows: Tensor) -> float:
        """The error of some samples in eval mode."""
        self.module.eval()
        _, error = self._error(rows)
        self.module.train()
        return error.item()


class _Steps:
    """Steps of AdamW: in compiled code where that does what autograd would, otherwise by autograd."""

    def __init__(self, objective: _Objective, penalties: Sequence[Penalty], settings: Training) -> None:
        self.objective, self.taken = objective, 0
        self.optimizer = AdamW(objective.module.parameters(), settings.weight_decay, settings.clip)
        moments = list(zip(self.optimizer.means, self.optimizer.squares, strict=True))
        self.compiled = None
        if objective.loss is None:
            samples = objective.inputs, objective.targets
            options = settings.batch, settings.l1, settings.clip, settings.weight_decay
            self.compiled = compiled_step(objective.module, *samples, penalties, moments, *options)

    def check(self) -> None:
        """To be called after a callback: if it changed the module, autograd goes on where compiled steps ended."""
        if self.compiled and not self.compiled.is_valid():
            self.compiled = None
            self.optimizer.updates = [self.taken] * len(self.optimizer.parameters)

    def __call__(self, rows: Tensor, rate: float) -> tuple[Tensor | float, Tensor | float]:
        """One step; the error of these samples and the sum of their penalties, before the update."""
        self.taken += 1
        if self.compiled:
            return self.compiled(rows, rate, self.taken)
        self.optimizer.zero_grad()
        terms = self.objective(rows)
        terms.total.backward()
        self.optimizer.step(rate)
        return terms.error.detach(), sum((term.detach() for term in terms.penalties), 0.0)


def _cpu_clock(device: str | torch.device) -> Callable[[], float]:
    """The clock that counts the CPU time of training and as little else as possible.

    With one thread on the CPU everything, gradients included, is computed by the calling thread, so that other threads
    of the process (a worker's heartbeat, a second run) are not counted. Otherwise helper threads do part of the work,
    and the whole process is counted.
    """
    alone = torch.device(device).type == "cpu" and torch.get_num_threads() == 1
    return time.thread_time if alone else time.process_time


def weights_of(module: nn.Module) -> Weights:
    """A copy of the module's state dict, contiguous and on the CPU."""
    return {name: value.detach().cpu().clone().contiguous() for name, value in module.state_dict().items()}


def _parts(settings: Training, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """The samples that are trained on, and those that are not."""
    if not settings.validation:
        return torch.arange(samples), torch.arange(0)
    count = settings.validation_samples(samples)
    order = torch.randperm(samples, generator=generator(seed, "validation"))
    return order[count:], order[:count]


class _Rate:
    """The learning rate, step by step."""

    def __init__(self, settings: Training, total: int) -> None:
        self.settings, self.total, self.rate = settings, total, settings.lr
        self.lowest, self.waited = math.inf, 0

    def at(self, step: int) -> float:
        if self.settings.schedule == "cosine":
            return self.rate * (0.5 * (1 + math.cos(math.pi * (step / self.total))))
        return self.rate

    def end_epoch(self, loss: float) -> None:
        """Halve the rate of the schedule "plateau" if the loss has not fallen for long enough."""
        if loss < self.lowest * (1 - MIN_FALL):
            self.lowest, self.waited = loss, 0
            return
        self.waited += 1
        if self.settings.schedule == "plateau" and self.waited > PATIENCE:
            self.rate, self.waited = min(self.rate, max(self.rate / 2, MIN_RATE)), 0


class AdamW:
    """`torch.optim.AdamW`'s update to the last bit, without its bookkeeping; first, gradients are clipped to a norm.

    For a small network that bookkeeping (groups, hooks, profiling) takes several times as long as the update itself,
    and to make the optimizer imports PyTorch's compiler, which takes a second in every process.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], weight_decay: float, clip: float | None = None) -> None:
        self.parameters: list[Tensor] = [parameter for parameter in parameters if parameter.requires_grad]
        self.weight_decay, self.clip = weight_decay, clip
        # One fused update instead of several small ones, where every parameter allows it; directly where all are alike.
        self.fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in self.parameters)
        alike = all(p.dtype == torch.float32 and p.device.type == "cpu" for p in self.parameters)
        self.direct = alike and hasattr(torch, "_fused_adamw_")
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.updates = [0] * len(self.parameters)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update every parameter that has a gradient."""
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
        chosen = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        if not chosen:
            return
        parameters = [self.parameters[index] for index in chosen]
        grads = [grad for parameter in parameters if (grad := parameter.grad) is not None]
        means, squares = ([moments[index] for index in chosen] for moments in (self.means, self.squares))
        updates = [self.updates[index] for index in chosen]
        for index in chosen:
            self.updates[index] += 1
        settings: dict[str, Any] = {"lr": rate, "beta1": 0.9, "beta2": 0.999, "weight_decay": self.weight_decay}
        settings |= {"eps": 1e-8, "amsgrad": False, "maximize": False}
        if self.direct:
            counts = {n: torch.tensor(n + 1, dtype=torch.float32) for n in set(updates)}
            torch._fused_adamw_(parameters, grads, means, squares, [], [counts[n] for n in updates], **settings)
            return
        devices = [p.device if self.fused else None for p in parameters]
        steps = [torch.tensor(float(n), device=device) for n, device in zip(updates, devices, strict=True)]
        has_complex = any(parameter.is_complex() for parameter in parameters)
        adamw(parameters, grads, means, squares, [], steps, fused=self.fused, has_complex=has_complex, **settings)
