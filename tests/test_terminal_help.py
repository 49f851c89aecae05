"""What a newcomer meets in the terminal: help, completion, files to start from, JSON, pictures, comparisons."""

import io
import json
import os
import re
import subprocess
import sys
import tomllib

import numpy as np
import pytest
import typer
from rich.console import Console

import composcope as cs
from composcope import terminal
from composcope.cli import app
from composcope.cli.app import ORDER

COMMANDS = typer.main.get_command(app).commands


# Help


def test_without_arguments_it_shows_three_first_things(composcope):
    result = composcope()
    assert result.code == 0
    shown = re.findall(r"^  composcope (\w+)", result.out, re.MULTILINE)
    assert shown == ["reproduce", "init", "diagnose"]
    assert max(map(len, result.out.splitlines())) <= 120


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_group_and_a_summary_on_one_line(name):
    command = COMMANDS[name]
    assert command.rich_help_panel in ORDER, "choose a group of cli/groups.py"
    width = 80 - 6 - max(map(len, COMMANDS))  # the frame and the names
    assert 0 < len(command.short_help) <= width, "give it a short_help that fits on a line of 80 columns"


def test_help_lists_the_groups_in_order(composcope, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = composcope("--help").out
    positions = [out.index(f"─ {group} ") for group in ORDER]
    assert positions == sorted(positions)
    for command in COMMANDS.values():
        assert command.short_help in out


def test_no_help_text_is_taken_for_markup():
    texts = [command.help for command in COMMANDS.values()]
    texts += [getattr(parameter, "help", None) for command in COMMANDS.values() for parameter in command.params]
    assert not [text for text in texts if text and re.search(r"(?<!\\)\[[a-z]", text)], "escape [ as \\["


def test_the_shell_completes_commands_and_run_ids(tmp_path):
    for run_id in ("0123456789abcdef", "01ffffffffffffff", "ff00000000000000"):
        (tmp_path / "runs" / run_id).mkdir(parents=True)

    def complete(words):
        code = "import sys; sys.argv[0] = 'composcope'; from composcope.cli import main; main()"
        asked = {"_COMPOSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = [sys.executable, "-c", code]
        result = subprocess.run(command, cwd=tmp_path, env=os.environ | asked, capture_output=True, text=True)
        return result.stdout.split()

    assert complete("composcope repr") == ["reproduce"]
    assert complete("composcope show 01") == ["0123456789abcdef", "01ffffffffffffff"]


# init


def test_init_writes_a_spec_that_runs(composcope, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = composcope("init", "spec.toml")
    assert result.code == 0
    assert result.out == "wrote spec.toml; next: composcope run spec.toml\n"
    text = (tmp_path / "spec.toml").read_text()
    assert "FILE" not in text
    assert "composcope run spec.toml" in text
    assert cs.Spec.from_toml("spec.toml") == cs.Spec.from_dict(tomllib.loads(text))
    again = composcope("init", "spec.toml")
    assert again.code == 2
    assert "exists already" in again.err
    assert (tmp_path / "spec.toml").read_text() == text


def test_init_writes_a_sweep(composcope, tmp_path):
    path = tmp_path / "new" / "sweep_depth.toml"
    assert composcope("init", path).code == 0
    assert len(cs.Sweep.from_toml(path).specs()) == 8


@pytest.mark.usefixtures("no_new_kinds")
def test_init_writes_a_study_that_is_known(composcope, tmp_path, monkeypatch):
    monkeypatch.setattr("composcope.study.study._registered", {})
    path = tmp_path / "study.py"
    assert composcope("init", path).code == 0
    result = composcope("reproduce", "--study", "my-study", "--plugin", path, "--dry-run", "--store", tmp_path / "runs")
    assert result.code == 0, result.err
    assert "my-study, preset small: 1 figure, 1 claim" in result.out
    assert "6 runs" in result.out


def test_init_says_which_names_it_knows(composcope, tmp_path):
    result = composcope("init", tmp_path / "notes.txt")
    assert result.code == 2
    assert ".toml" in result.err
    assert ".py" in result.err


# components


def test_components_lists_every_kind_with_its_fields(composcope):
    out = composcope("components").out
    for role in (cs.Task, cs.Holdout, cs.Encoding, cs.Decoder, cs.Sampling, cs.Penalty):
        for kind in role.kinds:
            assert f'kind = "{kind}"' in out
    assert "polarity: 'dark' | 'bright' = 'dark'" in out
    assert "lo: float, must be given" in out
    assert "FieldInfo" not in out
    assert "Annotated" not in out


def test_components_of_a_role_or_a_kind(composcope):
    decoders = composcope("components", "decoders").out
    assert decoders == composcope("components", "decoder").out
    assert 'kind = "square"' not in decoders
    assert composcope("components", "cnn").out in decoders
    (described,) = json.loads(composcope("components", "square", "--json").out)
    assert described["fields"][0] == {"name": "lo", "type": "float", "default": None}
    unknown = composcope("components", "cmn")
    assert unknown.code == 2
    assert "did you mean 'cnn'" in unknown.err


# compare and JSON


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    store = cs.Store(tmp_path_factory.mktemp("two") / "runs")
    specs = [
        cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), cs.MLP(depth=depth, width=8), training=cs.Training(steps=2))
        for depth in (1, 2)
    ]
    return store, [cs.run(spec, store) for spec in specs]


def test_compare_prints_what_differs(composcope, two_runs):
    store, (first, second) = two_runs
    result = composcope("compare", first.run_id[:8], second.run_id, "--store", store.folder)
    assert result.code == 0
    lines = {line.split()[0]: line.split()[1:] for line in result.out.splitlines() if line.strip()}
    assert lines["decoder.depth"] == ["1", "2"]
    assert lines["error.heldout_mse"] == [f"{run.error['heldout_mse']:.4g}" for run in (first, second)]
    assert "decoder.width" not in lines
    data = json.loads(composcope("compare", first.run_id, second.run_id, "--store", store.folder, "--json").out)
    assert data["settings"] == {"decoder.depth": {first.run_id: 1, second.run_id: 2}}


def test_compare_needs_two_finished_runs(composcope, two_runs):
    store, (first, _) = two_runs
    result = composcope("compare", first.run_id, "--store", store.folder)
    assert result.code == 2
    assert "at least two runs" in result.err
    same = composcope("compare", first.run_id, first.run_id, "--store", store.folder)
    assert "spec: no difference" in same.out


def test_json_of_list_show_and_diagnose(composcope, two_runs):
    store, (first, second) = two_runs
    listed = json.loads(composcope("list", "--store", store.folder, "--json").out)
    assert {row["run_id"] for row in listed} == {first.run_id, second.run_id}
    shown = json.loads(composcope("show", first.run_id, "--store", store.folder, "--json").out)
    assert cs.Spec.from_dict(shown["spec"]) == first.spec
    assert shown["measures"]["error"]["heldout_mse"] == first.error["heldout_mse"]
    command = ["diagnose", first.run_id, "--only", "verdict", "--store", store.folder, "--json"]
    numbers = json.loads(composcope(*command).out)
    assert numbers["verdict"]["kind"]


def test_json_of_an_empty_store_and_of_claims(composcope, tmp_path):
    assert json.loads(composcope("list", "--store", tmp_path / "none", "--json").out) == []
    ledger = json.loads(composcope("claims", "--store", tmp_path / "none", "--preset", "tiny", "--json").out)
    assert len(ledger["claims"]) == 33


# Pictures in the terminal


def colours(text):
    return re.findall(r"\x1b\[38;2;(\d+;\d+;\d+);48;2;(\d+;\d+;\d+)m", text)


def test_images_are_drawn_two_pixels_to_a_character():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80)
    image = np.array([[[[1.0, 0.0], [0.0, 0.5]]]])
    terminal.print_images([image], console)
    assert colours(file.getvalue()) == [("255;255;255", "0;0;0"), ("0;0;0", "128;128;128")]


def test_large_images_are_averaged():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80)
    terminal.print_images([np.full((1, 3, 32, 32), 0.2)], console)
    assert colours(file.getvalue()) == [("51;51;51", "51;51;51")] * (16 * 8)


def test_show_draws_only_where_there_is_a_terminal(composcope, two_runs, monkeypatch):
    store, (first, _) = two_runs
    assert "held-out images" not in composcope("show", first.run_id, "--store", store.folder).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    monkeypatch.setattr(terminal, "can_draw", lambda: True)
    drawn = composcope("show", first.run_id, "--store", store.folder).out
    assert "held-out images: true above, drawn below" in drawn
    assert "▀" in drawn
