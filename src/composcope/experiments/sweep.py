"""Many runs from one description: a base spec and lists to vary."""

import itertools
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from composcope.components import nearest
from composcope.errors import BadInput, RunFailed
from composcope.experiments.machine import using_threads
from composcope.experiments.run import train_spec
from composcope.experiments.spec import Spec, read_toml
from composcope.fastconv import Mode, using

# Networks whose step takes longer than this, in seconds, are timed over one step instead of ten.
SLOW_STEP = 0.05


class NoSuchEntry(BadInput):
    """A setting names an entry that a list does not have."""


@dataclass(frozen=True)
class Sweep:
    """Every combination of the listed values, put into the base spec.

    >>> base = {"task": {"kind": "bump", "size": 16}, "holdout": {"kind": "square", "lo": 4, "hi": 11},
    ...         "encoding": {"kind": "bump"}, "decoder": {"kind": "mlp"}}
    >>> [spec.decoder.depth for spec in Sweep(base, {"decoder.depth": [1, 2], "seed": [0, 1]}).specs()]
    [1, 1, 2, 2]
    """

    base: Mapping[str, Any]
    vary: Mapping[str, Sequence[Any]]

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """A file with a table [base], which is a spec, and a table [vary] of dotted names and lists."""
        data = read_toml(path)
        for key in data:
            if key not in ("base", "vary"):
                raise BadInput(f"unknown key {key!r}{nearest(key, ['base', 'vary'])}; a sweep has [base] and [vary]")
        base, vary = data.get("base"), data.get("vary", {})
        if not isinstance(base, dict) or not isinstance(vary, dict):
            raise BadInput("a sweep needs a table [base] with a spec in it, and a table [vary] of lists")
        for name, values in vary.items():
            if not isinstance(values, list) or not values:
                raise BadInput(f"vary.{name} = {values!r}: needs a list of values")
        return cls(base, vary)

    def specs(self) -> list[Spec]:
        """The specs in order, the first list varying slowest; combinations that give the same run appear once."""
        by_id = {}
        for values in itertools.product(*self.vary.values()):
            data: Mapping[str, Any] = self.base
            for name, value in zip(self.vary, values, strict=True):
                data = with_value(data, name, value)
            spec = Spec.from_dict(data)
            by_id[spec.run_id] = spec
        return list(by_id.values())


def with_value(data: Mapping[str, Any], name: str, value: Any, inside: str = "") -> dict[str, Any]:
    """A copy of nested tables with one dotted name set; None removes the name.

    >>> with_value({"decoder": {"kind": "cnn"}}, "decoder.depth", 6)
    {'decoder': {'kind': 'cnn', 'depth': 6}}
    """
    head, _, rest = name.partition(".")
    changed = dict(data)
    if rest:
        inner = changed.get(head, {})
        if isinstance(inner, list):
            changed[head] = _with_value_of_kind(inner, rest, value, f"{inside}{head}.")
            return changed
        if not isinstance(inner, Mapping):
            raise BadInput(f"{inside}{name}: {inside}{head} is {inner!r}, which has no fields to set")
        changed[head] = with_value(inner, rest, value, f"{inside}{head}.")
    elif value is None:
        changed.pop(head, None)
    else:
        changed[head] = value
    return changed


def _with_value_of_kind(entries: list[Any], name: str, value: Any, inside: str) -> list[Any]:
    """The list with a field set in its entries of a kind: `variance.weight` in those whose kind is variance."""
    kind, _, rest = name.partition(".")
    kinds = [entry.get("kind") if isinstance(entry, Mapping) else None for entry in entries]
    if kind not in kinds or not rest:
        raise NoSuchEntry(f"{inside}{name}: there is no {kind!r} in {inside.rstrip('.')}, which has {kinds}")
    return [
        with_value(entry, rest, value, f"{inside}{kind}.") if own == kind else entry
        for entry, own in zip(entries, kinds, strict=True)
    ]


def with_settings(data: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with `name=value` settings applied; values are read as TOML, or else as plain text.

    >>> with_settings({"decoder": {"kind": "cnn"}}, ["decoder.depth=6", "decoder.kind=mlp"])
    {'decoder': {'kind': 'mlp', 'depth': 6}}
    """
    changed = dict(data)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise BadInput(f"--set {setting!r}: write NAME=VALUE, as in --set decoder.depth=6")
        try:
            value = tomllib.loads(f"value = {text}")["value"] if text else None
        except tomllib.TOMLDecodeError:
            value = text
        changed = with_value(changed, name.strip(), value)
    return changed


def total_steps(spec: Spec) -> int:
    """Training steps that the run will take."""
    if spec.training.steps is not None:
        return spec.training.steps
    return spec.training.total_steps(spec.sampling.count(spec.task, spec.holdout))


def estimate_seconds(
    specs: Sequence[Spec], kernels: Mode = "auto", on_progress: Callable[[int, int], None] | None = None
) -> list[float]:
    """Each run's training time on one core, estimated by timing a few steps of each different network once."""
    cost: dict[object, float] = {}
    seconds = []
    for index, spec in enumerate(specs):
        network = (spec.decoder, spec.training.batch, spec.task.image_shape, spec.penalties)
        if network not in cost:
            with using_threads(1), using(kernels):
                cost[network] = _seconds_per_step(spec, 1)
                if cost[network] < SLOW_STEP:
                    cost[network] = _seconds_per_step(spec, 10)
        seconds.append(cost[network] * total_steps(spec))
        if on_progress is not None:
            on_progress(index + 1, len(specs))
    return seconds


def _seconds_per_step(spec: Spec, steps: int) -> float:
    """The mean CPU time of this many steps, after one to warm up; 0 for a run that diverges within them."""
    trial = replace(spec, training=replace(spec.training, epochs=None, steps=1 + steps, snapshots=()))
    marks: list[float] = []
    try:
        train_spec(trial, on_step=lambda step, module: marks.append(time.process_time()))
    except RunFailed:
        return 0.0
    return (marks[-1] - marks[0]) / steps
