"""Many runs at once, and what happens when processes die."""

import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

import composcope as cs
from processes import COMMAND, alive, descendants, wait_until

EXAMPLE = Path(__file__).parents[3] / "examples" / "sweep.toml"


def weights_of(store, run_id):
    return (store.folder / run_id / "weights.safetensors").read_bytes()


@pytest.mark.usefixtures("quick_workers")
def test_a_sweep_on_two_workers(tmp_path):
    """The example, shrunk: all is done, one fails, the rest is skipped the second time, bytes are a single run's."""
    example = cs.Sweep.from_toml(EXAMPLE)
    specs = cs.Sweep({**example.base, "training": {"steps": 3, "batch": 16}}, example.vary).specs()
    assert len(specs) == 8
    failing = replace(specs[0], training=cs.Training(steps=3, lr=1e30))
    store, heard = cs.Store(tmp_path / "runs"), []

    outcomes = cs.run_all([failing, *specs], store, workers=2, on_progress=lambda steps, ends: heard.append(steps))
    assert {outcome.run_id for outcome in outcomes} == {spec.run_id for spec in [failing, *specs]}
    assert [(outcome.run_id, "diverged" in outcome.failure) for outcome in outcomes if outcome.failure] == [
        (failing.run_id, True)
    ]
    assert all(store.record(spec.run_id, verify=True).status == "done" for spec in specs)
    assert store.record(failing.run_id).status == "failed"
    assert heard == sorted(heard)

    assert cs.run_all(specs, store, workers=2) == []

    alone = cs.Store(tmp_path / "alone")
    for spec in (specs[0], specs[-1]):
        cs.run(spec, alone)
        assert weights_of(alone, spec.run_id) == weights_of(store, spec.run_id)
    assert not multiprocessing.active_children()


def test_without_kernels_no_worker_tries_to_compile_them(tiny_spec, store, tmp_path, monkeypatch):
    log = tmp_path / "calls"
    script = f"echo called >> {log}; exit 1"
    monkeypatch.setenv("CXX", shlex.join(["sh", "-c", script]))
    monkeypatch.setenv("COMPOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("composcope.fastconv.state._loaded", None)
    specs = [replace(tiny_spec, decoder=cs.CNN(depth=1, width=16), seed=seed) for seed in (0, 1)]
    assert not [outcome.failure for outcome in cs.run_all(specs, store, workers=1) if outcome.failure]
    assert log.read_text().splitlines() in (["called"], [])  # [] on a processor without kernels


@pytest.mark.usefixtures("quick_workers")
def test_a_killed_workers_run_is_done_by_another(tiny_spec, store):
    specs = [replace(tiny_spec, training=cs.Training(steps=1500, batch=48), seed=seed) for seed in (0, 1)]
    killed = []

    def kill_once(steps, outcomes):
        if steps > 0 and not killed:
            worker = multiprocessing.active_children()[0]
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)

    outcomes = cs.run_all(specs, store, workers=1, on_progress=kill_once)
    assert killed
    assert sorted(outcome.run_id for outcome in outcomes) == sorted(spec.run_id for spec in specs)
    assert not any(outcome.failure for outcome in outcomes)
    assert store.frame(verify=True)["status"].tolist() == ["done", "done"]


@pytest.mark.parametrize("specs", [[], None])
def test_nothing_to_do_starts_no_worker(specs, tiny_spec, store):
    if specs is None:
        cs.run(tiny_spec, store)
        specs = [tiny_spec]
    before = set(multiprocessing.active_children())
    assert cs.run_all(specs, store) == []
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds worker processes in /proc")
def test_a_killed_sweep_leaves_no_worker_and_is_finished_by_the_same_command(tiny_toml, tmp_path):
    sweep, folder = tmp_path / "sweep.toml", tmp_path / "runs"
    base = replace(cs.Spec.from_toml(tiny_toml), training=cs.Training(steps=1000, batch=48)).to_dict()
    sweep.write_text(tomli_w.dumps({"base": base, "vary": {"seed": list(range(6))}}))
    command = [*COMMAND, "sweep", str(sweep), "--workers", "2", "--store", str(folder)]
    store = cs.Store(folder)

    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    assert wait_until(lambda: any(store.has(run_id) for run_id in store.run_ids()), 200)
    workers = descendants(parent.pid)
    parent.kill()
    parent.wait()
    assert len(workers) >= 2
    assert wait_until(lambda: not any(alive(worker) for worker in workers), 20)
    finished = {run_id: weights_of(store, run_id) for run_id in store.run_ids() if store.has(run_id)}
    assert 0 < len(finished) < 6
    done = sum(map(store.complete, finished))  # a run may have been stored and not yet measured

    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert f"6 runs: {done} done, {6 - done} to do" in again.stdout
    assert store.frame(verify=True)["status"].tolist() == ["done"] * 6
    assert all(weights_of(store, run_id) == content for run_id, content in finished.items())


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_so(tiny_spec, tmp_path):
    (tmp_path / "spec.toml").write_text(tiny_spec.to_toml())
    script = tmp_path / "script.py"
    script.write_text(
        "import composcope as cs\n"
        "from dataclasses import replace\n"
        "spec = cs.Spec.from_toml('spec.toml')\n"
        "cs.run_all([replace(spec, seed=seed) for seed in range(4)], cs.Store('runs'), workers=2)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].endswith('under `if __name__ == "__main__":`? 4 runs left')
