"""Studies as values: presets, figures by name, headline classes, registration."""

import math
from dataclasses import dataclass, replace

import pytest

import composcope as cs
from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED, UNLEARNED, Part, effect_of, of_runs
from composcope.study.evidence import Evidence
from composcope.study.plan import label_of, of_preset, only, read_seeds, specs_of, together, varied
from composcope.study.request import make_request, remaining_work
from composcope.study.study import find_study


def panel(name, plan=lambda preset: {}):
    return cs.Panel(name, f"title {name}", "see", plan, lambda evidence: None, lambda numbers: None)


def claim(number, figures, plan):
    part = cs.Part("an effect", lambda evidence: {}, ">", 0.0, "a reason")
    return cs.Claim(number, "it holds", "nowhere", figures, plan, (part,))


def study(panels=(), claims=(), name="made-up"):
    headline = cs.Headline(
        "Does it?",
        "A lead.",
        classes=(
            cs.RunClass("wide", lambda spec: spec["decoder"]["width"] > 8, "treated"),
            cs.RunClass("any MLP", lambda spec: spec["decoder"]["kind"] == "mlp", "untreated"),
        ),
    )
    presets = (cs.Preset("small", "small runs", label="8x8"), cs.Preset("large", "large runs", label="28x28"))
    return cs.Study(name, "A made-up study", presets, tuple(panels), tuple(claims), headline)


@pytest.fixture
def no_new_studies(monkeypatch):
    monkeypatch.setattr("composcope.study.study._registered", {})


def test_the_first_preset_is_the_default():
    assert study().preset().name == "small"
    assert study().preset("large").label == "28x28"
    with pytest.raises(cs.BadInput, match=r"no preset 'lrge', did you mean 'large'\?; available: small, large"):
        study().preset("lrge")


def test_seeds_of_the_preset_win_over_the_experiments():
    assert study().preset().seeds_or((0, 1, 2)) == (0, 1, 2)
    assert study().preset().with_seeds(2).seeds_or((5, 6, 7)) == (0, 1)
    assert study().preset().with_seeds(range(15, 18)).seeds_or((5, 6, 7)) == (15, 16, 17)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("many", "'many': write how many seeds, as in 5, or the first and the last, as in 15-19"),
        ("-3", "'-3': write how many"),
        ("3-", "'3-': write how many"),
        ("0", "'0': that is 0 seeds; use 1 to 1000"),
        ("19-15", "'19-15': that is 0 seeds"),
        ("0-1000", "'0-1000': that is 1001 seeds"),
    ],
)
def test_seeds_that_cannot_be_used(text, message):
    with pytest.raises(cs.BadInput, match=message):
        read_seeds(text)


def test_figures_are_selected_by_name_and_by_number():
    whole = study([panel(name) for name in ("1", "3a", "3b", "13", "own")])
    assert [p.name for p in whole.select(["3"])] == ["3a", "3b"]
    assert [p.name for p in whole.select(["own", "1"])] == ["1", "own"]
    assert len(whole.select([])) == 5
    with pytest.raises(cs.BadInput, match="there is no figure '4'"):
        whole.select(["4"])


def test_a_run_belongs_to_the_first_class_that_contains_it():
    headline = study().headline
    assert headline.class_of({"decoder": {"kind": "mlp", "width": 16}}).label == "wide"
    assert headline.class_of({"decoder": {"kind": "mlp", "width": 4}}).label == "any MLP"
    assert headline.class_of({"decoder": {"kind": "other", "width": 4}}) is None
    assert headline.class_of({"decoder": "not a table"}) is None


def test_a_registered_study_is_found_by_name(no_new_studies):
    made = cs.register_study(study())
    assert find_study("made-up") is made
    assert "made-up" in cs.studies()


def test_the_paper_is_found_by_its_entry_point():
    assert find_study().name == "forced-rendering"
    with pytest.raises(cs.BadInput, match=r"there is no study 'forced_rendering', did you mean 'forced-rendering'\?"):
        find_study("forced_rendering")


def test_a_key_is_a_word_or_a_value_with_a_label():
    class Key:
        label = "depth 3"

    assert label_of("bump") == "bump"
    assert label_of(Key()) == "depth 3"


def test_plans_are_derived_from_plans(tiny_spec):
    def words(preset):
        return {"a": (tiny_spec,), "b": (), "c": ()}

    def other(preset):
        return {"c": (tiny_spec,), "d": ()}

    preset = study().preset()
    assert list(only(words, "c", lambda preset: "a")(preset)) == ["c", "a"]
    both = together(words, other)(preset)
    assert list(both) == ["a", "b", "c", "d"]
    assert both["c"] == (tiny_spec,)  # of the last
    with pytest.raises(KeyError):
        only(words, "d")(preset)


def test_seeds_of_a_preset_take_the_place_of_all_seeds_of_an_experiment():
    @dataclass(frozen=True)
    class Sizes:
        width: int
        seeds: tuple[int, ...]
        few_seeds: tuple[int, ...] | None = None

    sizes, preset = {"small": Sizes(4, (5, 6))}, study().preset()
    assert of_preset(sizes, preset) == Sizes(4, (5, 6))
    assert of_preset(sizes, preset.with_seeds(2)) == Sizes(4, (0, 1), (0, 1))


