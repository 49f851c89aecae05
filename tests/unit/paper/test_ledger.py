"""The verdict on made-up effects: clear yes, clear no, too noisy, too few, missing."""

import pytest

from composcope.paper.evidence import Evidence, Known
from composcope.paper.ledger import Claim, Part, as_markdown, interval, judge, rows
from composcope.paper.preset import TINY

NOTHING = {}


@pytest.fixture
def evidence(store):
    return Evidence(TINY, NOTHING, Known(store))


def part(values, relation=">", threshold=1.0, exact=False):
    return Part("an effect", lambda evidence: values, relation, threshold, "a reason", exact)


def claim(*parts):
    return Claim(1, "something holds", "Sec. 1", ("1a",), lambda preset: NOTHING, parts)


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


def test_what_was_seen_is_said(evidence):
    saw = judge(claim(part([0.1, 0.2, 0.3]), part([])), evidence).saw
    assert "an effect: 0.2 [0.1, 0.3], claimed > 1" in saw
    assert "no run that counts" in saw


def test_values_that_are_no_numbers_are_left_out(evidence):
    assert judge(claim(part([float("nan"), 2.0, 2.0, 2.0])), evidence).parts[0].values == (2.0, 2.0, 2.0)


def test_rows_name_a_claim_once(evidence):
    table = rows([judge(claim(part([2.0] * 3), part([2.0] * 3)), evidence)])
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
    bars = Part("|a gap|", lambda evidence: [2.0] * 3, ">", 1.0, "a reason")
    page = as_markdown([judge(claim(bars, part([])), evidence)], TINY)
    assert "| 1 | something holds | undetermined | 0 | 1a |" in page
    assert r"| \|a gap\| | 2 | 2 to 2 | > 1 | reproduced | a reason |" in page
    assert "| an effect | no run that counts |" in page
