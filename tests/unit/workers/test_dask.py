"""Runs on a Dask cluster: the bytes of local runs, whoever is killed. All connections stay on this machine."""

import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import tomli_w

import composcope as cs
from composcope.workers.dask_cluster import connect
from composcope.workers.limits import Resources
from processes import COMMAND, same_everywhere

pytest.importorskip("distributed")


@pytest.mark.usefixtures("quick_workers")
def test_two_workers_one_killed_midway(tiny_spec, tmp_path):
    specs = [replace(tiny_spec, training=cs.Training(steps=400, batch=48), seed=seed) for seed in range(6)]
    alone, shared, gathered = (cs.Store(tmp_path / name) for name in ("alone", "shared", "gathered"))
    for spec in specs:
        cs.run(spec, alone)
    killed = []
    with connect("local", workers=2) as cluster:
        assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", cluster.address)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/status", cluster.dashboard)
        assert "2 workers" in str(cluster)
        workers = [process for process in multiprocessing.active_children() if "Worker" in process.name]

        def kill_one(work, outcomes):
            if outcomes and not killed:
                os.kill(workers[0].pid, signal.SIGKILL)
                killed.append(workers[0].pid)

        outcomes = cs.run_all(specs, shared, executor=cluster.executor, on_progress=kill_one)
        assert killed
        assert not any(outcome.failure for outcome in outcomes)
        assert sorted(outcome.run_id for outcome in outcomes) == sorted(spec.run_id for spec in specs)
        cs.run_all(specs[:2], gathered, executor=cluster.executor, gather=True)
        with (
            pytest.raises(cs.BadInput, match=r"no worker of tcp://\S+ offers GPU=1"),
            connect(cluster.address, resources=Resources(gpus=1)),
        ):
            pass
    for store, done in ((shared, specs), (gathered, specs[:2])):
        for spec in done:
            assert same_everywhere(store, spec.run_id) == same_everywhere(alone, spec.run_id)
    assert not [process for process in multiprocessing.active_children() if "Worker" in process.name]


@pytest.mark.parametrize("address", ["localhost", "http://x:1", "tcp://x", "tcp://127.0.0.1:1/x"])
def test_a_bad_address_is_told(address):
    with pytest.raises(cs.BadInput, match="tcp://HOST:PORT"), connect(address):
        pass


def test_no_scheduler_is_told(monkeypatch):
    monkeypatch.setattr("composcope.workers.dask_cluster.CONNECT_SECONDS", 0.3)
    with pytest.raises(cs.BadInput, match="no Dask scheduler answers"), connect("tcp://127.0.0.1:1"):
        pass


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(cs.BadInput, match=r"pip install 'composcope\[cluster\]'"), connect("local"):
        pass


# Every part killed at random instants


class Cluster:
    """A scheduler and two workers as processes of their own; `revive` starts what is not running."""

    def __init__(self, folder, port):
        self.folder, self.address = folder, f"tcp://127.0.0.1:{port}"
        common = ["--host", "127.0.0.1", "--no-dashboard"]
        worker = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--death-timeout", "20"]
        self.options = {
            "scheduler": ["distributed.cli.dask_scheduler", "--port", str(port), *common],
            **{f"worker {i}": [*worker, "--local-directory", str(folder), *common] for i in (1, 2)},
        }
        self.processes = {}

    def revive(self):
        if self.processes and self.processes["scheduler"].poll() is not None:
            for process in self.processes.values():
                process.wait(60)  # workers end when their scheduler is gone
        for name, options in self.options.items():
            if name not in self.processes or self.processes[name].poll() is not None:
                with open(self.folder / f"{name}.log", "ab") as log:
                    command = [sys.executable, "-m", *options]
                    self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.slow
def test_scheduler_worker_or_driver_killed_at_twenty_random_instants(tiny_spec, tmp_path):
    """After every kill the same command again: in the end all is done, none twice, with the bytes of local runs."""
    rng, most = random.Random(int(os.environ.get("KILL_SEED", "0"))), int(os.environ.get("KILLS", "20"))
    base = replace(tiny_spec, training=cs.Training(steps=3000, batch=48))
    cluster, store = Cluster(tmp_path, free_port()), cs.Store(tmp_path / "runs")
    sweep = tmp_path / "sweep.toml"
    command = [*COMMAND, "sweep", str(sweep), "--store", str(store.folder)]
    sealed, kills, specs = {}, [], []

    def check_none_done_twice():
        for run_id in filter(store.has, store.run_ids()):
            number = (store.folder / run_id / "done.json").stat().st_ino
            assert sealed.setdefault(run_id, number) == number

    try:
        while len(kills) < most:
            seeds = range(len(specs), len(specs) + 6)
            specs += [replace(base, seed=seed) for seed in seeds]
            sweep.write_text(tomli_w.dumps({"base": base.to_dict(), "vary": {"seed": list(seeds)}}))
            while not all(store.has(spec.run_id) for spec in specs):
                cluster.revive()
                time.sleep(2)
                driver = subprocess.Popen(
                    [*command, "--dask", cluster.address], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
                if len(kills) < most:
                    time.sleep(rng.uniform(2, 15))
                    name = rng.choice(["scheduler", "worker 1", "worker 2", "driver"])
                    (driver if name == "driver" else cluster.processes[name]).kill()
                    kills.append(name)
                    if name.startswith("worker"):
                        cluster.revive()
                out, _ = driver.communicate(timeout=600)
                assert "Traceback" not in out, (kills, out)
                check_none_done_twice()
    finally:
        cluster.end()
    assert not any(store.failed(spec.run_id) for spec in specs)
    alone = cs.Store(tmp_path / "alone")
    for spec in specs:
        cs.run(spec, alone)
        assert same_everywhere(store, spec.run_id) == same_everywhere(alone, spec.run_id)
