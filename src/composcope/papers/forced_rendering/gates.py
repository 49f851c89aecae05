"""Which seeds can answer: those whose runs learned what they were trained on. The others are excluded and counted."""

from weakref import WeakKeyDictionary

from composcope.experiments.run import Run
from composcope.measures.error import LEARNED, mse
from composcope.randomness import generator
from composcope.study.claim import Effect, Excluded, Value, defined
from composcope.study.effects import KeyOf
from composcope.study.evidence import Evidence

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
    latents = spec.sampling.sample(spec.task, spec.holdout, generator(spec.seed, "sampling"))
    targets = spec.task.render(latents)
    blank = mse(spec.task.blank(len(targets)), targets).mean().item()
    return mse(run.draw(latents), targets).mean().item() / blank


def learned(effect: Effect, *keys: KeyOf) -> Effect:
    """The effect, but seeds with a run under one of the keys that did not learn, or without a value, are excluded."""

    def gated(evidence: Evidence) -> dict[int, Value]:
        runs = [run for key in keys for run in evidence[key(evidence.preset) if callable(key) else key]]
        values = effect(evidence)
        failed = {run.spec.seed for run in runs if run.spec.seed in values and training_share(run) > LEARNED}
        return {seed: Excluded(UNLEARNED) if seed in failed else defined(value) for seed, value in values.items()}

    return gated
