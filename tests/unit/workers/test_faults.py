"""Worker processes that die or hang, and interrupts: the rest is done, and nothing is left behind."""

import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

import composcope as cs
from composcope.runs.plugins import load_plugin
from processes import COMMAND, alive, descendants, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds worker processes in /proc")

BAD = """
import multiprocessing, os, signal, time
import torch
import composcope as cs

class Bad(torch.nn.Sequential):
    def forward(self, codes):
        if multiprocessing.parent_process() is not None:  # in a worker
            if self.how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(3600)
        return super().forward(codes)

@cs.register("bad")
class BadDecoder(cs.MLP):
    how: str = "dies"

    def build(self, code_sizes, image_shape):
        module = Bad(*super().build(code_sizes, image_shape))
        module.how = self.how
        return module
"""


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(BAD)
    return path


@pytest.mark.usefixtures("no_new_kinds", "quick_workers")
def test_runs_whose_worker_always_dies_or_hangs_fail_and_all_others_finish(tiny_spec, store, plugin):
    bad = load_plugin(plugin)
    dies, hangs = (replace(tiny_spec, decoder=bad.BadDecoder(1, 8, how=how)) for how in ("dies", "hangs"))
    good = [replace(tiny_spec, seed=seed) for seed in (1, 2)]
    outcomes = cs.run_all([dies, hangs, *good], store, workers=1, plugins=[plugin], time_limit=1.0)
    failures = {outcome.run_id: outcome.failure for outcome in outcomes}
    assert failures.keys() == {spec.run_id for spec in (dies, hangs, *good)}
    assert "died 2 times" in failures[dies.run_id]
    assert "hung" in failures[hangs.run_id]
    assert [store.failed(spec.run_id) for spec in (dies, hangs)] == [True, True]
    assert all(store.record(spec.run_id, verify=True).status == "done" for spec in good)


def workers_of(pid):
    """The worker processes that have begun; before that, a new process still looks like its parent."""
    return [child for child in descendants(pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.fixture
def sweep_file(tiny_spec, tmp_path):
    path = tmp_path / "sweep.toml"
    base = replace(tiny_spec, training=cs.Training(steps=10**6, batch=48)).to_dict()
    path.write_text(tomli_w.dumps({"base": base, "vary": {"seed": [0, 1, 2]}}))
    return path


def start(sweep_file, folder, *options):
    """The command in a process group of its own, as a terminal would start it."""
    command = [*COMMAND, "sweep", str(sweep_file), "--store", str(folder), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes, start_new_session=True, preexec_fn=allow_interrupts)


def allow_interrupts():
    """Tests that run in the background ignore interrupts, and so would what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(process, seconds=30.0):
    """Ctrl-C five times, which reaches every process of the group; what it printed, and how long it took to end."""
    workers = descendants(process.pid)
    begin = time.monotonic()
    for _ in range(5):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.05)
    try:
        _, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    took = time.monotonic() - begin
    assert wait_until(lambda: not any(alive(worker) for worker in workers), 5)
    return err, took


def test_interrupts_with_a_stopped_worker(sweep_file, folder):
    process = start(sweep_file, folder, "--workers", "2")
    logs = folder / "logs"
    assert wait_until(lambda: logs.exists() and len(workers_of(process.pid)) == 2, 200), process.kill()
    os.kill(workers_of(process.pid)[-1], signal.SIGSTOP)  # still importing torch
    err, took = interrupt(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted; finished runs are stored" in err
    assert took < 15
    assert '"interrupted"' in next(logs.glob("*.json")).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_interrupts_at_any_moment(seed, sweep_file, folder):
    process = start(sweep_file, folder, "--workers", "2")
    time.sleep(random.Random(seed).uniform(1.0, 12.0))
    err, took = interrupt(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert took < 15


@pytest.mark.slow
@pytest.mark.parametrize("delay", [4.0, 10.0, 20.0])
def test_interrupts_of_a_local_dask_cluster(delay, sweep_file, folder):
    process = start(sweep_file, folder, "--workers", "2", "--dask", "local")
    time.sleep(delay)
    err, took = interrupt(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert took < 20
