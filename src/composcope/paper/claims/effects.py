"""Effects that many claims share: a number of every run, by seed, and differences between kinds of runs."""

from collections.abc import Callable

from composcope.paper.evidence import Evidence, Run
from composcope.paper.preset import Preset

Effect = Callable[[Evidence], list[float]]
Number = Callable[[Run], float | None]
Name = str | Callable[[Preset], str]
"""What a kind of run is called in the plan, perhaps depending on the preset."""

EQUAL = "0 is no difference"


def of_runs(name: Name, number: Number) -> Effect:
    """One number of every run of that name."""

    def effect(evidence: Evidence) -> list[float]:
        found = map(number, evidence[_called(name, evidence)])
        return [value for value in found if value is not None]

    return effect


def by_seed(evidence: Evidence, number: Number, whole: bool = True) -> dict[int, dict[str, float]]:
    """One number of every run, by seed and name; `whole` keeps only seeds that have all names."""
    table: dict[int, dict[str, float]] = {}
    for name, runs in evidence.items():
        for run in runs:
            found = number(run)
            if found is not None:
                table.setdefault(run.spec.seed, {})[name] = found
    return {seed: row for seed, row in sorted(table.items()) if not whole or len(row) == len(evidence)}


def difference(more: Name, less: Name, number: Number) -> Effect:
    """One name's number less the other's, in every seed that has both."""

    def effect(evidence: Evidence) -> list[float]:
        first, second = _called(more, evidence), _called(less, evidence)
        rows = by_seed(evidence, number, whole=False).values()
        return [row[first] - row[second] for row in rows if first in row and second in row]

    return effect


def _called(name: Name, evidence: Evidence) -> str:
    return name if isinstance(name, str) else name(evidence.preset)
