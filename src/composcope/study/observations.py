"""Effects by claim, part and seed, as plain data: what remains of the evidence when the runs are gone.

`evidence.json` holds them beside the ledger. The files of several machines can be judged together, without weights.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from composcope.errors import BadInput, RunFailed
from composcope.runs import DIAGNOSIS_VERSION
from composcope.runs.run import Run
from composcope.study.claim import Bounds, Claim, Excluded, Part, Value, defined
from composcope.study.evidence import Evidence

FORMAT = 1
PROVENANCE = ("cpu", "processor", "lanes", "kernels", "torch", "composcope", "commit", "diagnosis")
"""What a value may depend on beyond its specs; `diagnosis` is the version of the stored diagnosis."""
MACHINE = ("cpu", "processor", "lanes")


@dataclass(frozen=True)
class Observation:
    """One effect of one seed, or of one condition by its place in the plan.

    - `version`: of the claim; `registered`: whether the claim was registered in this form before the runs were trained.
    - `runs`: the ids of the seed's runs; `provenance`: the machine and versions they came from.
    """

    claim: int
    version: int
    part: str
    seed: int
    value: Value
    registered: bool
    runs: tuple[str, ...] = ()
    provenance: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Observations:
    """All observations of one study at one preset, with the settings that were changed in its runs."""

    study: str
    preset: str
    settings: tuple[str, ...]
    observations: tuple[Observation, ...]

    def of(self, claim: Claim, part: str) -> dict[int, Observation]:
        """By seed; only those of the claim's present version. Several of one seed are joined into one."""
        by_seed: dict[int, list[Observation]] = {}
        for observation in self.observations:
            if (observation.claim, observation.version, observation.part) == (claim.number, claim.version, part):
                by_seed.setdefault(observation.seed, []).append(observation)
        return {seed: _joined(group) for seed, group in sorted(by_seed.items())}

    def machines(self) -> tuple[str, ...]:
        """The distinct processors that the values come from, each with the kernels, versions and commits used there."""
        pairs: dict[tuple[str | None, ...], list[tuple[str, str]]] = {}
        for observation in self.observations:
            own = dict(observation.provenance)
            pairs.setdefault(tuple(map(own.get, MACHINE)), []).extend(observation.provenance)
        texts = (", ".join(f"{name} {value}" for name, value in _joined_provenance(own)) for own in pairs.values())
        return tuple(sorted(text for text in texts if text))

    def outdated(self, claims: Iterable[Claim]) -> dict[int, int]:
        """How many values belong to another version of their claim and do not count, by the claim's number."""
        versions = {claim.number: claim.version for claim in claims}
        return Counter(
            each.claim for each in self.observations if versions.get(each.claim, each.version) != each.version
        )


def _joined(group: Sequence[Observation]) -> Observation:
    """Values of the same seed from different machines are not independent samples of training, so they become one.

    Of the same runs on the same kind of processor those of the newest diagnosis count.
    """
    newest: dict[Any, int] = {}
    for each in group:
        newest[_sample(each)] = max(newest.get(_sample(each), 0), _diagnosis(each))
    group = [each for each in group if _diagnosis(each) == newest[_sample(each)]]
    if len(group) == 1:
        return replace(group[0], value=defined(group[0].value))
    return replace(
        group[0],
        value=_joined_value([defined(observation.value) for observation in group]),
        registered=all(observation.registered for observation in group),
        runs=tuple(sorted({run for observation in group for run in observation.runs})),
        provenance=_joined_provenance(pair for observation in group for pair in observation.provenance),
    )


def _sample(observation: Observation) -> Any:
    """The runs and the machine they were made on."""
    machine = [pair for pair in observation.provenance if pair[0] in (*MACHINE, "kernels")]
    return observation.runs, tuple(machine)


def _diagnosis(observation: Observation) -> int:
    """The version of the diagnosis that the value was read from; 0 if from none."""
    versions = dict(observation.provenance).get("diagnosis", "").split(", ")
    return max((int(version) for version in versions if version.isdecimal()), default=0)


def _joined_value(values: Sequence[Value]) -> Value:
    """The mean of the values, of which a number counts as bounds with equal ends; exclusions only join each other.

    >>> _joined_value([Bounds(2.0, 6.0), 3.0, Excluded("has not learned")])
    Bounds(low=2.5, high=4.5)
    """
    ends = [
        (value.low, value.high) if isinstance(value, Bounds) else (value, value)
        for value in values
        if not isinstance(value, Excluded)
    ]
    if not ends:
        return Excluded("; ".join(sorted({value.reason for value in values if isinstance(value, Excluded)})))
    low, high = (fmean(column) for column in zip(*ends, strict=True))  # fmean does not depend on the order
    return low if low == high else Bounds(low, high)


