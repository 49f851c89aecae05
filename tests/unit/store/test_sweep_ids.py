"""The ids of a sweep's runs are remembered, so that a sweep with nothing to do starts without PyTorch."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import tomli_w

import composcope as cs
from composcope.workers import sweeps as sweep_ids
from composcope.workers.sweeps import SweepIds, SweepMemory

IMPORTED = """
import sys
from composcope.cli import main
try:
    main(sys.argv[1:])
finally:
    print("imported:", *sorted({"torch", "pandas"} & set(sys.modules)))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "composcope" / "sweeps"


@pytest.fixture
def sweep(tmp_path, tiny_spec):
    path = tmp_path / "sweep.toml"
    path.write_text(tomli_w.dumps({"base": tiny_spec.to_dict(), "vary": {"seed": [0, 1]}}))
    return path


@pytest.fixture
def done(tiny_spec, store):
    return [cs.run(replace(tiny_spec, seed=seed), store).run_id for seed in (0, 1)]


def output_of(*arguments):
    command = [sys.executable, "-c", IMPORTED, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_sweep_that_is_all_done_imports_neither_torch_nor_pandas(done, cache, sweep, folder, composcope):
    first = composcope("sweep", sweep, "--store", folder)
    assert (folder / "summaries" / "sweep.csv").exists()
    *again, imported = output_of("sweep", sweep, "--store", folder)
    assert imported == "imported:"
    assert again[0] == first.out.splitlines()[0] == "2 runs: 2 done, 0 to do"


def test_a_listing_imports_neither_torch_nor_pandas(done, folder):
    *lines, imported = output_of("list", "--store", folder)
    assert imported == "imported:"
    assert len(lines) == 3


def test_a_summary_that_is_gone_is_written_again(done, cache, sweep, folder, composcope):
    first = composcope("sweep", sweep, "--store", folder)
    table = (folder / "summaries" / "sweep.csv").read_bytes()
    (folder / "summaries" / "sweep.csv").unlink()
    assert composcope("sweep", sweep, "--store", folder) == first
    assert (folder / "summaries" / "sweep.csv").read_bytes() == table


@pytest.mark.usefixtures("in_threads")
def test_a_run_that_is_gone_is_done_again(done, cache, sweep, folder, composcope):
    composcope("sweep", sweep, "--store", folder)
    (folder / done[0] / "done.json").unlink()
    again = composcope("sweep", sweep, "--store", folder, "--workers", "1")
    assert "2 runs: 1 done, 1 to do" in again.out
    assert cs.Store(folder).complete(done[0])


def test_a_changed_file_is_another_sweep(cache, sweep):
    SweepMemory(sweep).write(SweepIds(["a"], ["seed"]))
    assert SweepMemory(sweep).read() == SweepIds(["a"], ["seed"])
    assert SweepMemory(sweep, ["seed=1"]).read() is None
    late = SweepMemory(sweep)
    sweep.write_text(sweep.read_text() + "\n# changed\n")
    assert SweepMemory(sweep).read() is None
    late.write(SweepIds(["b"], ["seed"]))  # made from the file as it was
    assert len(list(cache.iterdir())) == 1


def test_other_code_makes_other_ids(cache, sweep, monkeypatch):
    SweepMemory(sweep).write(SweepIds(["a"], []))
    monkeypatch.setattr(sweep_ids, "package_code", lambda: "another version")
    assert SweepMemory(sweep).read() is None


def test_ids_that_depend_on_other_files_or_packages_are_not_remembered(cache, sweep, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sweep_ids, "entry_points", lambda group: ["an installed component"])
        assert SweepMemory(sweep).path is None
    sweep.write_text(sweep.read_text() + '\n[[skip]]\n"task.file" = "table.npz"\n')
    assert SweepMemory(sweep).path is None


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"run_ids": [], "more": 1})])
def test_what_cannot_be_read_is_not_believed(content, cache, sweep):
    memory = SweepMemory(sweep)
    memory.path.write_text(content)
    assert memory.read() is None
