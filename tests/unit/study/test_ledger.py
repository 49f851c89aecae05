"""Outcomes for made-up observations: clear yes, clear no, too noisy, too few, bounds, exclusions, variants."""

import json
from dataclasses import replace
from itertools import permutations

import pytest

from composcope.errors import BadInput
from composcope.runs import DIAGNOSIS_VERSION
from composcope.runs.pipeline import run
from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED, Bounds, Claim, Excluded, Part, combined, difference, of_runs
from composcope.study.evidence import Evidence, RunCache
from composcope.study.judging import judge
from composcope.study.ledger import Ledger
from composcope.study.observations import Observation, Observations, observe, read_evidence, to_data
from composcope.study.plan import AUTHORS_SETTING, Preset
from composcope.study.reproduce import write_ledger

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
        (">", [], "not run"),
        (">", YES[:4], "undetermined"),
        (">", [1.0] * 5, "undetermined"),
        ("<", [1.0] * 5, "undetermined"),
        (">", [0.9] * 5, "not reproduced"),
        ("within", [0.1, -0.1, 0.0, 0.1, -0.1], "reproduced"),
        ("within", YES, "not reproduced"),
        ("differs", YES, "reproduced"),
        ("differs", NO, "reproduced"),
        ("differs", [0.9, 1.1, 1.0, 0.95, 1.05], "undetermined"),
        ("differs", [0.9] * 5, "reproduced"),
        ("differs", [1.0] * 5, "undetermined"),
        ("differs", [Bounds(2.0, 3.0)] * 6, "reproduced"),
        ("differs", [Bounds(0.0, 3.0)] * 6, "undetermined"),
    ],
)
def test_one_inequality(relation, values, outcome):
    judgement = judged(claim(part(values, relation)))
    assert judgement.outcome == outcome
    assert judgement.seeds == len(values)


def test_the_primary_statement_decides_and_secondary_parts_qualify():
    judgement = judged(claim(part(YES), secondary=(part(NO),)))
    assert judgement.outcome == "reproduced"
    assert judgement.qualification == f"Holds as stated, but these secondary parts do not hold: effect {NO}."
    assert judged(claim(part(NO), secondary=(part(YES),))).outcome == "not reproduced"
    assert judged(claim(part(YES), secondary=(part(NOISY),))).qualification == ""
    for primary in (NO, NOISY):
        failing = judged(claim(part(primary), secondary=(part(NO, measure="m"),)))
        assert failing.qualification == "These secondary parts do not hold: m."


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
    too_few = judged(claim(part(five)))
    assert (too_few.outcome, too_few.primary[0].shortage) == ("undetermined", "5 seeds; 6 are needed")
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


@pytest.mark.parametrize(
    ("values", "excluded", "outcome", "shortage"),
    [
        (3, 0, "undetermined", "3 seeds; 5 are needed"),
        (1, 0, "undetermined", "1 seed; 5 are needed"),
        (3, 1, "undetermined", "3 seeds with a value; 5 are needed"),
        (3, 2, "undetermined", "3 seeds with a value; 5 are needed"),
        (5, 2, "reproduced", ""),
        (0, 5, "undetermined", "0 seeds with a value; 5 are needed"),
        (0, 0, "not run", ""),
    ],
)
def test_five_seeds_with_a_value_are_needed(values, excluded, outcome, shortage):
    effects = dict(enumerate(YES[:values])) | {9 + seed: Excluded("has not learned") for seed in range(excluded)}
    judgement = judged(claim(part(effects)))
    assert (judgement.outcome, judgement.primary[0].shortage) == (outcome, shortage)
    if shortage:
        assert f"undetermined ({shortage})" in ledger(judgement).to_markdown()
        assert ledger(judgement).rows()[0]["holds"] == f"? ({shortage})"


def test_seeds_of_which_a_run_failed_are_excluded_and_counted():
    made = claim(part(dict(enumerate(YES))), part(dict(enumerate(YES)), exact=True))
    observations = observe(made, Evidence(FULL, {}, failed={3: "run abc failed", 7: "run def failed"}))
    values = {o.seed: o.value for o in observations if o.part == made.primary[0].measure}
    assert values[3] == YES[3]  # another run of the seed failed
    assert values[7] == Excluded("run def failed")
    assert len(observations) == len(YES) + 1 + len(YES)  # what follows from definitions has no runs