def _joined_provenance(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The distinct values of every name, sorted."""
    gathered: dict[str, set[str]] = {name: set() for name in PROVENANCE}
    for name, values in pairs:
        gathered.setdefault(name, set()).update(values.split(", "))
    return tuple((name, ", ".join(sorted(values))) for name, values in gathered.items() if values)


def observe(claim: Claim, evidence: Evidence) -> list[Observation]:
    """Every part's effect for every seed, or condition, that the evidence has."""
    by_seed: dict[int, list[Run]] = {}
    for group in evidence.values():
        for run in group:
            by_seed.setdefault(run.spec.seed, []).append(run)
    by_condition = {place: list(group) for place, group in enumerate(evidence.values())}
    effects = [(part, _effect(part, evidence)) for part in claim.parts]
    observations = []
    for part, values in effects:
        for place, value in sorted(values.items()):
            runs = (by_condition if part.by_condition else by_seed).get(place, [])
            observations.append(
                Observation(
                    claim.number,
                    claim.version,
                    part.measure,
                    place,
                    defined(value if isinstance(value, Bounds | Excluded) else float(value)),
                    part.exact or all(_registered(claim, run.provenance) for run in runs),
                    tuple(run.run_id for run in runs),
                    _provenance(runs),
                )
            )
    return observations


def _effect(part: Part, evidence: Evidence) -> Mapping[int, Value]:
    """The part's value for every seed; seeds of which a run failed or is damaged are excluded."""
    values: Mapping[int, Value] = {}
    try:
        values = part.values(evidence)
    except RunFailed:  # a damaged run
        evidence = evidence.without_damaged()
        with suppress(RunFailed):  # something else; the table of runs says what
            values = part.values(evidence)
    if part.exact or part.effect is None or part.by_condition:
        return values
    return {**{seed: Excluded(reason) for seed, reason in evidence.failed.items()}, **values}


def _registered(claim: Claim, provenance: Mapping[str, Any]) -> bool:
    """Whether the run was trained when the claim already had its present form."""
    hashes = provenance.get("registration")
    return isinstance(hashes, Mapping) and hashes.get(str(claim.number)) == claim.registration


def _provenance(runs: Iterable[Run]) -> tuple[tuple[str, str], ...]:
    """The distinct values of what the effect may depend on, over the seed's runs."""
    pairs = []
    for run in runs:
        provenance = {**run.provenance, "diagnosis": _diagnosis_version(run)}
        for name in PROVENANCE:
            value = provenance.get(name)
            pairs += [(name, str(key)) for key in (value if isinstance(value, Mapping) else [value]) if key is not None]
    return _joined_provenance(pairs)


def _diagnosis_version(run: Run) -> int | None:
    """The version of the run's stored diagnosis; None if it has none that is up to date and sound."""
    with suppress(RunFailed):
        if run.artifacts.has_diagnosis():
            return DIAGNOSIS_VERSION
    return None


def to_data(observed: Observations) -> dict[str, Any]:
    """As plain data, for evidence.json."""
    return {
        "format": FORMAT,
        "study": observed.study,
        "preset": observed.preset,
        "settings": list(observed.settings),
        "observations": [
            {
                "claim": each.claim,
                "version": each.version,
                "part": each.part,
                "seed": each.seed,
                "value": _plain(each.value),
                "registered": each.registered,
                "runs": list(each.runs),
                "provenance": dict(each.provenance),
            }
            for each in observed.observations
        ],
    }


def read_evidence(paths: Sequence[str | os.PathLike[str]]) -> Observations:
    """The union of several evidence files of the same study, preset and settings; what several have is kept once."""
    files = [_read(Path(path)) for path in paths]
    first = files[0]
    for path, other in zip(paths, files, strict=True):
        if (other.study, other.preset, other.settings) != (first.study, first.preset, first.settings):
            raise BadInput(
                f"{str(path)!r} is evidence of {_about(other)}; {str(paths[0])!r} of {_about(first)}: judge them apart"
            )
    union = dict.fromkeys(observation for file in files for observation in file.observations)
    return Observations(first.study, first.preset, first.settings, tuple(union))


def _about(observed: Observations) -> str:
    return " ".join([f"{observed.study}, preset {observed.preset}", *observed.settings])


def _read(path: Path) -> Observations:
    observed = _parse(path)
    if observed is None:
        raise BadInput(f"{str(path)!r} has a newer format than {FORMAT}, which this composcope reads: upgrade it")
    return observed


def _parse(path: Path) -> Observations | None:
    """The file's observations; None if its format is newer."""
    try:
        data = json.loads(path.read_bytes())
        newer = data["format"] > FORMAT
        return (
            None
            if newer
            else Observations(
                str(data["study"]),
                str(data["preset"]),
                tuple(str(setting) for setting in data["settings"]),
                tuple(_observation(row) for row in data["observations"]),
            )
        )
    except FileNotFoundError:
        raise BadInput(f"file not found: {str(path)!r}") from None
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(f"{str(path)!r} is not an evidence file that composcope wrote") from None


def _observation(row: Mapping[str, Any]) -> Observation:
    return Observation(
        int(row["claim"]),
        int(row["version"]),
        str(row["part"]),
        int(row["seed"]),
        _value(row["value"]),
        bool(row["registered"]),
        tuple(str(run) for run in row["runs"]),
        tuple((str(name), str(value)) for name, value in row["provenance"].items()),
    )


def _plain(value: Value) -> Any:
    """JSON has no infinity: an open bound is null."""
    if isinstance(value, Bounds):
        return {"low": _finite(value.low), "high": _finite(value.high)}
    return {"excluded": value.reason} if isinstance(value, Excluded) else value


def _finite(value: float) -> float | None:
    return None if value in (float("inf"), float("-inf")) else value


def _value(data: Any) -> Value:
    if isinstance(data, Mapping):
        if "excluded" in data:
            return Excluded(str(data["excluded"]))
        low, high = data["low"], data["high"]
        return Bounds(float("-inf") if low is None else float(low), float("inf") if high is None else float(high))
    return float(data)
