"""The outcome for made-up effects: clear yes, clear no, too noisy, too few seeds, missing."""

import pytest

from composcope.study.claim import Claim, Part
from composcope.study.evidence import Evidence
from composcope.study.ledger import Ledger, judge
from composcope.study.preset import Preset
from composcope.study.statistics import interval

SMALL = Preset("small", "for tests", label="8x8", labels={2: "authors' setting"})


@pytest.fixture
def evidence():
    return Evidence(SMALL, {})


def part(values, relation=">", threshold=1.0, exact=False):
    return Part("an effect", lambda evidence: dict(enumerate(values)), relation, threshold, "a reason", exact)


def claim(*parts, number=1):
    return Claim(number, "something holds", "Sec. 1", ("1a",), lambda preset: {}, parts)


def ledger(*judgements):
    return Ledger("a study", SMALL, (), judgements)


@pytest.mark.parametrize(
    ("relation", "values", "outcome"),
    [
        (">", [2.0, 2.1, 2.2], "reproduced"),
        (">", [0.1, 0.2, 0.3], "not reproduced"),
        (">", [0.1, 5.0, 2.0], "undetermined"),
        ("<", [2.0, 2.1, 2.2], "not reproduced"),
        ("<", [0.1, 0.2, 0.3], "reproduced"),
        (">", [2.0, 2.1], "undetermined"),
        (">", [], "undetermined"),
        (">", [1.0, 1.0, 1.0], "not reproduced"),
    ],
)
def test_one_inequality(evidence, relation, values, outcome):
    judgement = judge(claim(part(values, relation)), evidence)
    assert judgement.outcome == outcome
    assert judgement.seeds == len(values)
    assert judgement.parts[0].effect == (pytest.approx(sum(values) / len(values)) if values else None)


def test_what_follows_from_definitions_needs_no_seeds(evidence):
    assert judge(claim(part([2.0], exact=True)), evidence).outcome == "reproduced"
    assert judge(claim(part([0.5], exact=True)), evidence).outcome == "not reproduced"


def test_a_claim_holds_if_all_its_parts_do(evidence):
    yes, no, noisy = [2.0, 2.1, 2.2], [0.1, 0.2, 0.3], [0.0, 4.0, 0.0]
    assert judge(claim(part(yes), part(yes)), evidence).outcome == "reproduced"
    assert judge(claim(part(yes), part(noisy)), evidence).outcome == "undetermined"
    assert judge(claim(part(yes), part(noisy), part(no)), evidence).outcome == "not reproduced"


def test_the_summary_has_effect_and_interval(evidence):
    summary = judge(claim(part([0.1, 0.2, 0.3]), part([])), evidence).summary
    assert "an effect: 0.2 [0.1, 0.3], claimed > 1" in summary
    assert "no eligible run" in summary


def test_values_that_are_not_finite_are_left_out_with_their_seed(evidence):
    judged = judge(claim(part([float("nan"), 2.0, 2.0, 2.0])), evidence).parts[0]
    assert judged.values == (2.0, 2.0, 2.0)
    assert judged.seeds == (1, 2, 3)


def test_a_judgement_says_what_its_runs_can_show(evidence):
    assert judge(claim(part([2.0] * 3)), evidence).label == "8x8"
    assert judge(claim(part([2.0] * 3), number=2), evidence).label == "authors' setting"


def test_counts_cover_every_outcome(evidence):
    found = ledger(judge(claim(part([2.0] * 3)), evidence), judge(claim(part([])), evidence))
    assert found.counts() == {"reproduced": 1, "not reproduced": 0, "undetermined": 1}
    assert found.summary() == "2 claims: 1 reproduced, 0 not reproduced, 1 undetermined"


def test_rows_name_a_claim_once(evidence):
    table = ledger(judge(claim(part([2.0] * 3), part([2.0] * 3)), evidence)).rows()
    assert [row["claim"] for row in table] == [1, ""]


def test_interval_narrows_with_seeds_and_is_the_same_every_time():
    few, many = interval([0.0, 1.0] * 3), interval([0.0, 1.0] * 50)
    assert few == interval([0.0, 1.0] * 3)
    assert few[0] == many[0] == 0.5
    assert many[2] - many[1] < few[2] - few[1] <= 1.0
    # the interval of a mean of 100 coin tosses: half a unit and about two standard errors of 0.05
    assert many[1] == pytest.approx(0.4, abs=0.03)
    assert many[2] == pytest.approx(0.6, abs=0.03)


def test_interval_of_three_is_their_range():
    assert interval([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert interval([]) == (None, None, None)


def test_the_page_has_every_claim_and_inequality(evidence):
    bars = Part("|a gap|", lambda evidence: dict.fromkeys(range(3), 2.0), ">", 1.0, "a reason")
    page = ledger(judge(claim(bars, part([])), evidence)).to_markdown()
    assert "| 1 | something holds | undetermined | 0 | 1a |" in page
    assert r"| \|a gap\| | 2 | 2 to 2 | > 1 | reproduced | a reason |" in page
    assert "| an effect | no eligible run |" in page