def test_a_part_excludes_runs_that_have_not_learned_among_those_it_is_computed_from(tiny_spec, monkeypatch):
    monkeypatch.setattr("composcope.study.claim.training_share", lambda run: 0.9 if run.spec.seed == 1 else 0.0)
    runs = {
        key: [Run(replace(tiny_spec, seed=seed)) for seed in seeds] for key, seeds in (("a", (0, 2)), ("b", (0, 1, 2)))
    }
    evidence = Evidence(study().preset(), runs)
    number = lambda run: math.nan if run.spec.seed == 2 else 3.0  # noqa: E731

    def values(effect, learned=True):
        return Part("measure", effect, ">", 0.0, "a reason", learned=learned).values(evidence)

    assert values(of_runs("b", number)) == {0: 3.0, 1: UNLEARNED, 2: UNDEFINED}
    assert values(of_runs("b", lambda run: 3.0), learned=False) == {0: 3.0, 1: 3.0, 2: 3.0}
    assert values(lambda evidence: {0: 1.0, 1: 2.0}) == {0: 1.0, 1: UNLEARNED}  # of all runs of the claim
    assert values(effect_of("a")(lambda evidence: {0: 1.0, 1: 2.0})) == {0: 1.0, 1: 2.0}
    assert values(None) == {}


def test_settings_vary_every_run_of_a_plan(tiny_spec):
    plan = varied({"a": (tiny_spec,)}, ["decoder.width=4"])
    assert [spec.decoder.width for spec in specs_of(plan).values()] == [4]


def test_claims_are_those_that_the_named_figures_can_settle(tiny_spec):
    def shown(preset):
        return {"a": (tiny_spec,)}

    def elsewhere(preset):
        raise AssertionError("a claim that no named figure shows is not planned")

    claims = [claim(1, ("1",), shown), claim(2, ("2",), elsewhere)]
    request = make_request(study([panel("1", shown), panel("2", elsewhere)], claims), ["1"])
    assert [c.number for c in request.claims] == [1]


def test_a_claim_that_needs_more_runs_is_not_judged(tiny_spec):
    claims = [claim(1, ("1",), lambda preset: {"a": (tiny_spec, replace(tiny_spec, seed=7))})]
    assert not make_request(study([panel("1", lambda preset: {"a": (tiny_spec,)})], claims), ["1"]).claims


def test_for_a_named_claim_only_its_own_runs_are_done(tiny_spec, store):
    first, second, third, fourth = (replace(tiny_spec, seed=seed) for seed in range(4))
    panels = [
        panel("1", lambda preset: {"a": (first, second)}),
        panel("2", lambda preset: {"b": (second, third)}),
        panel("3", lambda preset: {"b": (third, fourth)}),
    ]
    claims = [claim(1, ("1",), lambda preset: {"a": (first,), "b": (third,)}), claim(2, ("1",), lambda preset: {})]
    request = make_request(study(panels, claims), claims=[1])
    assert [p.name for p in request.panels] == ["1", "2"]  # the second has a run that the claim's own figure lacks
    assert [c.number for c in request.claims] == [1]
    assert set(remaining_work(request, store).todo) == {first.run_id, third.run_id}
    varied_request = make_request(study(panels, claims), claims=[1], settings=["decoder.width=4"])
    assert {spec.seed for spec in remaining_work(varied_request, store).todo.values()} == {0, 2}


@pytest.mark.parametrize("number", [claim.number for claim in find_study().claims])
def test_every_claim_can_be_run_alone(number, store):
    request = make_request(find_study(), preset="tiny", claims=[number])
    work = remaining_work(request, store)
    assert set(work.runs) == set(specs_of(request.claims[0].plan(request.preset)))


def test_claims_that_cannot_be_named(tiny_spec):
    made = study([panel("1")], [claim(1, ("1",), lambda preset: {}), claim(3, ("1",), lambda preset: {})])
    with pytest.raises(cs.BadInput, match="there is no claim 2; available: 1, 3"):
        make_request(made, claims=[1, 2])
    with pytest.raises(cs.BadInput, match="figure 1 and claim 3: name figures or claims, not both"):
        make_request(made, ["1"], claims=[3])


def test_settings_need_named_figures():
    with pytest.raises(cs.BadInput, match="name the figures whose runs it changes"):
        make_request(study(), settings=["task.sigma=2"])


def test_remaining_work_is_what_the_store_lacks(tiny_spec, store):
    plan = {"a": (tiny_spec, replace(tiny_spec, seed=1))}
    request = make_request(study([panel("1", lambda preset: plan)]))
    cs.run(tiny_spec, store)
    work = remaining_work(request, store)
    assert len(work.runs) == 2
    assert set(work.todo) == set(work.runs)  # the stored run is still to be diagnosed
