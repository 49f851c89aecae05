"""Claims judged from made-up evidence, without provenance."""

from composcope.study.claim import Claim, Value
from composcope.study.evidence import Evidence
from composcope.study.judging import Judgement, judge
from composcope.study.observations import Observation, Observations
from composcope.study.plan import AUTHORS_SETTING, Preset

FULL = Preset("full", "for tests", AUTHORS_SETTING)


def effects(claim: Claim, evidence: Evidence) -> dict[str, dict[int, Value]]:
    """The effect of every part by seed."""
    return {part.measure: dict(part.values(evidence)) for part in claim.parts if part.effect}


def judged(claim: Claim, evidence: Evidence) -> Judgement:
    """The claim's judgement as if the evidence were at the authors' setting."""
    found = [
        Observation(claim.number, claim.version, measure, seed, value, registered=True)
        for measure, values in effects(claim, evidence).items()
        for seed, value in values.items()
    ]
    return judge(claim, Observations("made up", FULL.name, (), tuple(found)), FULL)
