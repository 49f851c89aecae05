"""What runs cost before they are done: training steps, and seconds from timing a few of them."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from composcope.diagnosis.points import MAX_PAIRED
from composcope.errors import RunFailed
from composcope.fastconv import Mode, using
from composcope.runs.machine import using_threads
from composcope.runs.pipeline import train_spec
from composcope.runs.spec import Spec
from composcope.store.store import Store

# A diagnosis takes about as long as this many training steps, at all sizes tried.
DIAGNOSIS_STEPS = 300
# A diagnosis compares all pairs of points in every layer. Of a small network that is most of it, whatever a step
# takes: this many seconds times the cube of the number of points (5 s for an MLP of five layers and 784 points).
PAIRS_SECONDS = 1e-8

# Networks whose step takes longer than this, in seconds, are timed over one step instead of ten.
SLOW_STEP = 0.05


def missing(spec: Spec, store: Store, diagnosed: Collection[str] = ()) -> bool:
    """Whether the run still has to be trained, or diagnosed."""
    if not store.complete(spec.run_id):
        return True
    return spec.run_id in diagnosed and not store.run_folder(spec.run_id).has_diagnosis()


def step_cost(spec: Spec, costs: Mapping[str, float] | None) -> float:
    """The work of one training step."""
    return costs[spec.run_id] / spec.total_steps if costs else 1.0


def workload(
    specs: Iterable[Spec], store: Store, diagnosed: Collection[str] = (), costs: Mapping[str, float] | None = None
) -> float:
    """The work that `run_all` will do, in the units of its `on_progress`: steps, or seconds if `costs` are given."""
    total = 0.0
    for spec in specs:
        total += 0 if store.has(spec.run_id) else spec.total_steps * step_cost(spec, costs)
        total += _diagnosis_cost(spec, costs) if spec.run_id in diagnosed else 0
    return total


def _diagnosis_cost(spec: Spec, costs: Mapping[str, float] | None) -> float:
    cost = DIAGNOSIS_STEPS * step_cost(spec, costs)
    if costs is None:
        return cost
    points = min(math.prod(factor.size for factor in spec.task.factors), MAX_PAIRED)
    return max(cost, PAIRS_SECONDS * points**3)


def estimated_costs(
    specs: Sequence[Spec], kernels: Mode = "auto", on_progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, float]:
    """Each run's seconds on one core, by id, from timing a few steps of each network and batch size once."""
    step_seconds: dict[object, float] = {}
    samples: dict[object, int] = {}
    costs = {}
    for index, spec in enumerate(specs):
        data = (spec.sampling, spec.task, spec.holdout)
        if data not in samples:
            samples[data] = spec.sampling.count(spec.task, spec.holdout)
        step = (spec.decoder, min(spec.training.batch, samples[data]), spec.task.image_shape, spec.penalties)
        if step not in step_seconds:
            with using_threads(1), using(kernels):
                step_seconds[step] = _seconds_per_step(spec, 1)
                if step_seconds[step] < SLOW_STEP:
                    step_seconds[step] = _seconds_per_step(spec, 10)
        costs[spec.run_id] = step_seconds[step] * spec.total_steps
        on_progress(index + 1, len(specs))
    return costs


def _seconds_per_step(spec: Spec, steps: int) -> float:
    """The mean CPU time of this many steps, after one to warm up; 0 for a run that diverges within them."""
    trial = replace(spec, training=replace(spec.training, epochs=None, steps=1 + steps, snapshots=()))
    marks: list[float] = []
    try:
        train_spec(trial, on_step=lambda step, module: marks.append(time.process_time()))
    except RunFailed:
        return 0.0
    return (marks[-1] - marks[0]) / steps
