"""Doing one run: train what a spec describes, and store it."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from composcope.errors import BadInput, RunFailed
from composcope.fastconv import Mode, used, using
from composcope.holdouts import split
from composcope.penalties import TrainingData
from composcope.randomness import generator
from composcope.runs.run import Run, build, load
from composcope.runs.spec import Spec, training_latents, warn_unless_composition
from composcope.store.store import Store
from composcope.tasks.base import Images
from composcope.training import OnEpoch, OnStep, Trained, train
from composcope.workers.machine import provenance_of, usable_device, using_threads

log = logging.getLogger(__name__)

BUSY_PAUSE = 0.5  # seconds until a run that another process is doing is looked at again


def run(
    spec: Spec,
    store: Store | None = None,
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
    store: Store | None,
    device: str,
    threads: int,
    kernels: Mode,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
    about: Mapping[str, Any] | None = None,
) -> Run:
    """As `run`, by a process that holds the run's lease already."""
    usable = usable_device(device)
    if store is not None:
        if store.has(spec.run_id):
            return load(store, spec.run_id)
        store.prepare(spec.run_id)
    with using(kernels):
        provenance = {**provenance_of(device, threads), "split": str(spec.certificate), **(about or {})}
    log.info("run %s: training on %s", spec.run_id, device)
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
        return Run(spec, trained=trained, provenance={**provenance, **trained.times})
    store.save(spec, trained, provenance)
    return load(store, spec.run_id)


def train_spec(
    spec: Spec, device: str | torch.device = "cpu", on_step: OnStep | None = None, on_epoch: OnEpoch | None = None
) -> Trained:
    """task -> holdout -> sampling -> encoding -> decoder -> training."""
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    codes = spec.encoding.encode(latents, spec.task.factors)
    images = spec.task.render(latents)
    inputs, targets = spec.decoder.pairs(codes, images)
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
        data=_training_data(spec, codes, images) if spec.penalties else None,
    )


def _training_data(spec: Spec, codes: Tensor, images: Images) -> TrainingData:
    """What penalties may know: the training set and the codes of the withheld combinations, not their images."""
    factors = spec.task.factors
    heldout = spec.encoding.encode(split(spec.task, spec.holdout).heldout, factors)
    rng = generator(spec.seed, "penalties")
    return TrainingData(codes, images, heldout, spec.encoding.code_sizes(factors), rng)