def test_a_failed_run_is_known_to_the_evidence(tiny_spec, store):
    good, bad = tiny_spec, replace(tiny_spec, seed=1)
    run(good, store)
    store.save_failure(bad, "it diverged", {})
    evidence = RunCache(store).gather(FULL, {"tiny": (good, bad)})
    assert evidence.failed == {1: f"run {bad.run_id} failed"}
    assert observed_values(of_runs("tiny", lambda run: 2.0), evidence) == {
        0: 2.0,
        1: Excluded(f"run {bad.run_id} failed"),
    }


def test_a_damaged_run_costs_its_seed_and_not_the_others(tiny_spec, store):
    specs = (tiny_spec, replace(tiny_spec, seed=1))
    for spec in specs:
        run(spec, store)
    (store.folder / specs[1].run_id / "measures" / "error.json").unlink()
    (store.folder / specs[1].run_id / "weights.safetensors").write_bytes(b"broken")
    evidence = RunCache(store).gather(FULL, {"tiny": specs})
    found = observed_values(of_runs("tiny", lambda run: run.error["accuracy"]), evidence)
    assert isinstance(found[0], float)
    assert found[1] == Excluded(f"run {specs[1].run_id} is damaged")


def observed_values(effect, evidence):
    made = claim(Part("a number", effect, ">", 0.0, "a reason"))
    return {observation.seed: observation.value for observation in observe(made, evidence)}


def test_numbers_that_do_not_apply_are_excluded_and_only_compared_keys_are_asked(tiny_spec):
    def made(seed, **numbers):
        return object.__new__(type("MadeRun", (Run,), {"spec": replace(tiny_spec, seed=seed), **numbers}))

    runs = {
        "a": [made(0, number=2.0), made(1, number=1.0)],
        "b": [made(0, number=2.0), made(1, number=None)],
        "c": [made(0)],  # which has no such number and must not be asked
    }
    evidence = Evidence(FULL, runs)
    assert of_runs("b", lambda run: run.number)(evidence) == {0: 2.0, 1: UNDEFINED}
    assert difference("a", "b", lambda run: run.number)(evidence) == {0: 0.0, 1: UNDEFINED}
    assert difference("a", "absent", lambda run: run.number)(evidence) == {}
    assert combined(("a", "a"), lambda run: run.number, lambda *row: sum(row))(evidence) == {0: 4.0, 1: 2.0}


def test_of_the_same_runs_the_newest_diagnosis_counts():
    machine = (("processor", "x86"),)

    def value(number, diagnosis, runs=("abc",), at=machine):
        return Observation(1, 1, "effect", 0, number, True, runs, (*at, ("diagnosis", diagnosis)))

    made = claim(Part("effect", lambda evidence: {}, ">", 0.0, "a reason"))
    for group, expected in (
        ((value(1.0, "5"), value(3.0, "6")), 3.0),
        ((value(3.0, "6"), value(1.0, "5, 6")), 2.0),
        ((value(1.0, "5"), value(3.0, "6", at=(("processor", "arm"),))), 2.0),
        ((value(1.0, "5"), value(3.0, "6", runs=("def",))), 2.0),
    ):
        for order in (group, group[::-1]):
            assert Observations("", "full", (), order).of(made, "effect")[0].value == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_undefined_values_are_excluded_and_counted(value, tmp_path):
    made = claim(part({**dict(enumerate(YES)), 7: value}))
    judgement = judged(made)
    assert (judgement.outcome, judgement.seeds) == ("reproduced", 5)
    assert judgement.primary[0].excluded == {7: UNDEFINED.reason}
    write_ledger(ledger(judgement), observed(made), tmp_path)  # JSON has no infinity
    assert read_evidence([tmp_path / "evidence.json"]) == observed(made)
    by_hand = Observations("", "", (), (Observation(1, 1, made.primary[0].measure, 0, value, True),))
    assert judge(made, by_hand, FULL).primary[0].excluded == {0: UNDEFINED.reason}


def ledger(*judgements):
    return Ledger("a study", FULL, (), judgements)


def test_what_follows_from_definitions_needs_no_seeds():
    assert judged(claim(part([2.0], exact=True))).outcome == "reproduced"
    assert judged(claim(part([0.5], exact=True))).outcome == "not reproduced"


def test_counts_and_expected_false_calls():
    made = ledger(judged(claim(part(YES))), judged(claim(part(NO), number=2)), judged(claim(part([]), number=3)))
    assert made.counts() == {"reproduced": 1, "not seen at 16x16": 1, "not run": 1}
    assert made.summary() == "3 claims: 1 reproduced, 1 not seen at 16x16, 1 not run"
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
    assert judge(new, observed(old), FULL).outcome == "not run"
    assert judge(new, observed(old, new), FULL).outcome == "reproduced"


