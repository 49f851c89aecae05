"""Claim 25: how composing and failing runs are told apart, condition by condition."""

import math

import pytest

from composcope.papers.forced_rendering import reentanglement
from composcope.papers.forced_rendering.base import PAPER, TINY, base_spec
from composcope.papers.forced_rendering.reentanglement import CLAIMS, auc, over_seeds, rank_correlation, separation
from composcope.runs.pipeline import run as train
from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED, Part
from composcope.study.evidence import Evidence
from composcope.study.observations import observe
from composcope.study.statistics import interval

CLAIM = CLAIMS[0]


class Outcome(Run):
    """A run that says itself whether it composes."""

    def __init__(self, side: bool | None, value: float, accuracy: float) -> None:
        super().__init__(base_spec(TINY, "bump", 0))
        self.side, self.value, self.accuracy = side, value, accuracy


def runs_of(side, *values, accuracies=()):
    places = accuracies or [0.0] * len(values)
    return [Outcome(side, value, accuracy) for value, accuracy in zip(values, places, strict=True)]


@pytest.fixture
def outcomes(monkeypatch):
    """What runs say of themselves is taken for their images."""
    monkeypatch.setattr(reentanglement, "composes", lambda run: run.side)
    monkeypatch.setattr(reentanglement, "accuracy", lambda run: run.accuracy)


def value_of(run):
    return run.value


@pytest.mark.usefixtures("outcomes")
def test_a_measure_that_tells_them_apart_has_an_auc_of_1_whatever_is_left_out():
    evidence = Evidence(
        TINY,
        {
            "cured": runs_of(True, 3.0, 4.0),
            "also cured": runs_of(True, 5.0),
            "unclear": runs_of(None, 0.0),
            "failing": runs_of(False, 1.0, 2.0),
            "also failing": runs_of(False, 0.5),
        },
    )
    assert separation(value_of)(evidence) == {0: 1.0, 1: 1.0, 3: 1.0, 4: 1.0}  # by place in the plan; one is unclear
    assert separation(lambda run: -run.value)(evidence) == dict.fromkeys((0, 1, 3, 4), 0.0)


@pytest.mark.usefixtures("outcomes")
def test_the_pseudo_values_say_how_much_one_condition_matters():
    """Of all four the AUC is 3/4; without a or c it is 1/2, without b or d 1."""
    evidence = Evidence(
        TINY, {"a": runs_of(True, 3.0), "b": runs_of(True, 1.5), "c": runs_of(False, 1.0), "d": runs_of(False, 2.0)}
    )
    values = separation(value_of)(evidence)
    assert list(values.values()) == pytest.approx([4 * 0.75 - 3 * 0.5, 4 * 0.75 - 3 * 1, 4 * 0.75 - 3 * 0.5, 0.0])
    assert interval(list(values.values()))[0] == pytest.approx(0.75)
    assert auc([([1.0], []), ([], [1.0])]) == 0.5


@pytest.mark.usefixtures("outcomes")
def test_without_failing_runs_there_is_no_auc():
    assert separation(value_of)(Evidence(TINY, {"cured": runs_of(True, 1.0), "nothing": []})) == {}


@pytest.mark.usefixtures("outcomes")
def test_correlations_over_seeds_are_by_condition():
    evidence = Evidence(
        TINY,
        {
            "few": runs_of(True, 1.0, 2.0),
            "rising": runs_of(False, 1.0, 2.0, 3.0, accuracies=(0.1, 0.2, 0.4)),
            "constant": runs_of(False, 1.0, 2.0, 3.0, accuracies=(0.0, 0.0, 0.0)),
        },
    )
    assert over_seeds(value_of)(evidence) == {1: pytest.approx(1.0), 2: UNDEFINED}
    assert rank_correlation([1, 2, 3], lambda x: -x, lambda x: x) == pytest.approx(-1.0)
    assert rank_correlation([1, 2, 3], lambda x: math.nan, lambda x: x) == UNDEFINED


def test_every_measure_is_compared_in_each_of_three_ways():
    by_condition = [part for part in CLAIM.parts if part.by_condition]
    assert len(CLAIM.primary) == 4
    assert by_condition == [*CLAIM.primary, *CLAIM.secondary[:4]]
    assert len(CLAIM.secondary) == 4 + 4 * 3 + 4
    assert len(CLAIM.plan(PAPER)) == 4 + 5 + 2 + 4


def test_the_evidence_of_a_condition_names_its_runs(store):
    """Also at the tiny preset, where runs have learned nothing, the measures are those of real runs."""
    plan = {key: specs[:1] for key, specs in CLAIM.plan(TINY).items() if key in ("bump", "no hole")}
    evidence = Evidence(TINY, {key: [train(spec, store) for spec in specs] for key, specs in plan.items()})
    for measure in reentanglement.MEASURES.values():
        assert all(math.isfinite(measure(run)) for runs in evidence.values() for run in runs)
    part = Part("first value", separation(value_of), ">", 0, "a test")
    assert part.by_condition
    observations = observe(CLAIM, evidence)
    by_seed = [each for each in observations if each.part.endswith("no hole minus hole")]
    assert {each.runs for each in by_seed} == {evidence.run_ids}
