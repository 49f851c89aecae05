"""Thousands of runs: listings, frames, sweeps and reports of them, and that they say the same as of one run."""

import subprocess
import sys
from dataclasses import replace

import pytest
import tomli_w

import composcope as cs
from composcope.pages import report as report_room
from composcope.pages.runs import run_row, short_row
from processes import output_of


def fill(store, spec, runs, diagnosed=False):
    """Copies of one run under many seeds."""
    first = cs.run(spec, store)
    trained = cs.Trained(dict(first.weights), first.curve.to_dict("records"), first.seconds)
    diagnosis = first.diagnose() if diagnosed else None
    for seed in range(runs):
        copy = replace(spec, seed=seed)
        store.save(copy, trained, first.provenance)
        store.run_folder(copy.run_id).save_measures("error", 2, first.error)
        if diagnosis is not None:
            store.run_folder(copy.run_id).save_diagnosis(diagnosis)


def test_listing_and_showing_need_no_pytorch(tiny_spec, store, folder):
    run = cs.run(tiny_spec, store)
    code = """
import sys
from composcope.cli import main
try:
    main(sys.argv[1:])
finally:
    assert "torch" not in sys.modules
"""
    for command in (["list"], ["show", run.run_id]):
        command = [sys.executable, "-c", code, *command, "--store", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_a_report_says_the_same_of_a_run_in_short(tiny_spec, store):
    run = cs.run(tiny_spec, store)
    _ = run.diagnosis
    whole, short = run_row(store, run.run_id), short_row(store, store.record(run.run_id))
    assert (short.title, short.about, short.kind, short.composition) == (
        whole.title,
        whole.about,
        whole.kind,
        whole.composition,
    )
    assert short.shares == pytest.approx(whole.shares)
    assert short.part is None
    assert "composcope diagnose" in short.problem


def test_a_report_embeds_some_diagnoses_and_lists_some_runs(tiny_spec, store, tmp_path, monkeypatch):
    from pages import made_up

    fill(store, tiny_spec, 6, diagnosed=True)
    monkeypatch.setattr(report_room, "MAX_DIAGNOSES", 2)
    monkeypatch.setattr(report_room, "MAX_ROWS", 4)
    page = report_room.write_report(made_up(store), tmp_path / "report.html").read_text()
    assert page.count('class="diagnosis') >= 1
    assert page.count('<template id="content-') == 4
    assert "further runs are summarised" in page


@pytest.mark.slow
def test_ten_thousand_runs(tiny_spec, store, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fill(store, tiny_spec, 10_000)
    frame = store.frame()
    assert len(frame) == 10_000
    assert (frame["status"] == "done").all()
    first = output_of("list", "--store", folder)
    assert output_of("list", "--store", folder) == first  # from the index
    assert sum(run_id in first for run_id in store.run_ids()) == 10_000
    chosen = store.run_ids()[5000]
    assert chosen in output_of("show", chosen, "--store", folder)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(tomli_w.dumps({"base": tiny_spec.to_dict(), "vary": {"seed": list(range(10_000))}}))
    monkeypatch.delenv("XDG_CACHE_HOME")  # the kernels are compiled already
    assert "10000 done" in output_of("sweep", sweep, "--store", folder, "--dry-run")
    page = tmp_path / "report.html"
    output_of("report", "--preset", "tiny", "--store", folder, "--out", page)
    assert page.stat().st_size < 25e6


@pytest.mark.slow
def test_a_report_of_a_thousand_diagnosed_runs(tiny_spec, store, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fill(store, tiny_spec, 1000, diagnosed=True)
    page = tmp_path / "report.html"
    output_of("report", "--preset", "tiny", "--store", folder, "--out", page)
    assert page.stat().st_size < 25e6
