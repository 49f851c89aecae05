"""The paper's study at the tiny preset: one command, every figure, every claim, from the store alone."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import composcope as cs
from composcope.errors import BadInput
from composcope.papers.forced_rendering.base import PAPER, QUICK, TINY
from composcope.papers.forced_rendering.study import STUDY
from composcope.study.drawing import STYLE
from composcope.study.evidence import Evidence, RunCache
from composcope.study.judging import judge
from composcope.study.numbers import pack_numbers, unpack_numbers
from composcope.study.observations import Observations, observe, read_evidence
from composcope.study.panel import numbers_of, render
from composcope.study.parallel import draw_and_observe
from composcope.study.plan import label_of, specs_of, varied
from composcope.study.request import make_request, remaining_work
from composcope.workers.local_pool import LocalPool
from processes import train_in_threads

CATALOGUE = {panel.name: panel for panel in STUDY.panels}
# The others show the first seed alone, or also kinds of run that have one seed.
SEVERAL_SEEDS = [name for name in CATALOGUE if name not in ("1a", "3a", "4a", "5", "controls", "cures")]
CLAIMS = STUDY.claims
ALONE = ("--preset", "tiny", "--workers", "1")  # to start another process takes longer than what it would do here

PANELS = [f"1{letter}" for letter in "abcde"] + [f"2{letter}" for letter in "abcdef"]
PANELS += [f"3{letter}" for letter in "abcd"] + [f"4{letter}" for letter in "abcdef"] + [str(n) for n in range(5, 16)]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory, composcope_once, tiny_runs):
    """What `composcope reproduce --preset tiny` prints, and the store and the folder that it leaves."""
    folder = tmp_path_factory.mktemp("reproduced")
    store, out = cs.Store(folder / "runs"), folder / "out"
    with pytest.MonkeyPatch.context() as monkeypatch:
        train_in_threads(monkeypatch)
        draw_quickly(monkeypatch)
        result = composcope_once("reproduce", *ALONE, "--store", store.folder, "--out", out)
    assert result.code == 0, result.err
    for run_id in store.run_ids():
        tiny_runs.add(run_id, store.run_folder(run_id).files())
    return result, store, out


def draw_quickly(monkeypatch):
    """In this process, since others take longer to start, and with fonts that are quick to embed."""
    monkeypatch.setattr("composcope.study.parallel.MIN_FOR_PROCESSES", 10**6)
    monkeypatch.setitem(STYLE, "pdf.fonttype", 3)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    draw_quickly(monkeypatch)


def test_every_figure_of_the_paper_is_there():
    assert set(PANELS) <= set(CATALOGUE)
    assert list(CATALOGUE)[: len(PANELS)] == PANELS


def test_every_claim_is_there_once():
    assert [claim.number for claim in CLAIMS] == list(range(1, 34))


@pytest.mark.parametrize("panel", CATALOGUE.values(), ids=lambda panel: panel.name)
def test_a_figure_has_a_claim_or_a_reason_for_none(panel):
    shown = [claim.number for claim in CLAIMS if panel.name in claim.figures]
    assert bool(shown) != bool(panel.no_claim)
    assert panel.title
    assert panel.see


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_is_complete(claim):
    assert claim.primary
    assert all(part.reason and part.measure for part in claim.parts)
    assert set(claim.figures) <= set(CATALOGUE)
    # What follows from definitions needs no picture; those of claims 25 and 32 are drawn once there are runs.
    assert claim.figures or all(part.exact for part in claim.parts) or claim.number in (25, 32)
    assert re.search(r"Sec\.|App\.|Fig\.", claim.source)


@pytest.mark.parametrize("preset", [QUICK, PAPER, TINY], ids=lambda preset: preset.name)
def test_claims_need_no_run_that_figures_do_not(preset):
    drawn = {run_id for panel in CATALOGUE.values() for run_id in specs_of(panel.plan(preset))}
    judged = {run_id for claim in CLAIMS for run_id in specs_of(claim.plan(preset))}
    assert judged <= drawn


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_without_runs_is_called_so(claim, store):
    evidence = RunCache(store).gather(TINY, claim.plan(TINY))
    judgement = judge(claim, Observations(STUDY.name, TINY.name, (), tuple(observe(claim, evidence))), TINY)
    if not all(part.exact for part in claim.parts):
        assert judgement.outcome == "not run"
        assert all(part.values == () for part in judgement.parts)


def test_the_plan_comes_first_and_the_ledger_last(reproduced):
    result, store, out = reproduced
    lines = result.out.splitlines()
    assert lines[0] == f"forced-rendering, preset tiny: {len(CATALOGUE)} figures, {len(CLAIMS)} claims"
    assert re.match(r"\d+ runs: 0 in .*, \d+ to do now", lines[1])
    assert lines[2].startswith("about ")
    assert f"{len(CLAIMS)} claims: " in result.out
    for path in (out / "figures", out / "tables", out / "claims.json", out / "report.html", store.folder):
        assert str(path) in result.out


def test_every_figure_is_drawn(reproduced):
    _, _, out = reproduced
    for name in CATALOGUE:
        assert (out / "figures" / f"figure_{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "figures" / f"figure_{name}.pdf").read_bytes().startswith(b"%PDF")
        table = (out / "tables" / f"figure_{name}.csv").read_text()
        assert 1 < table.count("\n") <= 41, name  # a heading, and few enough rows to read


def test_the_ledger_is_written(reproduced):
    _, _, out = reproduced
    ledger = json.loads((out / "claims.json").read_text())
    assert ledger["preset"] == "tiny"
    assert [claim["number"] for claim in ledger["claims"]] == list(range(1, 34))
    outcomes = {claim["outcome"] for claim in ledger["claims"]}
    assert outcomes <= {
        "seen at 8x8",
        "not seen at 8x8",
        "undetermined",
        "not run",
    }  # only the authors' setting can contradict


def test_store_and_evidence_each_alone_give_the_same_ledger(reproduced, composcope_once):
    result, store, out = reproduced
    from_store = composcope_once("claims", "--preset", "tiny", "--store", store.folder)
    assert from_store.code == 0, from_store.err
    assert from_store.out.splitlines()[-2] in result.out
    from_file = composcope_once("claims", "--evidence", out / "evidence.json")
    assert from_file.code == 0, from_file.err
    assert from_file.out == from_store.out
    twice = composcope_once("claims", "--evidence", out / "evidence.json", "--evidence", out / "evidence.json")
    assert twice.out == from_file.out  # two values of one seed count as one
    assert composcope_once("claims", "--evidence", out / "evidence.json", out / "evidence.json").out == from_file.out


def test_evidence_of_two_machines_is_written_as_one_ledger(reproduced, composcope_once, tmp_path):
    _, _, out = reproduced
    whole = json.loads((out / "evidence.json").read_text())
    for name, odd in (("a.json", 0), ("b.json", 1)):
        rows = [row for row in whole["observations"] if row["seed"] % 2 == odd]
        (tmp_path / name).write_text(json.dumps({**whole, "observations": rows}))
    given = (tmp_path / "a.json", tmp_path / "b.json", tmp_path / "a.json")
    made = composcope_once("claims", "--evidence", *given, "--out", tmp_path / "joined")
    assert made.code == 0, made.err
    assert (tmp_path / "joined" / "claims.json").read_bytes() == (out / "claims.json").read_bytes()
    joined = json.loads((tmp_path / "joined" / "evidence.json").read_text())["observations"]
    assert sorted(map(json.dumps, joined)) == sorted(map(json.dumps, whole["observations"]))


def test_runs_carry_what_was_claimed_when_they_were_trained(reproduced):
    _, store, out = reproduced
    run_id = CATALOGUE["1b"].plan(TINY)["bump"][0].run_id
    assert store.run_folder(run_id).provenance()["registration"] == STUDY.registration
    assert all(observation.registered for observation in read_evidence([out / "evidence.json"]).observations)


def test_figures_are_drawn_again_from_their_numbers(reproduced, composcope_once, tmp_path):
    _, _, out = reproduced
    for name in ("1e", "9"):
        (tmp_path / "numbers").mkdir(exist_ok=True)
        path = tmp_path / "numbers" / f"figure_{name}.npz"
        path.write_bytes((out / "numbers" / path.name).read_bytes())
    result = composcope_once("reproduce", "--redraw", "--workers", "1", "--out", tmp_path)
    assert result.code == 0, result.err
    assert result.out.startswith("2 figures")
    for path in (tmp_path / "figures").glob("*.png"):
        assert path.read_bytes() == (out / "figures" / path.name).read_bytes()


def machine(panel, evidence, keep):
    """The file of numbers of a machine that has those runs of which `keep(key, run)` is true, as it is read again."""
    kept = Evidence(TINY, {key: [run for run in runs if keep(key, run)] for key, runs in evidence.items()})
    return unpack_numbers(pack_numbers(numbers_of(panel, kept)))


def gathered(name, store):
    return RunCache(store).gather(TINY, CATALOGUE[name].plan(TINY))


def same(one, other):
    return pack_numbers(one) == pack_numbers(other)


@pytest.mark.parametrize("name", SEVERAL_SEEDS)
def test_seeds_of_two_machines_give_the_figure_of_one(name, reproduced):
    _, store, out = reproduced
    panel, evidence = CATALOGUE[name], gathered(name, store)
    whole = unpack_numbers((out / "numbers" / f"figure_{name}.npz").read_bytes())
    a, b = (machine(panel, evidence, lambda key, run, seed=seed: run.spec.seed == seed) for seed in (0, 1))
    assert same(a.joined(b), whole)
    assert same(b.joined(a), whole)
    assert same(a.joined(b).joined(b), whole)
    assert not same(a, whole)


@pytest.mark.parametrize("name", [name for name, panel in CATALOGUE.items() if panel.partial])
def test_kinds_of_run_of_two_machines_give_the_figure_of_one(name, reproduced):
    _, store, out = reproduced
    panel, evidence = CATALOGUE[name], gathered(name, store)
    keys = list(evidence)
    if len(keys) == 1:
        return  # nothing to divide
    whole = unpack_numbers((out / "numbers" / f"figure_{name}.npz").read_bytes())

    def half(odd):
        return machine(panel, evidence, lambda key, run: key in panel.essential or keys.index(key) % 2 == odd)

    a, b = half(0), half(1)
    assert a.lacking == tuple(map(label_of, keys[1::2]))
    assert same(a.joined(b), whole)
    assert same(b.joined(a), whole)


def test_where_two_machines_have_a_seed_the_first_counts(reproduced):
    _, store, _ = reproduced
    panel = CATALOGUE["2a"]
    mine = machine(panel, gathered("2a", store), lambda key, run: True)
    measure = "probe R2, in sample"
    theirs = replace(mine, rows=[{**row, measure: row[measure] + 1} for row in mine.rows])
    assert same(mine.joined(theirs), mine)
    assert same(theirs.joined(mine), theirs)


def test_what_cannot_be_joined_is_refused(reproduced):
    _, store, _ = reproduced
    panel = CATALOGUE["2a"]
    file = machine(panel, gathered("2a", store), lambda key, run: True)
    with pytest.raises(BadInput, match=r"numbers of 'preset tiny: 8 x 8' cannot be joined with those of 'preset quick"):
        file.joined(replace(file, about="preset quick: 16 x 16"))


def test_a_figure_is_drawn_from_what_there_is_and_says_what_is_not(reproduced, composcope_once, tmp_path):
    _, store, _ = reproduced
    plan = CATALOGUE["2d"].plan(TINY)
    first, *rest = plan
    for spec in plan[first]:
        shutil.copytree(store.folder / spec.run_id, tmp_path / "runs" / spec.run_id)
    shutil.copy(store.folder / "store.json", tmp_path / "runs")
    result = composcope_once(
        *("reproduce", "2d", "--preset", "tiny", "--no-train"),
        *("--store", tmp_path / "runs", "--out", tmp_path / "out"),
    )
    lacking = "; ".join(map(label_of, rest))
    assert f"figure 2d: drawn from what there is; no runs yet: {lacking}" in result.out
    content = (tmp_path / "out" / "numbers" / "figure_2d.npz").read_bytes()
    file = unpack_numbers(content)
    assert file.kinds == [first.label]
    assert file.caption().endswith(f"; no runs yet: {lacking}")


def test_a_figure_is_not_drawn_without_the_runs_that_it_is_about(reproduced, composcope_once, tmp_path):
    _, store, _ = reproduced
    plan = CATALOGUE["1d"].plan(TINY)
    for spec in plan["rate"]:
        shutil.copytree(store.folder / spec.run_id, tmp_path / "runs" / spec.run_id)
    shutil.copy(store.folder / "store.json", tmp_path / "runs")
    result = composcope_once(
        *("reproduce", "1d", "--preset", "tiny", "--no-train"),
        *("--store", tmp_path / "runs", "--out", tmp_path / "out"),
    )
    assert "figure 1d: no runs yet: bump; one-hot; positional" in result.out
    assert not (tmp_path / "out" / "numbers" / "figure_1d.npz").exists()


@pytest.mark.usefixtures("in_threads")
def test_a_claim_is_run_by_its_number(composcope_once, tmp_path):
    where = ("--store", tmp_path / "runs", "--out", tmp_path / "out")
    result = composcope_once("reproduce", "--claim", "2", *ALONE, *where)
    assert result.code == 0, result.err
    assert result.out.splitlines()[1].startswith("2 runs: 0 in ")
    assert "figure 1d: drawn from what there is; no runs yet: rate; one-hot; positional" in result.out
    assert "1 claim: 1 undetermined" in result.out
    assert "--claim trains runs and --redraw only draws" in composcope_once("reproduce", "--claim", "2", "--redraw").err


def test_numbers_of_two_folders_are_joined(reproduced, composcope_once, tmp_path):
    _, store, out = reproduced
    names = ("2d", "3d", "3a")
    for name in names:
        panel, evidence = CATALOGUE[name], gathered(name, store)
        for seed in (0, 1):
            path = tmp_path / str(seed) / "numbers" / f"figure_{name}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            file = machine(panel, evidence, lambda key, run, seed=seed: run.spec.seed == seed)
            path.write_bytes(pack_numbers(file))
    result = composcope_once("reproduce", "--redraw", "--out", tmp_path / "0", "--join", tmp_path / "1")
    assert result.code == 0, result.err
    for name in names:
        assert (tmp_path / "0" / "tables" / f"figure_{name}.csv").read_bytes() == (
            out / "tables" / f"figure_{name}.csv"
        ).read_bytes()
        drawn = tmp_path / "0" / "figures" / f"figure_{name}.png"
        assert drawn.read_bytes() == (out / "figures" / drawn.name).read_bytes()
    assert "--join needs --redraw" in composcope_once("reproduce", "--join", tmp_path).err
    nothing = composcope_once("reproduce", "--redraw", "--out", tmp_path / "0", "--join", tmp_path / "none")
    assert nothing.code == 2
    assert "has no folder 'numbers'" in nothing.err


def test_volume_maps_are_drawn_again_with_a_scale_per_layer(reproduced, composcope_once, tmp_path):
    _, _, out = reproduced
    shutil.copytree(out / "numbers", tmp_path / "numbers")
    result = composcope_once("reproduce", "2e", "3c", "--redraw", "--style", "layer-scale", "--out", tmp_path)
    assert result.code == 0, result.err
    drawn = tmp_path / "figures" / "figure_2e_layer-scale.png"
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {drawn.stem}
    assert drawn.read_bytes() != (out / "figures" / "figure_2e.png").read_bytes()
    wrong = composcope_once("reproduce", "--redraw", "--style", "layers", "--out", tmp_path)
    assert "--style 'layers': the figures of forced-rendering have layer-scale" in wrong.err
    assert "--style needs --redraw" in composcope_once("reproduce", "--style", "layer-scale").err


def test_numbers_of_figures_are_small(reproduced):
    _, _, out = reproduced
    assert {path.stem for path in (out / "numbers").iterdir()} == {f"figure_{name}" for name in CATALOGUE}
    assert max(path.stat().st_size for path in (out / "numbers").iterdir()) < 2e6


def test_runs_and_curves_are_written(reproduced):
    _, store, out = reproduced
    runs = (out / "runs.csv").read_text().splitlines()
    assert len(runs) - 1 == len(store.run_ids())
    assert "error.heldout_mse" in runs[0]
    assert (out / "curves.csv").read_text().startswith("epoch,step,loss")


def test_a_second_time_nothing_is_trained(reproduced, composcope_once, tmp_path):
    _, store, _ = reproduced
    result = composcope_once("reproduce", "1e", *ALONE, "--store", store.folder, "--out", tmp_path)
    assert result.code == 0
    assert "0 to do" in result.out
    assert "runs done" not in result.out


@pytest.mark.usefixtures("quick_workers")
def test_several_processes_give_the_same_figures_and_claims(reproduced, monkeypatch):
    """The same bytes as one process, and as the first time."""
    _, store, out = reproduced
    monkeypatch.setitem(STYLE, "pdf.fonttype", 42)
    request = make_request(STUDY, ["1e", "9"], "tiny")
    with LocalPool(1) as pool:
        alone, _ = draw_and_observe(request, store, pool)
    monkeypatch.setattr("composcope.study.parallel.MIN_FOR_PROCESSES", 1)
    with LocalPool(2) as pool:
        panels, observations = draw_and_observe(request, store, pool)
    assert panels == alone
    assert [panel.name for panel in panels] == ["1e", "9"]
    for panel in panels:
        assert panel.png == (out / "figures" / f"figure_{panel.name}.png").read_bytes()
    judged = {claim.number for claim in request.claims}
    whole = read_evidence([out / "evidence.json"]).observations
    assert observations == tuple(each for each in whole if each.claim in judged) != ()


def test_report_and_explorer_are_pages(reproduced, composcope_once, tmp_path):
    _, store, out = reproduced
    page = (out / "report.html").read_text()
    assert all(f'id="figure-{name}"' in page for name in CATALOGUE)
    run_id = CATALOGUE["1b"].plan(TINY)["bump"][0].run_id
    result = composcope_once("explore", run_id, "--store", store.folder, "--out", tmp_path / "explore.html")
    assert result.code == 0
    assert (tmp_path / "explore.html").read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("in_threads")
def test_one_figure_trains_only_what_it_needs_of_the_seeds_that_are_named(folder, composcope):
    """So that another machine adds seeds."""
    result = composcope(
        "reproduce", "3d", *ALONE, "--seeds", "15-16", "--store", folder, "--out", folder.parent / "out"
    )
    assert result.code == 0
    runs = [cs.Store(folder).run_folder(run_id).spec() for run_id in cs.Store(folder).run_ids()]
    assert sorted(run.seed for run in runs) == [15] * 4 + [16] * 4
    assert {path.name for path in (folder.parent / "out" / "figures").iterdir()} == {"figure_3d.png", "figure_3d.pdf"}


@pytest.mark.usefixtures("in_threads")
def test_a_figure_can_be_varied(folder, composcope):
    arguments = ("reproduce", "3d", *ALONE, "--seeds", "1", "--store", folder, "--out", folder.parent)
    result = composcope(*arguments, "--set", "penalties=[]", "--set", "task.sigma=2")
    assert result.code == 0
    runs = [cs.Store(folder).run_folder(run_id).spec() for run_id in cs.Store(folder).run_ids()]
    assert len(runs) == 1  # without their penalties the four are the same run
    assert runs[0].task.sigma == 2


@pytest.mark.usefixtures("in_threads")
def test_one_penalty_can_be_varied(folder, composcope):
    arguments = ("reproduce", "3d", *ALONE, "--seeds", "1", "--store", folder, "--out", folder.parent / "o")
    result = composcope(*arguments, "--set", "penalties.variance.weight=0.5")
    assert result.code == 0
    runs = [cs.Store(folder).run_folder(run_id).spec() for run_id in cs.Store(folder).run_ids()]
    weights = sorted(tuple((penalty.kind, penalty.weight) for penalty in run.penalties) for run in runs)
    assert weights == [(), (("entropy", 0.1),), (("entropy", 0.1), ("variance", 0.5)), (("variance", 0.5),)]
    ledger = json.loads((folder.parent / "o" / "claims.json").read_text())
    assert ledger["settings"] == ["penalties.variance.weight=0.5"]


def test_a_setting_cannot_make_seeds_of_one_run():
    plan = varied(CATALOGUE["3d"].plan(TINY), ["seed=0"])
    assert {len(specs) for specs in plan.values()} == {1}


@pytest.mark.slow
def test_a_damaged_run_costs_its_figure_and_not_the_rest(folder, composcope):
    out = folder.parent / "out"
    arguments = (*ALONE, "--store", folder, "--out", out)
    assert composcope("reproduce", "3d", "1e", *arguments).code == 0
    run_id = CATALOGUE["1e"].plan(TINY)["bump"][0].run_id
    (folder / run_id / "weights.safetensors").write_bytes(b"moths")
    result = composcope("reproduce", "3d", "1e", "--no-train", *arguments)
    assert result.code == 0
    assert f"figure 1e: {folder / run_id}" in result.out
    assert (out / "figures" / "figure_3d.png").is_file()
    assert not (out / "figures" / "figure_1e.png").exists()
    assert "checksum" in (out / "report.html").read_text()


@pytest.mark.usefixtures("in_threads")
def test_a_failed_run_costs_its_figure_and_not_the_rest(folder, composcope):
    out = folder.parent / "out"
    arguments = (*ALONE, "--seeds", "1", "--store", folder, "--out", out)
    result = composcope("reproduce", "3d", "1a", *arguments, "--set", "training.lr=1e30")
    assert result.code == 1
    assert "diverged" in result.err
    assert (out / "figures" / "figure_1a.png").is_file()
    assert (out / "report.html").is_file()


def test_dry_run_trains_nothing(folder, composcope):
    result = composcope("reproduce", "--preset", "tiny", "--store", folder, "--dry-run")
    assert result.code == 0
    assert "about" in result.out
    assert not folder.exists()


def test_without_training_what_is_missing_is_said(folder, composcope):
    out = folder.parent / "out"
    result = composcope("reproduce", "9", "--preset", "tiny", "--no-train", "--store", folder, "--out", out)
    assert result.code == 0
    assert "figure 9: no runs yet: rotation" in result.out
    assert not (out / "figures").exists()


def test_searches_continue_until_they_are_done(store):
    request = make_request(STUDY, ["4c"], "tiny")
    first = remaining_work(request, store)
    assert len(first.runs) >= first.later["4c"] + len(first.todo) > len(first.todo)
    while (work := remaining_work(request, store)).todo:
        for spec in work.todo.values():
            cs.run(spec, store)
    assert render(request.panels[0], TINY, (), RunCache(store)).png


def test_python_users_get_what_the_command_line_has(reproduced):
    _, store, _ = reproduced
    stages = []
    made = cs.reproduce(
        figures=["3d"], preset="tiny", store=store, train=False, on_event=lambda event: stages.append(event.stage)
    )
    assert [panel.name for panel in made.panels] == ["3d"]
    assert [judgement.number for judgement in made.ledger.judgements] == [7]
    assert len(made.frame) == 8
    assert stages == ["figures", "claims"]


def test_the_registration_is_up_to_date():
    """A claim that changes gets a new version, and results/registration.json its new hash, before it is judged."""
    path = Path(__file__).parent.parent / "results" / "registration.json"
    registered = json.loads(path.read_text())
    current = {str(claim.number): {"version": claim.version, "hash": claim.registration} for claim in CLAIMS}
    assert registered == {"study": STUDY.name, "claims": current}


def test_every_figure_has_a_page():
    pages = Path(__file__).parent.parent / "docs" / "figures"
    numbers = {re.sub("[a-f]$", "", name) for name in CATALOGUE}
    assert all((pages / f"{number}.md").is_file() for number in numbers)
