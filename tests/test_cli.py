"""The command line: its surface, its exit codes and what it prints."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import tomli_w
import typer

import composcope as cs
from composcope.cli import app
from processes import COMMAND
from refusals import refused

ENGINE = "--workers --time-limit --resource --dask --gather --shard"
SURFACE = {
    "run": "spec --set --store --plugin --device --threads --kernels",
    "sweep": f"sweep {ENGINE} --store --out --plugin --dry-run --kernels --only --limit --retry-failed",
    "status": "--store",
    "list": "--store --json",
    "show": "run_id --store --plugin --json",
    "compare": "run_ids --store --json",
    "init": "file",
    "components": "name --plugin --json",
    "diagnose": (
        "decoder --spec --weights --pick --out --only --draws --inputs --layers --device --geometry "
        "--memory --points --store --plugin --json --examples --labels --holdout --reader --n-samples"
    ),
    "measure": "run_ids --store --plugin",
    "forecast": "spec --set --out --store --plugin --json",
    "doctor": "--store",
    "studies": "--plugin",
    "reproduce": (
        f"figures {ENGINE} --study --kernels --redraw --style --join --preset --seeds --claim --store "
        "--out --set --plugin --dry-run --no-train"
    ),
    "claims": "files --study --evidence --preset --seeds --store --plugin --out --json",
    "report": "--study --preset --seeds --store --out --plugin",
    "explore": "run_ids --store --out --plugin",
}
SURFACE = {command: set(words.split()) for command, words in SURFACE.items()}


# The surface


def test_commands_and_options_stay():
    commands = typer.main.get_command(app).commands
    found = {
        name: {next((o for o in parameter.opts if o.startswith("--")), parameter.name) for parameter in command.params}
        for name, command in commands.items()
    }
    assert {name: options - {"--help"} for name, options in found.items()} == SURFACE


@pytest.mark.parametrize("command", [[], *([name] for name in SURFACE)], ids=str)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_every_command(command, flag, composcope):
    result = composcope(*command, flag)
    assert result.code == 0
    assert "Usage" in result.out
    for option in SURFACE[command[0]] if command else SURFACE:
        assert option in result.out


def test_version(composcope):
    result = composcope("--version")
    assert result.code == 0
    assert result.out == f"composcope {cs.__version__}\n"


# Good use


def test_run_twice_trains_once(composcope, tiny_toml, folder, tiny_spec):
    first = composcope("run", tiny_toml, "--store", folder)
    assert first.code == 0
    assert f"run {tiny_spec.run_id}: trained in" in first.out
    assert "heldout_mse" in first.out
    assert not first.err
    second = composcope("run", tiny_toml, "--store", folder)
    assert second.code == 0
    assert f"run {tiny_spec.run_id}: loaded from" in second.out
    assert second.out.splitlines()[1:] == first.out.splitlines()[1:]


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        (["decoder.depth=2"], lambda spec: spec.decoder.depth == 2),
        (["decoder.depth=2", "decoder.width=4"], lambda spec: (spec.decoder.depth, spec.decoder.width) == (2, 4)),
        (["encoding.kind=onehot"], lambda spec: spec.encoding == cs.OneHot()),
        (['encoding.kind="onehot"'], lambda spec: spec.encoding == cs.OneHot()),
        (["training.steps=", "training.epochs=1"], lambda spec: spec.training.epochs == 1),
        (["decoder.width="], lambda spec: spec.decoder.width == cs.MLP().width),
        (["holdout={kind='corner', lo=5}"], lambda spec: spec.holdout == cs.Corner(5)),
        (["task.polarity=bright", "seed = 3"], lambda spec: (spec.task.polarity, spec.seed) == ("bright", 3)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_fields_can_be_set(settings, changed, composcope, tiny_toml, folder):
    result = composcope("run", tiny_toml, "--store", folder, *(part for s in settings for part in ("--set", s)))
    assert result.code == 0, result.err
    (run_id,) = cs.Store(folder).run_ids()
    assert changed(cs.Store(folder).run_folder(run_id).spec())


def test_list_and_show(composcope, tiny_toml, folder, tiny_spec):
    composcope("run", tiny_toml, "--store", folder)
    composcope("run", tiny_toml, "--store", folder, "--set", "seed=1")
    listed = composcope("list", "--store", folder)
    assert listed.code == 0
    lines = listed.out.splitlines()
    assert lines[0].split()[:2] == ["run_id", "status"]
    assert sorted(line.split()[1] for line in lines[1:]) == ["done", "done"]
    shown = composcope("show", tiny_spec.run_id[:10], "--store", folder)
    assert shown.code == 0
    for text in (tiny_spec.run_id, "[decoder]", "composition", "heldout_mse", "loss", "torch"):
        assert text in shown.out


def test_list_of_an_empty_store(composcope, folder):
    result = composcope("list", "--store", folder)
    assert result.code == 0
    assert "no runs" in result.out
    assert not folder.exists()


def test_list_and_show_name_the_damaged_file(composcope, tiny_toml, folder, tiny_spec):
    composcope("run", tiny_toml, "--store", folder)
    composcope("run", tiny_toml, "--store", folder, "--set", "seed=1")
    (folder / tiny_spec.run_id / "weights.safetensors").write_bytes(b"gone")
    listed = composcope("list", "--store", folder)
    assert listed.code == 0
    assert sorted(line.split()[1] for line in listed.out.splitlines()[1:3]) == ["damaged", "done"]
    assert "weights.safetensors: its checksum does not match" in listed.out
    for command in (["show", tiny_spec.run_id], ["run", tiny_toml]):
        result = composcope(*command, "--store", folder)
        assert result.code == 1
        assert "weights.safetensors" in result.out + result.err


def test_list_of_only_damaged_and_failed_runs(composcope, tiny_toml, folder, tiny_spec):
    composcope("run", tiny_toml, "--store", folder)
    composcope("run", tiny_toml, "--store", folder, "--set", "training.lr=1e30")
    (folder / tiny_spec.run_id / "spec.json").write_bytes(b"\xff\x00")
    listed = composcope("list", "--store", folder)
    assert listed.code == 0
    assert sorted(line.split()[1] for line in listed.out.splitlines()[1:3]) == ["damaged", "failed"]


def test_doctor(composcope, folder):
    result = composcope("doctor", "--store", folder)
    assert result.code == 0
    for text in ("composcope: ", "python: ", "torch: ", "cores: ", "threads: ", "store: ", "extra"):
        assert text in result.out
    assert not folder.exists()


def test_doctor_tells_of_an_unusable_store(composcope, tmp_path):
    (tmp_path / "file").write_text("")
    for store in (tmp_path / "file", tmp_path / "file" / "below"):
        result = composcope("doctor", "--store", store)
        assert result.code == 0
        assert "PROBLEM" in result.out or "CANNOT" in result.out


def test_dry_run_of_a_sweep_writes_nothing(composcope, folder):
    example = Path(__file__).parents[1] / "examples" / "sweep.toml"
    result = composcope("sweep", example, "--dry-run", "--store", folder)
    assert result.code == 0
    assert "8 runs: 0 done, 8 to do" in result.out
    assert re.search(r"about \d+ s", result.out)
    assert not folder.exists()


MINE = """
import torch
import composcope as cs

