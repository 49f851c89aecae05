"""A study in one file of a user's own: run, judged and reported without touching any other file."""

import json
from pathlib import Path

import pytest

import composcope as cs
from composcope.runs.plugins import load_plugin

FILE = Path(__file__).parent.parent / "examples" / "own_study.py"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setattr("composcope.study.study._registered", {})
    module = load_plugin(FILE)
    monkeypatch.setitem(module.STEPS, "small", 8)
    return module


def test_the_example_fits_on_two_screens():
    assert len(FILE.read_text().splitlines()) < 110


def test_it_is_listed(composcope, monkeypatch):
    monkeypatch.setattr("composcope.study.study._registered", {})
    result = composcope("studies", "--plugin", FILE)
    assert "stripes-for-mlps: Do stripes help an MLP compose?" in result.out
    assert "forced-rendering: " in result.out
    assert "  1 figure, 1 claim" in result.out


@pytest.mark.usefixtures("in_threads")
def test_it_runs_from_python(example, store, tmp_path):
    events = []
    made = cs.reproduce("stripes-for-mlps", store=store, workers=1, on_event=events.append)
    assert made.panels[0].png.startswith(b"\x89PNG")
    assert [judgement.number for judgement in made.ledger.judgements] == [1]
    assert len(made.ledger.judgements[0].primary[0].values) == 3
    assert len(made.frame) == 6
    assert {type(event).__name__ for event in events} == {"Planned", "Progress", "RoundFinished"}
    out = made.write(tmp_path / "out")
    assert (out / "figures" / "figure_1.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "tables" / "figure_1.csv").read_text().count("\n") == 7


@pytest.mark.slow
def test_it_runs_from_the_command_line(composcope, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("composcope.study.study._registered", {})
    shorter = tmp_path / "own_study.py"
    shorter.write_text(FILE.read_text().replace('"small": 300', '"small": 8'))
    out = tmp_path / "out"
    options = ("--study", "stripes-for-mlps", "--plugin", shorter, "--store", folder)
    result = composcope("reproduce", *options, "--out", out)
    assert result.code == 0, result.err
    assert result.out.startswith("stripes-for-mlps, preset small: 1 figure, 1 claim")
    assert json.loads((out / "claims.json").read_text())["study"] == "stripes-for-mlps"
    page = (out / "report.html").read_text()
    assert "Do stripes help an MLP compose?" in page
    assert "composcope reproduce 1 --study stripes-for-mlps --preset small" in page
    assert "of 3 MLPs trained on stripes too do" in page
    assert "trained on seen combinations" not in page
    assert "1 claim: " in composcope("claims", *options).out
    assert composcope("report", *options, "--out", tmp_path / "again.html").code == 0
