"""Bad input: exit code 2, a message with field, value and what is allowed, no traceback, nothing written."""

import os
import subprocess
from pathlib import Path

import pytest
import tomli_w

import composcope as cs
from processes import COMMAND
from refusals import refused

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
    "everything held out": ("holdout={kind='square', lo=0, hi=7}", "holdout", "hi=7", "holds out all 64"),
    "unknown factor": ("holdout={kind='interval', factor='z', lo=0, hi=2}", "holdout", "'z'", "the factors are x, y"),
    "union of nothing": ("holdout={kind='union', of=[]}", "holdout.of", "at least 1 item"),
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
    "unknown schedule": ("training.schedule=fast", "training.schedule", "'fast'", "'constant', 'cosine' or 'plateau'"),
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


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_bad_field_is_refused(name, composcope, tiny_toml, folder):
    settings, *fragments = BAD_FIELDS[name]
    options = [part for setting in settings.split(" --set ") for part in ("--set", setting)]
    assert refused(composcope("run", tiny_toml, "--store", folder, *options), *fragments)
    assert not folder.exists()


def test_interrupted_it_says_what_is_kept(composcope, tiny_toml, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("composcope.runs.pipeline.train_spec", interrupted)
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
    assert refused(composcope("claims", "a.json", "--store", folder), "'a.json'", "--evidence")
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


def test_messages_stay_whole_without_a_terminal(tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ["list", "--store", str(tmp_path / "file")]
    result = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "20", "TERM": ""},
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.endswith("is a file; a folder is needed\n")
    assert result.stderr.count("\n") == 1
