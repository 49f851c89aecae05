"""Outcomes for made-up observations: clear yes, clear no, too noisy, too few, bounds, exclusions, variants."""

import json

import pytest

from composcope.errors import BadInput
from composcope.study.claim import Bounds, Claim, Excluded, Part
from composcope.study.evidence import Evidence
from composcope.study.ledger import Ledger, judge
from composcope.study.observations import Observations, observe, read_evidence, to_data
from composcope.study.preset import AUTHORS_SETTING, Preset

FULL = Preset("full", "for tests", label=AUTHORS_SETTING, labels={2: "16x16"})
YES, NO, NOISY = [2.0, 2.1, 2.2, 2.0, 2.1], [0.1, 0.2, 0.3, 0.2, 0.1], [0.0, 4.0, 0.0, 1.0, 3.0]


def part(values, relation=">", threshold=1.0, exact=False, measure=None):
    effects = values if isinstance(values, dict) else dict(enumerate(values))
    return Part(measure or f"effect {values}", lambda evidence: effects, relation, threshold, "a reason", exact)


def claim(*parts, number=1, secondary=(), version=1):
    return Claim(number, "something holds", "Sec. 1", ("1a",), lambda preset: {}, parts, secondary, version=version)


def observed(*claims, settings=()):
    everything = tuple(o for each in claims for o in observe(each, Evidence(FULL, {})))
    return Observations("a study", "full", settings, everything)


def judged(each, settings=()):
    return judge(each, observed(each, settings=settings), FULL)


@pytest.mark.parametrize(
    ("relation", "values", "outcome"),
    [
        (">", YES, "reproduced"),
        (">", NO, "not reproduced"),
        (">", NOISY, "undetermined"),
        ("<", YES, "not reproduced"),
        ("<", NO, "reproduced"),
        (">", YES[:2], "undetermined"),
        (">", [], "undetermined"),
        (">", [1.0] * 5, "not reproduced"),
        ("within", [0.1, -0.1, 0.0, 0.1, -0.1], "reproduced"),
        ("within", YES, "not reproduced"),
    ],
)
def test_one_inequality(relation, values, outcome):
    judgement = judged(claim(part(values, relation)))
    assert judgement.outcome == outcome
    assert judgement.seeds == len(values)


def test_the_primary_statement_decides_and_secondary_parts_qualify():
    judgement = judged(claim(part(YES), secondary=(part(NO),)))
    assert judgement.outcome == "reproduced"
    assert "these stricter parts do not hold" in judgement.qualification
    assert judged(claim(part(NO), secondary=(part(YES),))).outcome == "not reproduced"
    assert judged(claim(part(YES), secondary=(part(NOISY),))).qualification == ""


def test_every_inequality_of_the_statement_must_hold():
    assert judged(claim(part(YES), part([2.5] * 5))).outcome == "reproduced"
    assert judged(claim(part(YES), part(NOISY))).outcome == "undetermined"
    assert judged(claim(part(YES), part(NOISY), part(NO))).outcome == "not reproduced"


def test_contradiction_is_corrected_for_the_number_of_inequalities():
    weak = [0.9, 0.4, 0.8, 0.6, 0.85]  # opposite p about 0.02: enough alone, not among several
    alone = judged(claim(part(weak)))
    assert 0.0125 < alone.primary[0].p_opposite < 0.025
    assert alone.outcome == "not reproduced"
    assert judged(claim(part(weak), part(NOISY))).outcome == "undetermined"


def test_only_the_authors_setting_can_contradict():
    assert judged(claim(part(NO), number=2)).outcome == "not seen at 16x16"
    assert judged(claim(part(YES), number=2)).outcome == "seen at 16x16"
    assert judged(claim(part(NO)), settings=("task.sigma=2",)).outcome == "not seen at this variant"


def test_bounds_get_a_sign_test_which_needs_six_seeds():
    five = {seed: Bounds(2.0, float("inf")) for seed in range(5)}
    assert judged(claim(part(five))).outcome == "undetermined"
    six = judged(claim(part({**five, 5: 3.0})))
    assert six.outcome == "reproduced"
    assert six.primary[0].method == "sign test"
    assert judged(claim(part({**five, 5: Bounds(0.0, 3.0)}))).outcome == "undetermined"


