"""The command line: its surface, its exit codes and what it says to bad input."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
import typer

import composcope as cs
from composcope.cli import app

SURFACE = {
    "run": {"spec", "--set", "--store", "--plugin", "--device", "--threads", "--kernels"},
    "sweep": {
        "sweep",
        "--workers",
        "--store",
        "--out",
        "--plugin",
        "--dry-run",
        "--kernels",
        "--only",
        "--limit",
        "--retry-failed",
        "--time-limit",
        "--resource",
        "--dask",
        "--gather",
        "--shard",
    },
    "status": {"--store"},
    "list": {"--store", "--json"},
    "show": {"run_id", "--store", "--plugin", "--json"},
    "compare": {"run_ids", "--store", "--json"},
    "init": {"file"},
    "components": {"name", "--plugin", "--json"},
    "diagnose": {
        *("decoder", "--spec", "--weights", "--pick", "--out", "--only", "--draws", "--inputs", "--layers"),
        *("--device", "--geometry", "--memory", "--points", "--store", "--plugin", "--json"),
    },
    "measure": {"run_ids", "--store", "--plugin"},
    "forecast": {"spec", "--set", "--out", "--store", "--plugin", "--json"},
    "doctor": {"--store"},
    "studies": {"--plugin"},
    "reproduce": {
        "figures",
        "--study",
        "--kernels",
        "--redraw",
        "--preset",
        "--seeds",
        "--workers",
        "--store",
        "--out",
        "--set",
        "--plugin",
        "--dry-run",
        "--no-train",
        "--time-limit",
        "--resource",
        "--dask",
        "--gather",
        "--shard",
    },
    "claims": {"--study", "--evidence", "--preset", "--seeds", "--store", "--plugin", "--json"},
    "report": {"--study", "--preset", "--seeds", "--store", "--out", "--plugin"},
    "explore": {"run_ids", "--store", "--out", "--plugin"},
}


def subprocess_of(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", "from composcope.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


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
    assert changed(cs.Store(folder).spec(run_id))


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


@pytest.mark.usefixtures("no_new_kinds")
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


@pytest.fixture
def in_threads(monkeypatch):
    """Sweeps use threads of this process, which start at once."""
    from concurrent.futures import ThreadPoolExecutor

    class Threads(ThreadPoolExecutor):
        def __init__(self, workers, slots):
            super().__init__(1)
            self.slots = slots

        def steps(self):
            return [0.0] * self.slots

    monkeypatch.setattr("composcope.experiments.executor.LocalPool", Threads)


@pytest.mark.usefixtures("in_threads")
def test_a_sweep_in_parts_until_the_last_writes_the_summary(composcope, sweep_file, folder):
    first = composcope("sweep", sweep_file, "--store", folder, "--only", "training.lr=0.001", "--limit", "1")
    assert first.code == 0, first.err
    assert "4 runs: 0 done, 1 to do" in first.out
    assert "3 runs are left" in first.out
    parts = [composcope("sweep", sweep_file, "--store", folder, "--shard", f"{index}/2") for index in (1, 2)]
    assert "runs are left" in parts[0].out
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
    assert "1 runs: 0 done, 1 to do" in composcope("sweep", sweep_file, "--store", folder, "--only", run_id[:12]).out
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
            [sys.executable, "-c", "from composcope.cli import main; main()", "--version"],
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


def test_withholding_a_whole_factor_value_is_a_warning(composcope, tiny_toml, folder):
    result = composcope("run", tiny_toml, "--store", folder, "--set", "holdout={kind='cross', lo=3, hi=4}")
    assert result.code == 0
    assert result.err == (
        "warning: holdout: extrapolation, not composition: values never seen in training: x = 3, 4; y = 3, 4;"
        " to test composition, withhold combinations only (square, corner, box)\n"
    )
    (run_id,) = cs.Store(folder).run_ids()
    assert "extrapolation, not composition" in composcope("show", run_id, "--store", folder).out


# Bad input: exit 2, a message with field, value and what is allowed, no traceback, nothing written

BAD_FIELDS = {
    "unknown key": ("decoder.dept=3", "decoder", "'dept'", "did you mean 'depth'?", "allowed: depth, width"),
    "unknown key at the top": ("sede=3", "'sede'", "did you mean 'seed'?", "allowed: task, holdout"),
    "unknown key in training": ("training.stpes=3", "training", "'stpes'", "did you mean 'steps'?"),
    "unknown kind": ("decoder.kind=mpl", "decoder", "'mpl'", "did you mean 'mlp'?", "choose from: "),
    "missing part": ("decoder=", "decoder", "missing"),
    "missing kind": ("decoder={depth=1}", "decoder", "needs a kind", "mlp"),
    "text for a number": ("decoder.depth=six", "decoder.depth", "'six'", "integer"),
    "fraction for a whole number": ("decoder.depth=1.5", "decoder.depth", "1.5", "integer"),
    "text that is a number": ("task.size='8'", "task.size", "'8'", "integer"),
    "truth for a number": ("decoder.width=true", "decoder.width", "True", "integer"),
    "number for a table": ("task=3", "task", "3", "expected a task"),
    "number for training": ("training=3", "training", "3"),
    "number for penalties": ("penalties=3", "penalties", "3"),
    "size 0": ("task.size=0", "task.size", "0", "greater than or equal to 2"),
    "sigma 0": ("task.sigma=0", "task.sigma", "0", "greater than 0"),
    "negative sigma": ("task.sigma=-1.5", "task.sigma", "-1.5", "greater than 0"),
    "unknown polarity": ("task.polarity=grey", "task.polarity", "'grey'", "'dark' or 'bright'"),
    "lo above hi": ("holdout.lo=6", "holdout", "lo = 6 is above hi = 5"),
    "hi outside the grid": ("holdout.hi=40", "holdout", "hi = 40", "0 to 7"),
    "lo outside the grid": ("holdout.lo=-1", "holdout", "lo = -1", "0 to 7"),
    "everything withheld": ("holdout={kind='square', lo=0, hi=7}", "holdout", "hi=7", "holds out all 64"),
    "unknown factor": ("holdout={kind='interval', factor='z', lo=0, hi=2}", "holdout", "'z'", "the factors are x, y"),
    "union of nothing": ("holdout={kind='union', of=[]}", "holdout", "of", "[]"),
    "empty box": ("holdout={kind='box', bounds={}}", "holdout", "bounds", "at least one factor"),
    "depth 0": ("decoder.depth=0", "decoder.depth", "0", "greater than or equal to 1"),
    "negative seed": ("seed=-1", "seed", "-1", "greater than or equal to 0"),
    "huge seed": ("seed=99999999999999999999", "seed", "99999999999999999999", "less than"),
    "negative epochs": ("training={epochs=-1}", "training.epochs", "-1", "greater than or equal to 1"),
    "no steps": ("training.steps=0", "training.steps", "0", "greater than or equal to 1"),
    "epochs and steps": ("training.epochs=3", "training", "epochs = 3", "steps = 6", "not both"),
    "negative batch": ("training.batch=-1", "training.batch", "-1", "greater than or equal to 1"),
    "negative lr": ("training.lr=-0.1", "training.lr", "-0.1", "greater than 0"),
    "lr 0": ("training.lr=0", "training.lr", "0", "greater than 0"),
    "nan lr": ("training.lr=nan", "training.lr", "nan", "finite"),
    "infinite lr": ("training.lr=inf", "training.lr", "inf", "finite"),
    "unknown schedule": ("training.schedule=fast", "training.schedule", "'fast'", "'constant' or 'cosine'"),
    "nan bound": ("holdout.lo=nan", "holdout.lo", "nan", "finite"),
    "nan sigma": ("task.sigma=nan", "task.sigma", "nan", "finite"),
    "absent factor without room": (
        "encoding.kind=rate --set sampling={kind='stripes'}",
        "encoding",
        "Rate",
        "absent",
        "use Bump or OneHot",
    ),
    "a code of listed values for real-valued centres": (
        "encoding.kind=onehot --set task.continuous=true --set sampling={kind='draws'}",
        "encoding",
        "OneHot",
        "0..7",
    ),
    "a code for circles": ("encoding.kind=circle", "encoding", "'x' is continuous"),
    "half a code": ("encoding={kind='per_factor', encodings={x={kind='bump'}}}", "encoding", "'y'", "only for x"),
    "a penalty with nothing to act on": ("penalties=[{kind='entropy'}]", "penalties.0", "MLP", "LowRank"),
    "too many stripes": ("sampling={kind='stripes', stripes=17}", "sampling", "stripes = 17", "only 16"),
    "bounds that are no table": ("holdout={kind='box', bounds=[1]}", "holdout.bounds", "[1]", "table"),
    "encodings that are no table": ("encoding={kind='per_factor', encodings=3}", "encoding.encodings", "3", "table"),
    "a factor that is not there": (
        "encoding={kind='per_factor', encodings={x={kind='bump'}, y={kind='bump'}, z={kind='bump'}}}",
        "encoding",
        "'z'",
        "x, y",
    ),
    "a control inside a control": (
        "decoder={kind='autoencoder', decoder={kind='image_encoder'}}",
        "decoder",
        "ImageEncoder",
        "must take codes",
    ),
    "stripes of one factor": (
        "sampling={kind='stripes'} --set task={kind='rotation', angles=12} --set encoding={kind='circle'}"
        " --set holdout={kind='interval', factor='angle', lo=60, hi=90}",
        "sampling",
        "'angle'",
    ),
    "a bump narrower than numbers go": ("task.sigma=1e-300", "sampling", "finite"),
    "set below a number": ("decoder.depth.x=3", "decoder.depth.x", "no fields"),
    "newer version": ("version=2", "version = 2", "version 1 to 1", "upgrade"),
    "missing table": ("task={kind='table', file='nowhere.npz'}", "task", "nowhere.npz"),
    "set without equals": ("seed", "--set 'seed'", "NAME=VALUE"),
    "set without a name": ("=3", "--set '=3'", "NAME=VALUE"),
    "set inside a number": ("seed.x=3", "seed", "0", "no fields"),
}


def refused(result, *fragments):
    assert result.code == 2, result
    assert "Traceback" not in result.err
    assert not result.out
    for fragment in fragments:
        assert fragment in result.err
    return True


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_bad_field_is_refused(name, composcope, tiny_toml, folder):
    settings, *fragments = BAD_FIELDS[name]
    options = [part for setting in settings.split(" --set ") for part in ("--set", setting)]
    assert refused(composcope("run", tiny_toml, "--store", folder, *options), *fragments)
    assert not folder.exists()


def test_interrupted_it_says_what_is_kept(composcope, tiny_toml, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("composcope.experiments.run.train_spec", interrupted)
    result = composcope("run", tiny_toml, "--store", folder)
    assert result.code == 130
    assert "finished runs are stored" in result.err


def test_bad_field_in_a_sweep_is_refused(composcope, tiny_spec, tmp_path, folder):
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(tomli_w.dumps({"base": tiny_spec.to_dict(), "vary": {"decoder.depth": [1, 0]}}))
    assert refused(composcope("sweep", sweep, "--store", folder), "decoder.depth = 0")
    assert not folder.exists()


BAD_FILES = {
    "syntax error": (b'version = 1\n[task\nkind = "bump"\n', "spec.toml", "line 2"),
    "binary": (bytes(range(256)), "spec.toml", "not a text file"),
    "empty": (b"", "task", "missing"),
    "not a spec": (b"[tool.ruff]\nline-length = 120\n", "'tool'", "allowed: task"),
}


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file_is_refused(name, command, composcope, tmp_path, folder):
    content, *fragments = BAD_FILES[name]
    path = tmp_path / "spec.toml"
    path.write_bytes(content)
    if command == "sweep" and name in ("empty", "not a spec"):
        fragments = ["[base]"]
    assert refused(composcope(command, path, "--store", folder), *fragments)
    assert not folder.exists()


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("path", ["nowhere.toml", ".", "\0"])
def test_missing_file_is_refused(command, path, composcope, folder):
    assert refused(composcope(command, path, "--store", folder), "nowhere.toml" if "no" in path else "")
    assert not folder.exists()


def unusable_stores(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "store.json").write_text('{"format": 99}')
    return {
        "a file": (file, "is a file; a folder is needed"),
        "below a file": (file / "runs", "cannot be written"),
        "unwritable": (Path("/proc/composcope-runs"), "cannot be written"),
        "newer": (newer, "format 99"),
    }


@pytest.mark.parametrize("name", ["a file", "below a file", "unwritable", "newer"])
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_unusable_store_is_refused(name, command, composcope, tiny_toml, tiny_spec, tmp_path):
    store, complaint = unusable_stores(tmp_path)[name]
    if command == "sweep":
        tiny_toml.write_text(tomli_w.dumps({"base": tiny_spec.to_dict()}))
    before = sorted(tmp_path.rglob("*"))
    result = composcope(command, tiny_toml, "--store", store)
    assert result.code == 2
    assert str(store) in result.err
    assert complaint in result.err
    assert "Traceback" not in result.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", ["list", "show", "doctor"])
def test_readers_refuse_a_store_that_is_a_file(command, composcope, tmp_path):
    (tmp_path / "file").write_text("")
    result = composcope(command, *(["abc"] if command == "show" else []), "--store", tmp_path / "file")
    assert result.code == (0 if command == "doctor" else 2)
    assert "is a file" in result.err + result.out


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (["--device", "toaster"], ["device", "toaster"]),
        (["--threads", "0"], ["threads"]),
        (["--threads", "many"], ["threads"]),
        (["--kernels", "fast"], ["kernels", "fast", "auto", "torch"]),
        (["--plugin", "nowhere.py"], ["nowhere.py"]),
        (["--stroe", "x"], ["--stroe"]),
    ],
    ids=str,
)
def test_bad_option_is_refused(options, fragments, composcope, tiny_toml, folder):
    assert refused(composcope("run", tiny_toml, "--store", folder, *options), *fragments)
    assert not folder.exists()


def test_unknown_command_and_run_are_refused(composcope, folder):
    assert refused(composcope("trian"), "trian")
    assert refused(composcope("show", "abc", "--store", folder), "'abc'", "0 runs")
    assert refused(composcope("reproduce", "cuers", "--store", folder), "'cuers'", "cures", "1a", "15")
    assert refused(composcope("reproduce", "--preset", "qiuck", "--store", folder), "'qiuck'", "quick", "paper")
    assert refused(composcope("reproduce", "--set", "seed=1", "--store", folder), "seed=1", "reproduce 3d")
    assert refused(composcope("reproduce", "3d", "--set", "task.colour=2", "--store", folder), "colour", "polarity")
    assert refused(composcope("claims", "--preset", "qiuck", "--store", folder), "'qiuck'", "quick")
    assert refused(composcope("explore", "abc", "--store", folder), "'abc'", "0 runs")
    assert not folder.exists()


def test_ambiguous_run_id_is_refused(composcope, tiny_spec, folder):
    store = cs.Store(folder)
    store.prepare()
    for name in ("abc0123456789012", "abc0123456789013", "abc-of-somebody"):
        (folder / name).mkdir()
    assert refused(composcope("show", "abc", "--store", folder), "abc0123456789012, abc0123456789013", "more digits")


def test_messages_stay_whole_when_the_terminal_is_narrow(composcope, tiny_toml, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "dumb")
    result = composcope("run", tiny_toml, "--store", folder, "--set", "task.polarity=grey")
    assert result.err == "error: task.polarity = 'grey': input should be 'dark' or 'bright'\n"
    assert composcope("run", tiny_toml, "--store", folder).code == 0
    listed = composcope("list", "--store", folder)
    assert len(listed.out.splitlines()) == 2


def test_messages_stay_whole_without_a_terminal(tiny_toml, folder):
    result = subprocess_of("run", tiny_toml, "--store", folder, "--set", "seed=-1", COLUMNS="20", TERM="")
    assert result.returncode == 2
    assert result.stderr == "error: seed = -1: input should be greater than or equal to 0\n"
    assert not folder.exists()