def test_two_values_of_one_seed_count_as_one():
    first, second = claim(part({3: 1.0, 4: 5.0}, measure="m")), claim(part({3: 2.0}, measure="m"))
    union = observed(first, second)
    assert [o.value for o in union.of(first, "m").values()] == [1.5, 5.0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Bounds(2.0, 6.0), 3.0], Bounds(2.5, 4.5)),
        ([Bounds(2.0, float("inf")), 3.0], Bounds(2.5, float("inf"))),
        ([Bounds(2.0, 6.0), Bounds(4.0, 8.0)], Bounds(3.0, 7.0)),
        ([Bounds(1.0, 1.0), 3.0], 2.0),
        ([0.1, 0.2, 0.3, 1e16], 2.5e15),
        ([Excluded("has not learned"), 3.0], 3.0),
        ([Excluded("has not learned"), Bounds(2.0, 6.0), 3.0], Bounds(2.5, 4.5)),
        ([float("nan"), 3.0], 3.0),
        ([Excluded("b"), Excluded("a"), Excluded("b")], Excluded("a; b")),
    ],
    ids=str,
)
def test_values_of_one_seed_are_joined_whatever_the_order_of_the_files(values, expected):
    machines = [
        (f"run {index % 2}", {"torch": str(index), "lanes": "8", "old": "x"}, index > 0) for index in range(len(values))
    ]
    found = [
        Observation(1, 1, "m", 3, value, registered, (run, "both"), tuple(machine.items()))
        for value, (run, machine, registered) in zip(values, machines, strict=True)
    ]
    for group in permutations(found):
        (joined,) = Observations("", "", (), group).of(claim(), "m").values()
        assert joined.value == expected
        assert joined.runs == ("both", "run 0", "run 1")
        versions = ", ".join(map(str, range(len(values))))
        assert joined.provenance == (("lanes", "8"), ("torch", versions), ("old", "x"))
        assert not joined.registered


def test_a_processor_is_one_machine_whatever_its_kernels_and_commits():
    def seen(seed, **known):
        return Observation(1, 1, "m", seed, 1.0, True, (), tuple(known.items()))

    given = (
        seen(0, cpu="EPYC", lanes="8", kernels="narrow", commit="a"),
        seen(1, cpu="EPYC", lanes="8", kernels="narrow, torch", commit="b"),
        seen(2, cpu="Xeon", lanes="16", kernels="torch", commit="a"),
        seen(3),
    )
    assert Observations("", "", (), given).machines() == (
        "cpu EPYC, lanes 8, kernels narrow, torch, commit a, b",
        "cpu Xeon, lanes 16, kernels torch, commit a",
    )


def test_values_of_other_versions_are_counted():
    given = [Observation(number, version, "m", 0, 1.0, True) for number, version in ((1, 1), (1, 2), (1, 2), (7, 3))]
    assert Observations("", "", (), tuple(given)).outdated([claim()]) == {1: 2}


def test_the_page_has_the_values_of_every_seed():
    values = {0: 0.5, 2: Bounds(1.0, float("inf")), 1: Bounds(0.25, 2.0)}
    text = Ledger("study", FULL, (), (judged(claim(part(values))),)).to_markdown()
    assert "| 0: 0.5, 1: 0.25 to 2, 2: >= 1 |" in text


def test_observations_carry_the_cpu_and_the_version_of_the_diagnosis(tiny_spec, store):
    stored = run(tiny_spec, store)
    evidence = Evidence(FULL, {"bump": [stored]})
    plain, drawn = claim(part({tiny_spec.seed: 1.0})), claim(part({}, measure="m"))
    before = dict(observe(plain, evidence)[0].provenance)
    assert before["cpu"] == stored.provenance["cpu"] != ""
    assert "diagnosis" not in before
    diagnosing = replace(drawn.primary[0], effect=lambda evidence: {tiny_spec.seed: stored.diagnosis.error.seen_mse})
    after = dict(observe(replace(drawn, primary=(diagnosing,)), evidence)[0].provenance)
    assert after == {**before, "diagnosis": str(DIAGNOSIS_VERSION)}
    (store.folder / tiny_spec.run_id / "measures" / "diagnosis.json").write_text("{")
    assert dict(observe(plain, evidence)[0].provenance) == before


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