@cs.register("triangle")
class Triangle(cs.Holdout):
    def contains(self, latents, factors=None):
        return latents.sum(1) < 5

@cs.register("linear")
class Linear(cs.Decoder):
    bias: bool = True

    def build(self, code_sizes, image_shape):
        layer = torch.nn.Linear(sum(code_sizes), image_shape[1] * image_shape[2], bias=self.bias)
        return torch.nn.Sequential(torch.nn.Sequential(layer, torch.nn.Unflatten(1, image_shape)))
"""


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


@pytest.mark.usefixtures("no_new_kinds")
def test_own_decoder_and_holdout_from_a_plugin(composcope, tiny_toml, folder, plugin):
    own = ["--set", "decoder={kind='linear', bias=false}", "--set", "holdout={kind='triangle'}"]
    refused = composcope("run", tiny_toml, "--store", folder, *own)
    assert refused.code == 2
    assert "linear" in refused.err
    result = composcope("run", tiny_toml, "--store", folder, *own, "--plugin", plugin)
    assert result.code == 0, result.err
    (run_id,) = cs.Store(folder).run_ids()
    assert composcope("show", run_id, "--store", folder, "--plugin", plugin).code == 0
    assert composcope("list", "--store", folder).code == 0


@pytest.mark.usefixtures("no_new_kinds", "quick_workers")
def test_sweep_with_a_plugin_and_a_failing_run(composcope, tiny_spec, folder, plugin, tmp_path):
    base = {**tiny_spec.to_dict(), "decoder": {"kind": "linear"}}
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(tomli_w.dumps({"base": base, "vary": {"training.lr": [1e-3, 1e30, 1e-2]}}))
    result = composcope("sweep", sweep, "--store", folder, "--workers", "1", "--plugin", plugin)
    assert result.code == 1
    assert "2 runs done, 1 failed" in result.out
    assert "diverged" in result.err
    assert sorted(cs.Store(folder).frame()["status"]) == ["done", "done", "failed"]


@pytest.fixture
def sweep_file(tiny_spec, tmp_path):
    path = tmp_path / "many.toml"
    lists = {"decoder.depth": [1, 2], "seed": [0, 1], "training.lr": [1e-3, 1e30]}
    path.write_text(tomli_w.dumps({"base": tiny_spec.to_dict(), "vary": lists}))
    return path


@pytest.mark.usefixtures("in_threads")
def test_a_sweep_in_parts_until_the_last_writes_the_summary(composcope, sweep_file, folder):
    first = composcope("sweep", sweep_file, "--store", folder, "--only", "training.lr=0.001", "--limit", "1")
    assert first.code == 0, first.err
    assert "4 runs: 0 done, 1 to do" in first.out
    assert "3 runs left" in first.out
    parts = [composcope("sweep", sweep_file, "--store", folder, "--shard", f"{index}/2") for index in (1, 2)]
    assert "runs left" in parts[0].out
    assert parts[1].code == 1  # four runs diverged
    assert f"summary: {folder / 'summaries' / 'many.csv'}" in parts[1].out
    counts = [int(re.search(r"(\d+) to do", part.out)[1]) for part in parts]
    assert sum(counts) == 7
    status = composcope("status", "--store", folder)
    assert "4 runs done, 4 failed" in status.out
    assert status.out.count("finished") == 3
    again = composcope("sweep", sweep_file, "--store", folder)
    assert "8 runs: 4 done, 0 to do, 4 failed before (--retry-failed)" in again.out
    assert again.code == 1
    retried = composcope("sweep", sweep_file, "--store", folder, "--retry-failed", "--out", folder.parent / "out")
    assert "8 runs: 4 done, 4 to do" in retried.out
    assert sorted(path.name for path in (folder.parent / "out").iterdir()) == ["many.csv", "many.parquet"]


@pytest.mark.usefixtures("in_threads")
def test_only_runs_by_id(composcope, sweep_file, folder):
    run_id = cs.Sweep.from_toml(sweep_file).specs()[0].run_id
    assert "1 run: 0 done, 1 to do" in composcope("sweep", sweep_file, "--store", folder, "--only", run_id[:12]).out
    assert cs.Store(folder).run_ids() == [run_id]
    refused_ = composcope("sweep", sweep_file, "--store", folder, "--only", "zzz")
    assert (refused_.code, refused_.out) == (2, "")


def test_a_dry_run_names_the_cost_of_each_part(composcope, sweep_file, folder):
    result = composcope("sweep", sweep_file, "--store", folder, "--dry-run")
    assert result.code == 0
    for text in ("decoder.depth = 1", "decoder.depth = 2", "training.lr = 0.001", "CPU time", "all"):
        assert text in result.out
    assert "seed = " not in result.out
    assert not folder.exists()


def test_status_of_a_store_without_sweeps(composcope, folder):
    result = composcope("status", "--store", folder)
    assert (result.code, result.err) == (0, "")
    assert "no sweep has run" in result.out
    assert not folder.exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--shard", "3/2"], "--shard '3/2'"),
        (["--dask", "localhost"], "tcp://HOST:PORT"),
        (["--gather"], "only with --dask"),
        (["--resource", "gpu=1"], "--resource 'gpu=1'"),
        (["--out", "/dev/null/x"], "cannot be written"),
        (["--out", "x" * 300], "File name too long"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_bad_options_of_many_runs_are_told_before_any_work(options, complaint, composcope, sweep_file, folder):
    for command in (["sweep", sweep_file], ["reproduce", "1b"]):
        assert refused(composcope(*command, "--store", folder, *options), complaint)
        assert not folder.exists()


@pytest.mark.parametrize("command", ["list", "status", "report", "doctor"])
def test_a_store_with_a_name_that_is_too_long(command, composcope, tmp_path):
    result = composcope(command, "--store", tmp_path / ("x" * 300))
    assert "Traceback" not in result.err
    assert "too long" in result.out + result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no /dev/full")
def test_output_to_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*COMMAND, "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert result.returncode == 1
    assert result.stderr.startswith("error: cannot read or write: No space left on device; make room")
    assert result.stderr.count("\n") == 1


def test_failed_run_ends_with_one(composcope, tiny_toml, folder):
    result = composcope("run", tiny_toml, "--store", folder, "--set", "training.lr=1e30")
    assert result.code == 1
    assert "diverged" in result.err
    assert "Traceback" not in result.err
    listed = composcope("list", "--store", folder)
    assert listed.code == 0
    assert "failed" in listed.out
    (run_id,) = cs.Store(folder).run_ids()
    shown = composcope("show", run_id, "--store", folder)
    assert shown.code == 1
    assert "diverged" in shown.out


def test_holding_out_a_whole_factor_value_is_a_warning(composcope, tiny_toml, folder):
    result = composcope("run", tiny_toml, "--store", folder, "--set", "holdout={kind='cross', lo=3, hi=4}")
    assert result.code == 0
    assert result.err == (
        "warning: holdout: extrapolation, not composition: values never seen in training: x = 3, 4; y = 3, 4;"
        " to test composition, hold out combinations only (square, corner, box)\n"
    )
    (run_id,) = cs.Store(folder).run_ids()
    assert "extrapolation, not composition" in composcope("show", run_id, "--store", folder).out


def test_only_interrupts_are_not_reported_while_a_command_ends(monkeypatch):
    from composcope.cli import interrupt

    reported = []
    monkeypatch.setattr("sys.__unraisablehook__", lambda unraisable: reported.append(unraisable.exc_type))
    for exc_type in (KeyboardInterrupt, ValueError):
        interrupt._ignore_interrupts(SimpleNamespace(exc_type=exc_type))
    assert reported == [ValueError]
