"""One run: the walk of the data, once."""

import logging
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

import composcope
from composcope.errors import BadInput, RunFailed
from composcope.experiments.spec import Spec, warn_unless_composition
from composcope.experiments.store import Store
from composcope.factors import column
from composcope.fastconv import Mode, used, using
from composcope.holdouts import Split, split
from composcope.measures.error import mse, position_accuracy
from composcope.randomness import generator, seeded
from composcope.tasks.base import Task
from composcope.training import OnEpoch, OnStep, Trained, Weights, train

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

# Measures made at the end of every run, with the version of their definition.
VERSIONS = {"error": 1}


@dataclass(frozen=True)
class Result:
    """A finished run: its weights, curve, measures by set and name, provenance, and snapshots by step."""

    spec: Spec
    weights: Weights
    curve: "pd.DataFrame"
    measures: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[str, Any]
    snapshots: Mapping[int, Weights]

    @property
    def run_id(self) -> str:
        return self.spec.run_id

    @property
    def seconds(self) -> float:
        return float(self.provenance["seconds"])

    @cached_property
    def module(self) -> nn.Module:
        """The trained module, in eval mode on the CPU."""
        module = build(self.spec)
        module.load_state_dict(self.weights)
        return module.eval()


def run(
    spec: Spec,
    store: Store | None = None,
    device: str = "cpu",
    threads: int = 1,
    kernels: Mode = "auto",
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
) -> Result:
    """Train what the spec says, or load it if the store has it; a failure is recorded and raised as RunFailed.

    One thread by default, so that a run by itself and the same run in a sweep give the same bytes. `kernels="torch"`
    trains with PyTorch's convolutions only.
    """
    if threads < 1 or kernels not in ("auto", "torch"):
        raise BadInput(f"threads = {threads}, kernels = {kernels!r}: at least 1, and 'auto' or 'torch'")
    warn_unless_composition(spec)
    place = usable_device(device)
    if store is not None:
        if store.has(spec.run_id):
            return load(store, spec.run_id)
        store.prepare()
    provenance = provenance_of(device, threads)
    log.info("run %s: training on %s", spec.run_id, device)
    try:
        before = used()
        with using_threads(threads), using(kernels):
            trained = train_spec(spec, place, on_step, on_epoch)
        provenance["kernels"] = dict(used() - before)
    except Exception as error:
        reason = str(error) if isinstance(error, RunFailed) else f"{type(error).__name__}: {error}"
        if store is not None:
            store.save_failure(spec, reason, provenance)
        raise RunFailed(f"run {spec.run_id}: {reason}") from error
    if store is not None:
        store.save(spec, trained, provenance)
        return load(store, spec.run_id)
    import pandas as pd

    known = {**provenance, "seconds": trained.seconds}
    result = Result(spec, trained.weights, pd.DataFrame(trained.curve), {}, known, trained.snapshots)
    return replace(result, measures=measure(spec, result.module))


def train_spec(
    spec: Spec, device: str | torch.device = "cpu", on_step: OnStep | None = None, on_epoch: OnEpoch | None = None
) -> Trained:
    """task -> holdout -> sampling -> encoding -> decoder -> training."""
    latents = spec.sampling.sample(spec.task, spec.holdout, generator(spec.seed, "sampling"))
    codes = spec.encoding.encode(latents, spec.task.factors)
    images = spec.task.render(latents)
    inputs, targets = spec.decoder.pairs(codes, images)
    return train(build(spec), inputs, targets, spec.training, spec.seed, spec.penalties, device, on_step, on_epoch)


def build(spec: Spec) -> nn.Module:
    """The spec's module as it is before training, the same for the same seed."""
    with seeded(spec.seed, "initialisation"):
        return spec.decoder.build(spec.encoding.code_sizes(spec.task.factors), spec.task.image_shape)


def load(store: Store, run_id: str) -> Result:
    """A stored run, with measures that are missing or out of date made anew."""
    spec = store.spec(run_id)
    snapshots = {step: store.weights(run_id, step) for step in spec.training.snapshots}
    result = Result(spec, store.weights(run_id), store.curve(run_id), {}, store.provenance(run_id), snapshots)
    if store.measures(run_id, VERSIONS).keys() != VERSIONS.keys():
        for name, values in measure(spec, result.module).items():
            store.save_measures(run_id, name, VERSIONS[name], values)
    return replace(result, measures=store.measures(run_id))


def measure(spec: Spec, module: nn.Module) -> dict[str, dict[str, Any]]:
    """What every run is measured by: the error of drawn images and, for controls that read images, of codes."""
    parts = split(spec.task, spec.holdout)
    truth = spec.task.render(parts.latents)
    codes = spec.encoding.encode(parts.latents, spec.task.factors)
    drawer, reader = spec.decoder.drawer(module), spec.decoder.reader(module)
    values: dict[str, float | None] = {}
    if drawer is not None:
        values |= _drawing_error(spec.task, parts, truth, outputs(drawer, codes))
    if reader is not None:
        values |= _reading_error(spec, parts, codes, outputs(reader, truth))
    return {"error": values}


def _drawing_error(task: Task, parts: Split, truth: Tensor, images: Tensor) -> dict[str, float | None]:
    """Seen, held-out and blank error and, where the task tells positions, the share of images in place."""
    errors, blanks = mse(images, truth), mse(task.blank(len(truth)), truth)
    values = {
        "seen_mse": _mean(errors[~parts.mask]),
        "heldout_mse": _mean(errors[parts.mask]),
        "blank_mse": _mean(blanks[parts.mask] if parts.mask.any() else blanks),
    }
    if task.positions:
        columns = [column(task.factors, name) for name in task.positions]
        positions = task.locate(images)
        for name, mask in (("seen_accuracy", ~parts.mask), ("accuracy", parts.mask)):
            values[name] = position_accuracy(positions[mask], parts.latents[mask][:, columns])
    return values


def _reading_error(spec: Spec, parts: Split, codes: Tensor, read: Tensor) -> dict[str, float | None]:
    """Seen and held-out error of the codes, and the share whose nearest grid point is within a step of the truth."""
    errors = (read - codes).square().mean(1)
    latents = spec.encoding.decode(read, spec.task.factors)
    steps = [
        factor.difference(found, true).abs() / factor.step
        for factor, found, true in zip(spec.task.factors, latents.unbind(1), parts.latents.unbind(1), strict=True)
    ]
    placed = (torch.stack(steps) <= 1.001).all(0).double()
    return {
        "seen_code_mse": _mean(errors[~parts.mask]),
        "heldout_code_mse": _mean(errors[parts.mask]),
        "seen_code_accuracy": _mean(placed[~parts.mask]),
        "code_accuracy": _mean(placed[parts.mask]),
    }


@torch.no_grad()
def outputs(module: nn.Module, codes: torch.Tensor, chunk: int = 256) -> torch.Tensor:
    """The module's images for many codes, in bounded memory."""
    return torch.cat([module(part) for part in codes.split(chunk)])


def provenance_of(device: str, threads: int) -> dict[str, Any]:
    """What a run's numbers may depend on beyond its spec."""
    return {
        "composcope": composcope.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": threads,
        "device": device,
        "dtype": "float32",
    }


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def usable_device(name: str) -> torch.device:
    """The device, or BadInput that says why it cannot be used."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        return device
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device = {name!r} cannot be used here: {str(error).splitlines()[0]}") from None


def _mean(values: torch.Tensor) -> float | None:
    return values.double().mean().item() if len(values) else None
