"""How claims are judged: from observations, one per seed, to outcomes."""

from dataclasses import dataclass, replace

from composcope.display import counted
from composcope.study.claim import Bounds, Claim, Excluded, Part
from composcope.study.observations import Observation, Observations
from composcope.study.plan import AUTHORS_SETTING, Preset
from composcope.study.statistics import LEVEL, Inference, certain_median, holm, infer, sign_test

MIN_SEEDS = 5  # with a value or bounds
MIN_SIGNS = 6  # for a sign test: with fewer its p-value is above 0.025 even if all agree
NO_RUN = "no eligible run"
UNDETERMINED, NOT_RUN = "undetermined", "not run"


@dataclass(frozen=True)
class PartJudgement:
    """The result for one inequality.

    - `effect`, `low`, `high`: the mean effect and its 95 % t-interval; `p`, `p_opposite`: one-sided p-values of the
      claimed side and of the other; `p_against`: the latter after Holm's correction over the primary statement, which
      is what can contradict it (of a secondary part, uncorrected); `method`: which test.
    - `values`: by seed, in the order of `seeds`; `censored`: seeds of which only bounds are known; `excluded`: seeds
      that cannot answer, with the reason.
    - `holds`: True, False, or None if undetermined. `registered`: whether the part was registered before its runs.
    """

    measure: str
    relation: str
    threshold: float
    reason: str
    effect: float | None
    low: float | None
    high: float | None
    p: float
    p_opposite: float
    p_against: float
    method: str
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    censored: dict[int, tuple[float, float]]
    excluded: dict[int, str]
    holds: bool | None
    registered: bool

    @property
    def claimed(self) -> str:
        words = {"within": "within ±", "differs": "differs from "}
        return f"{words.get(self.relation, f'{self.relation} ')}{self.threshold:g}"

    @property
    def outcome(self) -> str:
        return {True: "holds", False: "does not hold", None: UNDETERMINED}[self.holds]

    @property
    def count(self) -> int:
        """Seeds with a value or bounds."""
        return len(self.values) + len(self.censored)

    @property
    def tried(self) -> int:
        """Seeds with runs, excluded ones included."""
        return self.count + len(self.excluded)

    @property
    def shortage(self) -> str:
        """Why there are too few seeds for an outcome; empty if there are enough, or none was tried."""
        if self.method == "definition" or not self.tried:
            return ""
        needed = MIN_SIGNS if self.method == "sign test" else MIN_SEEDS
        if self.count >= needed:
            return ""
        value = " with a value" if self.excluded else ""
        return f"{counted(self.count, 'seed')}{value}; {needed} are needed"


@dataclass(frozen=True)
class Judgement:
    """A claim's outcome and its parts.

    - `label`: what the runs can show. `outcome`: "reproduced", "not reproduced" or "undetermined" at the authors'
      setting; elsewhere "seen at 16x16" and the like, since only the authors' setting can contradict the claim; "not
      run" if no run says anything about the primary statement.
    - `holds`: the primary statement: True, False or None. `qualification`: which secondary parts do not hold.
    """

    number: int
    version: int
    statement: str
    source: str
    figures: tuple[str, ...]
    label: str
    outcome: str
    holds: bool | None
    qualification: str
    note: str
    seeds: int
    primary: tuple[PartJudgement, ...]
    secondary: tuple[PartJudgement, ...]

    @property
    def parts(self) -> tuple[PartJudgement, ...]:
        return (*self.primary, *self.secondary)


