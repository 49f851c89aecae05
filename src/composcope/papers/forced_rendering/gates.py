"""Which seeds can answer: those whose runs learned what they were trained on. The others are excluded and counted."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

from jaxtyping import Float, Int
from torch import Tensor

from composcope.factors import Latents
from composcope.measures.error import LEARNED, mse
from composcope.runs.run import Run
from composcope.runs.spec import training_latents
from composcope.study.claim import Effect, Excluded, Value, defined
from composcope.study.effects import KeyOf, Number
from composcope.study.evidence import Evidence
from composcope.study.plan import Key, Plan
from composcope.study.preset import Preset

UNLEARNED = f"did not learn its training images (MSE / blank MSE above {LEARNED:g})"


# Many parts of claims ask the same runs.
_shares: WeakKeyDictionary[Run, float] = WeakKeyDictionary()


def training_share(run: Run) -> float:
    """MSE on the training images / blank MSE; stripes are training images, though they are no combinations."""
    if run not in _shares:
        _shares[run] = _training_share(run)
    return _shares[run]


def _training_share(run: Run) -> float:
    spec = run.spec
    latents, counts = distinct(training_latents(spec.task, spec.holdout, spec.sampling, spec.seed))
    targets = spec.task.render(latents)
    blank = (counts * mse(spec.task.blank(len(targets)), targets)).sum().item()
    return (counts * mse(run.draw(latents), targets)).sum().item() / blank


def distinct(latents: Latents) -> tuple[Float[Tensor, "distinct factors"], Int[Tensor, "distinct"]]:
    """The different rows, and how often each occurs; two rows with the same factor absent (NaN) can be equal.

    >>> distinct(Tensor([[1.0, 2.0], [math.nan, 3.0], [1.0, 2.0], [math.nan, 3.0], [1.0, 2.0]]))
    (tensor([[nan, 3.],
            [1., 2.]]), tensor([2, 3]))
    """
    comparable = latents.nan_to_num(nan=-math.inf)
    rows, counts = comparable.unique(dim=0, return_counts=True)
    return rows.masked_fill(rows.isinf(), math.nan), counts


def once_learned(number: Number) -> Callable[[Run], float | Excluded | None]:
    """The number of a run that learned its training images; any other run is excluded."""
    return lambda run: number(run) if training_share(run) <= LEARNED else Excluded(UNLEARNED)


def learned(effect: Effect, *keys: KeyOf | Callable[[Preset], Plan]) -> Effect:
    """The effect, but seeds with a run under one of the keys that did not learn, or without a value, are excluded.

    - `keys`: keys, functions that give one for a preset, or plans, which stand for all of their keys.
    """

    def gated(evidence: Evidence) -> dict[int, Value]:
        runs = [run for key in _expanded(keys, evidence.preset) for run in evidence[key]]
        values = effect(evidence)
        failed = {run.spec.seed for run in runs if run.spec.seed in values and training_share(run) > LEARNED}
        return {seed: Excluded(UNLEARNED) if seed in failed else defined(value) for seed, value in values.items()}

    return gated


def _expanded(keys: Sequence[KeyOf | Callable[[Preset], Plan]], preset: Preset) -> Iterator[Key]:
    for key in keys:
        given = key(preset) if callable(key) else key
        yield from given if isinstance(given, Mapping) else [given]