def test_excluded_seeds_are_counted_with_their_reason():
    values = {**dict(enumerate(YES)), 7: Excluded("has not learned"), 8: Excluded("has not learned")}
    judgement = judged(claim(part(values)))
    assert judgement.outcome == "reproduced"
    assert judgement.primary[0].excluded == {7: "has not learned", 8: "has not learned"}
    assert "5 (2 excluded: has not learned)" in ledger(judgement).to_markdown()


def ledger(*judgements):
    return Ledger("a study", FULL, (), judgements)


def test_what_follows_from_definitions_needs_no_seeds():
    assert judged(claim(part([2.0], exact=True))).outcome == "reproduced"
    assert judged(claim(part([0.5], exact=True))).outcome == "not reproduced"


def test_counts_and_expected_false_calls():
    made = ledger(judged(claim(part(YES))), judged(claim(part(NO), number=2)), judged(claim(part([]), number=3)))
    assert made.counts() == {"reproduced": 1, "not seen at 16x16": 1, "undetermined": 1}
    assert made.summary() == "3 claims: 1 reproduced, 1 not seen at 16x16, 1 undetermined"
    assert "about 0.1 false calls" in made.expected_false_calls


def test_rows_name_a_claim_once():
    rows = ledger(judged(claim(part(YES), secondary=(part(NO),)))).rows()
    assert [row["claim"] for row in rows] == [1, ""]
    assert rows[1]["part"].startswith("(secondary) ")


def test_the_page_has_every_part():
    page = ledger(judged(claim(part(YES, measure="|a gap|"), part([], measure="nothing")))).to_markdown()
    assert r"| primary: \|a gap\| | 2.08 | 1.98 to 2.18 | > 1 |" in page
    assert "| primary: nothing | no eligible run |" in page


def test_old_versions_of_a_claim_are_not_mixed_in():
    old, new = claim(part(NO, measure="m"), version=1), claim(part(YES, measure="m"), version=2)
    assert judge(new, observed(old), FULL).outcome == "undetermined"
    assert judge(new, observed(old, new), FULL).outcome == "reproduced"


def test_two_values_of_one_seed_count_as_one():
    first, second = claim(part({3: 1.0, 4: 5.0}, measure="m")), claim(part({3: 2.0}, measure="m"))
    union = observed(first, second)
    assert [o.value for o in union.of(first, "m").values()] == [1.5, 5.0]


def test_a_registration_changes_with_what_is_claimed():
    assert claim(part(YES)).registration == claim(part(YES)).registration
    assert claim(part(YES)).registration != claim(part(YES, threshold=2.0)).registration
    assert claim(part(YES)).registration != claim(part(YES), version=2).registration
    assert claim(part(YES), part(NO)).registration != claim(part(YES), secondary=(part(NO),)).registration


def test_evidence_survives_a_file_and_files_are_joined(tmp_path):
    values = {0: 1.5, 1: Bounds(2.0, float("inf")), 2: Excluded("has not learned")}
    whole = observed(claim(part(values, measure="m")))
    (tmp_path / "a.json").write_text(json.dumps(to_data(whole), allow_nan=False))
    more = observed(claim(part({9: 4.0}, measure="m")))
    (tmp_path / "b.json").write_text(json.dumps(to_data(more), allow_nan=False))
    union = read_evidence([tmp_path / "a.json", tmp_path / "b.json"])
    assert union.observations == (*whole.observations, *more.observations)


def test_evidence_of_different_presets_is_not_joined(tmp_path):
    for name, preset in (("a", "full"), ("b", "quick")):
        (tmp_path / f"{name}.json").write_text(json.dumps(to_data(Observations("s", preset, (), ()))))
    with pytest.raises(BadInput, match="judge them apart"):
        read_evidence([tmp_path / "a.json", tmp_path / "b.json"])


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1}', '{"format": 1, "observations": [1]}', "\x00"])
def test_a_file_that_is_not_evidence_is_refused(tmp_path, content):
    path = tmp_path / "evidence.json"
    path.write_text(content)
    with pytest.raises(BadInput, match="not an evidence file"):
        read_evidence([path])


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "evidence.json"
    path.write_text('{"format": 2}')
    with pytest.raises(BadInput, match="newer format"):
        read_evidence([path])
