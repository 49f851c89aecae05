import json
import re
from copy import deepcopy
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

import composcope as cs
from composcope.pages.answer import OTHER, answer, class_label, explored, who_composes
from composcope.pages.explorer import opened
from composcope.pages.report import command, missing_specs, part_view, write_report
from composcope.pages.runs import RunRow, run_row
from composcope.papers.forced_rendering.base import TINY
from composcope.papers.forced_rendering.study import STUDY
from composcope.runs import DIAGNOSIS_VERSION
from composcope.runs.pipeline import run
from composcope.store.records import Record
from pages import (
    BROKEN,
    DAMAGED,
    FAILED,
    HOSTILE,
    MISSING,
    SEEN,
    STRIPES,
    TURNED,
    UNDIAGNOSED,
    claim,
    claims,
    filled,
    made_up,
    part,
    tiny,
)


def text_of(page):
    """What a reader sees of a page: no markup, no scripts, no styles."""
    seen = []

    class Reader(HTMLParser):
        quiet = 0

        def handle_starttag(self, tag, attributes):
            self.quiet += tag in ("script", "style")

        def handle_endtag(self, tag):
            self.quiet -= tag in ("script", "style")

        def handle_data(self, data):
            if not self.quiet:
                seen.append(data)

    Reader().feed(page)
    return re.sub(r"\s+", " ", " ".join(seen))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store with runs in every state."""
    return filled(cs.Store(tmp_path_factory.mktemp("report") / "runs"))


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    """Its report."""
    return write_report(made_up(runs), tmp_path_factory.mktemp("page") / "report.html").read_text()


def test_every_claim_figure_and_run_is_there(page):
    seen = text_of(page)
    for judgement in claims():
        assert judgement.statement in seen
    assert "Note on 1." in seen
    assert "2 of 4 claims" not in seen
    assert "What to look at in 1b." in seen
    assert "composcope reproduce 1b --preset tiny --store" in seen
    assert page.count("data:image/png;base64,") == 1
    for spec in (SEEN, STRIPES, TURNED, UNDIAGNOSED, BROKEN, DAMAGED, FAILED, MISSING):
        assert page.count(f'id="run-{spec.run_id}"') == 1


def test_outcomes_of_the_claims_are_part_of_the_headline(page):
    head = " ".join(text_of(page[: page.index('<h2 id="claims"')]).split())
    assert "reproduced 2 not reproduced 1 undetermined 1 of 4 claims , preset tiny" in head


def test_a_picture_that_is_not_made_says_so(page):
    assert "This picture is not made: no runs yet: more" in text_of(page)


def test_runs_in_every_state_say_what_is_the_matter(page, runs):
    seen = text_of(page)
    assert f"not diagnosed: composcope measure {UNDIAGNOSED.run_id} --store {runs.folder}" in seen
    assert "its diagnosis cannot be read" in seen
    assert "is not what was written" in seen
    assert "loss is not finite" in seen
    assert "not run yet" in seen


def test_nothing_is_diagnosed_for_a_report(page, runs):
    assert not runs.run_folder(UNDIAGNOSED.run_id).has_diagnosis()
    assert (runs.folder / BROKEN.run_id / "measures" / "diagnosis.npz").read_bytes() == b"torn"


def test_the_same_store_gives_the_same_bytes(page, runs, tmp_path):
    assert write_report(made_up(runs), tmp_path / "again.html").read_text() == page


def test_a_claim_shows_the_part_that_decides(page):
    row = page[page.index('id="claim-2"') : page.index('id="claim-2-more"')]
    assert "0.200" in row
    assert "0.700" not in row


def test_every_seed_of_a_part_is_visible():
    inf = float("inf")
    censored = {1: (300.0, inf), 12: (-inf, 8.0), 13: (100.0, 200.0), 14: (-inf, inf)}
    view = part_view(part("undetermined", [0.5, 0.7], seeds=(0, 11), censored=censored, excluded={15: "blank"}))
    texts = ["0: 0.500", "1: >= 300.0", "11: 0.700", "12: <= 8.000", "13: 100.0 to 200.0", "14: unknown"]
    assert view["by_seed"] == ", ".join(texts)
    assert view["excluded"] == "seed 15 excluded: blank"


def test_a_part_says_how_many_seeds_are_missing():
    assert part_view(part("undetermined", [0.5, 0.7]))["method"] == "t-test, 2 seeds; 5 are needed"


def test_an_empty_store_still_gives_a_page(store, tmp_path):
    empty = made_up(store, judgements=(), panels=(), rendered_panels=())
    seen = text_of(write_report(empty, tmp_path / "report.html").read_text())
    assert "there is no answer yet" in seen
    assert "The store holds no runs." in seen


def test_hostile_names_are_text(store, tmp_path):
    factors = (cs.Factor(HOSTILE, range(4)), cs.Factor("y", range(4)))
    latents = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    table = cs.TableTask(latents, torch.rand(16, 4, 4), factors).save(tmp_path / "table.npz")
    spec = tiny(task=table, holdout=cs.Square(1, 2))
    run(spec, store)
    store[spec.run_id].measure()
    store.save_failure(tiny(seed=3), HOSTILE, {"seconds": 1.0, "torch": HOSTILE})
    (store.folder / tiny(seed=3).run_id / "spec.json").write_text(
        json.dumps({"task": HOSTILE, "decoder": {"kind": HOSTILE}, "seed": HOSTILE})
    )
    hostile = claim(1, "reproduced", part("reproduced", [1.0], measure=HOSTILE), statement=HOSTILE, note=HOSTILE)
    made = made_up(store, judgements=[hostile])
    made.panels[0].rows.append({"code": HOSTILE, "seed": 1, "error": 0.0})
    page = write_report(made, tmp_path / "report.html").read_text()
    assert HOSTILE not in page
    assert text_of(page).count(HOSTILE) >= 6


def test_a_run_with_an_unknown_plugin_keeps_its_diagnosis(store, no_new_kinds):
    @cs.register("diagonal")
    class Diagonal(cs.Holdout):
        def contains(self, latents, factors=None):
            return (latents[:, 0] == latents[:, 1]) & (latents[:, 0] > 1)

    spec = tiny(holdout=Diagonal())
    run(spec, store)
    store[spec.run_id].measure()
    del cs.Holdout.kinds["diagonal"]
    row = run_row(store, spec.run_id)
    assert row.shares is not None
    assert row.title == "bump, mlp, everything"
    runs, problems = opened(store, [row.run_id])
    assert runs == []
    assert "diagonal" in problems[row.run_id]


def test_a_row_says_what_was_measured(store):
    run(SEEN, store)
    found = store[SEEN.run_id].measure()
    row = run_row(store, SEEN.run_id)
    assert (row.status, row.problem, row.kind) == ("done", "", found.verdict.kind)
    assert row.composes == found.verdict.score
    assert row.error["heldout_mse"] == pytest.approx(found.error.heldout_mse, rel=1e-5)
    assert row.title == "bump, MLP, all seen"
    assert row.about == "mlp depth 1 width 8; bump size 8; square lo 2 hi 5 held out"


SPECS = {
    "trained on seen combinations only": {},
    "low-rank embeddings without penalties": {"decoder": {"kind": "lowrank"}, "penalties": []},
    "stripes, one factor at a time": {"sampling": {"kind": "stripes"}},
    "stripes and some seen combinations": {"sampling": {"kind": "stripes", "bumps": 10}},
    "low-rank embeddings with penalties": {"decoder": {"kind": "lowrank"}, "penalties": [{"kind": "entropy"}]},
    "a network that works pixel by pixel": {"decoder": {"kind": "pixelwise"}},
    OTHER: {"decoder": {"kind": "a cure of a plugin"}},
}
SEEN_ONLY, LOW_RANK, STRIPES_ALONE, WITH_BUMPS, PENALTIES, PIXELWISE, UNKNOWN = SPECS


def row(label, kind, seed=0, depth=1, **more):
    """A classified run of two factors, as a table has it."""
    spec = {
        "decoder": {"kind": "cnn", "depth": depth},
        "sampling": {"kind": "draws"},
        "seed": seed,
        **deepcopy(SPECS[label]),
    }
    shares = {"composer": 1.0 if kind == "composes" else 0.25, "superposer": 0.0 if kind == "composes" else 0.75}
    fields = {"title": label, "about": "", "kind": kind, "shares": shares, "composition": True, **more}
    fields = {"factors": {"x": 0.5, "y": 0.5}, **fields}
    part = {"factors": ("x", "y"), "samples": [1]}
    return RunRow(Record(f"{label}-{depth}-{seed}", "done", spec, {}, {}), **{"part": part, **fields})


def test_classes_follow_from_the_spec():
    assert [class_label(row(label, "composes"), STUDY.headline) for label in SPECS] == list(SPECS)
    bumps_only = row(STRIPES_ALONE, "adds")
    bumps_only.spec["sampling"].update(stripes=0, bumps=100)
    assert class_label(bumps_only, STUDY.headline) == SEEN_ONLY


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "No run here has been classified"),
        ([row(SEEN_ONLY, "superposes"), row(SEEN_ONLY, "composes")], "Mostly no: 1 of 2 decoders"),
        ([row(SEEN_ONLY, "composes")], "Mostly yes: 1 of 1 decoders"),
        (
            [row(SEEN_ONLY, "superposes"), row(LOW_RANK, "repeats"), row(PENALTIES, "composes")],
            "Not by itself, but with help: 0 of 2 decoders trained on seen combinations alone compose; 1 of 1",
        ),
        ([row(SEEN_ONLY, "superposes"), row(PIXELWISE, "other")], "Mostly no, even with help"),
        ([row(STRIPES_ALONE, "adds")], "No run here has been classified"),
        ([row(SEEN_ONLY, "composes", composition=False)], "No run here has been classified"),
        ([row(UNKNOWN, "composes"), row(SEEN_ONLY, "superposes")], "Mostly no: 0 of 1 decoders"),
    ],
)
def test_the_answer_is_what_most_runs_do(rows, said):
    assert answer(rows, STUDY.headline).startswith(said)


def test_shares_of_a_class_are_means_over_its_runs():
    (found,) = who_composes([row(SEEN_ONLY, "superposes"), row(SEEN_ONLY, "composes", seed=1)], STUDY.headline)
    assert (found["runs"], found["composing"]) == (2, 1)
    assert {one["name"]: one["share"] for one in found["shares"]} == {"composer": 0.625, "superposer": 0.375}


def test_explored_runs_are_few_and_of_every_class():
    labels = list(SPECS)[:6]
    titled = [(label, f"{label} {i}", seed) for label in labels for i in range(4) for seed in range(3)]
    rows = [row(label, "composes", seed, title=title) for label, title, seed in titled]
    chosen = explored(rows, STUDY.headline)
    assert len(chosen) == 12
    assert [class_label(each, STUDY.headline) for each in chosen] == [label for label in labels for _ in range(2)]
    assert all(each.seed == 0 for each in chosen)
    assert len({each.title for each in chosen}) == 12


def test_of_equal_titles_the_one_with_most_seeds_is_explored():
    rows = [row(SEEN_ONLY, "composes", seed, depth) for depth, seeds in ((1, 1), (2, 3)) for seed in range(seeds)]
    assert [each.run_id for each in explored(rows, STUDY.headline)] == [f"{SEEN_ONLY}-2-0"]


def test_sets_of_factors_take_turns_in_the_explorer():
    worlds = ({"x": 0.5, "y": 0.5}, {"x": 0.5, "y": 0.5, "shape": 0.5})
    rows = [row(SEEN_ONLY, "composes", title=title, factors=factors) for title in "ab" for factors in worlds]
    found = [(each.title, len(each.factors)) for each in explored(rows, STUDY.headline, most=3)]
    assert found == [("a", 2), ("a", 3), ("b", 2)]


@pytest.fixture
def judged(store):
    """A run with a stored verdict and no diagnosis."""
    spec = tiny(task=cs.BumpTask(6, brightness=(0.5, 1.0)), holdout=cs.Square(2, 3))
    opened = run(spec, store)
    return spec, opened.verdict


def test_a_stored_verdict_counts_where_there_is_no_diagnosis(store, judged):
    spec, verdict = judged
    found = run_row(store, spec.run_id)
    assert (found.kind, found.shares, found.factors) == (verdict["kind"], verdict["shares"], verdict["factors"])
    assert found.composition
    assert found.note == f"not diagnosed: composcope measure {spec.run_id} --store {store.folder}"
    assert answer([found], STUDY.headline).startswith("Mostly ")
    assert who_composes([found], STUDY.headline)[0]["runs"] == 1
    assert explored([found], STUDY.headline) == [found]


def test_a_diagnosis_comes_before_a_stored_verdict(store, judged):
    spec, verdict = judged
    store.run_folder(spec.run_id).save_measures("verdict", DIAGNOSIS_VERSION, {**verdict, "kind": "an older one"})
    assert run_row(store, spec.run_id).kind == "an older one"
    found = store[spec.run_id].measure()
    assert run_row(store, spec.run_id).kind == found.verdict.kind


def test_a_verdict_of_another_version_does_not_count(store, judged, monkeypatch):
    monkeypatch.setattr("composcope.pages.runs.DIAGNOSIS_VERSION", DIAGNOSIS_VERSION + 1)
    assert run_row(store, judged[0].run_id).shares is None


def test_the_page_of_a_judged_run_shows_its_verdict_and_diagnoses_nothing(store, judged, tmp_path):
    spec, verdict = judged
    made = made_up(store, judgements=(), panels=(), rendered_panels=())
    seen = text_of(write_report(made, tmp_path / "report.html").read_text())
    assert "No run here has been classified" not in seen
    assert f"brightness {100 * verdict['factors']['brightness']:.0f} %" in seen
    assert "There is no run to explore" not in seen
    assert not store.run_folder(spec.run_id).has_diagnosis()


def test_the_command_makes_the_figure_again(store):
    made = made_up(store)
    assert command(made.panels[0], made.request, cs.Store("a b")).endswith("reproduce 1b --preset tiny --store 'a b'")
    varied = replace(made.request, preset=TINY.with_seeds(5), settings=("decoder.depth=3",))
    assert "--preset tiny --seeds 5 --set decoder.depth=3" in command(made.panels[0], varied, store)
    further = replace(made.request, preset=TINY.with_seeds(range(15, 20)))
    assert "--preset tiny --seeds 15-19" in command(made.panels[0], further, store)
    other = replace(made.request, study=replace(STUDY, name="mine"))
    assert "reproduce 1b --study mine --preset tiny" in command(made.panels[0], other, store)


def test_what_failed_is_not_missing(store):
    request = made_up(store).request
    store.save_failure(MISSING, "diverged", {})
    assert MISSING.run_id not in [spec.run_id for spec in missing_specs(store, request)]
    assert SEEN.run_id in [spec.run_id for spec in missing_specs(store, request)]
