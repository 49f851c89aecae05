"""Which runs a figure or a claim needs: specs by key, one per seed."""

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress

from composcope.runs.spec import Spec
from composcope.runs.sweep import NoSuchEntry, with_settings

Key = Hashable
"""What the runs of a plan have in common: a word, or a frozen value with a `label` for readers."""

Plan = Mapping[Key, tuple[Spec, ...]]
"""The runs that a figure or a claim needs, by key; one spec per seed."""


def label_of(key: Key) -> str:
    """What a reader sees of a key.

    >>> label_of("bump")
    'bump'
    """
    return str(getattr(key, "label", key))


def specs_of(plan: Plan) -> dict[str, Spec]:
    """Every run of a plan, by id."""
    return {spec.run_id: spec for specs in plan.values() for spec in specs}


def varied(plan: Plan, settings: Sequence[str]) -> Plan:
    """The plan with `name=value` settings applied to every spec; specs that become the same run appear once.

    A setting of one penalty, `penalties.variance.weight=0.1`, changes the runs that have it.
    """
    if not settings:
        return plan
    return {
        key: tuple(specs_of({key: tuple(_changed(spec, settings) for spec in specs)}).values())
        for key, specs in plan.items()
    }


def _changed(spec: Spec, settings: Sequence[str]) -> Spec:
    data = spec.to_dict()
    for setting in settings:
        with suppress(NoSuchEntry):  # the run has no such penalty
            data = with_settings(data, [setting])
    return Spec.from_dict(data)