def judge(claim: Claim, observed: Observations, preset: Preset) -> Judgement:
    """The primary statement decides: it holds if every inequality does, it does not if one clearly does not.

    Holds: every p < 0.025, an intersection-union test, which needs no correction. Does not hold: some opposite
    p < 0.025 after Holm's correction over the statement's inequalities. Otherwise, and with too few seeds, it is
    undetermined.
    """
    measured = [_measure_part(part, observed.of(claim, part.measure)) for part in claim.primary]
    against = holm([1.0 if part.shortage else part.p_opposite for part in measured])
    primary = [_decide(part, p_against) for part, p_against in zip(measured, against, strict=True)]
    secondary = [_measure_part(part, observed.of(claim, part.measure)) for part in claim.secondary]
    secondary = [_decide(part, part.p_opposite) for part in secondary]
    holds: bool | None = None
    if primary and all(part.holds for part in primary):
        holds = True
    elif any(part.holds is False for part in primary):
        holds = False
    label = "this variant" if observed.settings else preset.label_of(claim.number)
    return Judgement(
        claim.number,
        claim.version,
        claim.statement,
        claim.source,
        claim.figures,
        label,
        outcome_text(holds, label) if any(part.tried for part in primary) else NOT_RUN,
        holds,
        _qualification(holds, secondary),
        claim.note,
        min((part.count for part in primary), default=0),
        tuple(primary),
        tuple(secondary),
    )


def outcome_text(holds: bool | None, label: str) -> str:
    """The outcome in words: only runs at the authors' setting can contradict a claim.

    >>> outcome_text(False, "16x16"), outcome_text(True, AUTHORS_SETTING)
    ('not seen at 16x16', 'reproduced')
    """
    if holds is None:
        return UNDETERMINED
    if label == AUTHORS_SETTING:
        return "reproduced" if holds else "not reproduced"
    return f"{'seen' if holds else 'not seen'} at {label}"


def _qualification(holds: bool | None, secondary: list[PartJudgement]) -> str:
    failing = [part.measure for part in secondary if part.holds is False]
    if not failing:
        return ""
    these = "Holds as stated, but these" if holds else "These"
    return f"{these} secondary parts do not hold: {'; '.join(failing)}."


def _measure_part(part: Part, observations: dict[int, Observation]) -> PartJudgement:
    """What the observations say of one inequality, before it is decided."""
    values = {s: o.value for s, o in observations.items() if isinstance(o.value, float)}
    censored = {s: (o.value.low, o.value.high) for s, o in observations.items() if isinstance(o.value, Bounds)}
    excluded = {s: o.value.reason for s, o in observations.items() if isinstance(o.value, Excluded)}
    inferred = _infer(part, list(values.values()), list(censored.values()))
    return PartJudgement(
        part.measure,
        part.relation,
        part.threshold,
        part.reason,
        inferred.mean,
        inferred.low,
        inferred.high,
        inferred.p,
        inferred.p_opposite,
        1.0,
        inferred.method,
        tuple(values),
        tuple(values.values()),
        censored,
        excluded,
        None,
        all(observation.registered for observation in observations.values()),
    )


def _decide(part: PartJudgement, p_against: float) -> PartJudgement:
    holds = None
    if not part.shortage:
        holds = True if part.p < LEVEL else False if p_against < LEVEL else None
    return replace(part, p_against=p_against, holds=holds)


def _infer(part: Part, values: list[float], censored: list[tuple[float, float]]) -> Inference:
    """A t-test or an equivalence test; a sign test as soon as one seed is only known by its bounds."""
    if not censored:
        return infer(values, part.relation, part.threshold, part.exact)
    sides = [_side(part, value, value) for value in values] + [_side(part, *bounds) for bounds in censored]
    # A seed whose bounds straddle the threshold counts against both sides.
    unknown = sides.count(None)
    p, _ = sign_test(sides.count(True), sides.count(False) + unknown)
    opposite, _ = sign_test(sides.count(False), sides.count(True) + unknown)
    bounds = [(value, value) for value in values] + censored
    return Inference(certain_median(bounds), None, None, p, opposite, "sign test")


def _side(part: Part, low: float, high: float) -> bool | None:
    """Whether the effect is on the claimed side; None if its bounds do not tell."""
    if part.relation == "within":
        inside = -part.threshold < low and high < part.threshold
        return True if inside else False if low >= part.threshold or high <= -part.threshold else None
    if low == high == part.threshold:
        return None
    if part.relation == "differs":
        return True if part.threshold < low or high < part.threshold else None
    if part.relation == ">":
        return True if low > part.threshold else False if high <= part.threshold else None
    return True if high < part.threshold else False if low >= part.threshold else None
