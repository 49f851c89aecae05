"""Doing one run: train what a spec describes, measure it, and store it."""

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import torch

from composcope.errors import BadInput, RunFailed
from composcope.fastconv import Mode, used, using
from composcope.holdouts import split
from composcope.penalties import TrainingData
from composcope.randomness import generator
from composcope.runs.machine import provenance_of, usable_device, using_threads
from composcope.runs.run import InMemory, Run, build
from composcope.runs.spec import Spec, training_latents, warn_unless_composition
from composcope.training import OnEpoch, OnStep, Trained, train

log = logging.getLogger(__name__)

BUSY_PAUSE = 0.5  # seconds until a run that another process is doing is looked at again


def train_spec(
    spec: Spec, device: str | torch.device = "cpu", on_step: OnStep | None = None, on_epoch: OnEpoch | None = None
) -> Trained:
    """The walk of one run: task -> holdout -> sampling -> encoding -> decoder -> training."""
    factors = spec.task.factors
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    codes = spec.encoding.encode(latents, factors)
    images = spec.task.render(latents)
    inputs, targets = spec.decoder.pairs(codes, images)
    data = None
    if spec.penalties:  # which may know the codes of held-out combinations, but not their images
        heldout = spec.encoding.encode(split(spec.task, spec.holdout).heldout, factors)
        rng = generator(spec.seed, "penalties")
        data = TrainingData(codes, images, heldout, spec.encoding.code_sizes(factors), rng)
    return train(
        build(spec),
        inputs,
        targets,
        spec.training,
        spec.seed,
        spec.penalties,
        device,
        on_step,
        on_epoch,
        loss=spec.decoder.loss if spec.decoder.has_own_loss else None,
        data=data,
    )


@runtime_checkable
class RunStore(Protocol):
    """Where finished runs are kept: a `Store`."""

    def has(self, run_id: str) -> bool: ...
    def lease(self, run_id: str) -> AbstractContextManager[bool]: ...
    def prepare(self, run_id: str | None = None) -> None: ...
    def save(self, spec: Spec, trained: Trained, provenance: Mapping[str, Any]) -> Run: ...
    def save_failure(self, spec: Spec, reason: str, provenance: Mapping[str, Any]) -> None: ...
    def __getitem__(self, run_id: str) -> Run: ...


def run(
    spec: Spec,
    store: RunStore | None = None,
    device: str = "cpu",
    threads: int = 1,
    kernels: Mode = "auto",
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
    about: Mapping[str, Any] | None = None,
) -> Run:
    """Train what the spec describes, or load it if the store has it; a failure is recorded and raised as RunFailed.

    A run that another process is doing is waited for.

    One thread by default, so that a run by itself and the same run in a sweep give the same bytes. `kernels="torch"`
    trains with PyTorch's convolutions only. `about` is added to the provenance, for example what a study claims.
    """
    if threads < 1 or kernels not in ("auto", "torch"):
        raise BadInput(f"threads = {threads}, kernels = {kernels!r}: at least 1, and 'auto' or 'torch'")
    warn_unless_composition(spec)
    usable_device(device)
    options = (device, threads, kernels, on_step, on_epoch, about)
    if store is None or store.has(spec.run_id):
        return run_with_lease(spec, store, *options)
    waiting = False
    while True:
        with store.lease(spec.run_id) as mine:
            if mine:
                return run_with_lease(spec, store, *options)
        if not waiting:
            log.warning("run %s: another process is doing it; waiting for that", spec.run_id)
            waiting = True
        time.sleep(BUSY_PAUSE)


def run_with_lease(
    spec: Spec,
    store: RunStore | None,
    device: str,
    threads: int,
    kernels: Mode,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
    about: Mapping[str, Any] | None = None,
) -> Run:
    """As `run`, by a process that holds the run's lease already."""
    usable = usable_device(device)
    if store is not None and store.has(spec.run_id):
        return _measured(store[spec.run_id])
    if store is not None:
        store.prepare(spec.run_id)
    log.info("run %s: training on %s", spec.run_id, device)
    with using(kernels):
        provenance = {**provenance_of(device, threads), "split": str(spec.certificate), **(about or {})}
    try:
        before = used()
        with using_threads(threads), using(kernels):
            trained = train_spec(spec, usable, on_step, on_epoch)
        provenance["kernels"] = dict(used() - before)
    except Exception as error:
        reason = str(error) if isinstance(error, RunFailed) else f"{type(error).__name__}: {error}"
        if store is not None:
            store.save_failure(spec, reason, provenance)
        raise RunFailed(f"run {spec.run_id}: {reason}") from error
    if store is None:
        return Run(spec, InMemory(trained, provenance))
    # Stored before it is measured: measuring may fail, and training took longer.
    return _measured(store.save(spec, trained, provenance))


def _measured(run: Run) -> Run:
    _ = run.measures
    return run
