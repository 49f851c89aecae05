"""Runs on any executor: what is refused, what stops a sweep, what comes back without a shared folder."""

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace

import pytest

import composcope as cs
from composcope.runs.pipeline import run_with_lease
from composcope.workers import executor, jobs, limits
from composcope.workers.limits import OutOfTime, Resources, TimeLimit, local_workers
from processes import same_everywhere


@pytest.fixture
def specs(tiny_spec):
    return [replace(tiny_spec, seed=seed) for seed in range(3)]


@pytest.fixture
def threads():
    """The simplest executor: no processes, no progress reports, and it cannot lose a worker."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("gather", [False, True], ids=["shared", "gathered"])
def test_any_executor_gives_the_bytes_of_a_run_by_itself(gather, specs, threads, store, tmp_path):
    alone, diagnosed = cs.Store(tmp_path / "alone"), [specs[0].run_id]
    for spec in specs:
        cs.run(spec, alone)
    _ = alone[specs[0].run_id].diagnosis
    outcomes = cs.run_all(specs, store, executor=threads, gather=gather, diagnosed=diagnosed)
    assert sorted(outcome.run_id for outcome in outcomes) == sorted(spec.run_id for spec in specs)
    assert not any(outcome.failure for outcome in outcomes)
    for spec in specs:
        assert same_everywhere(store, spec.run_id) == same_everywhere(alone, spec.run_id)
    assert store.run_folder(specs[0].run_id).has_diagnosis()
    assert sorted(path.name for path in store.folder.iterdir() if not path.name.startswith(".")) == sorted(
        [*(spec.run_id for spec in specs), "store.json"]
    )


def test_a_trained_run_is_sent_to_be_diagnosed_and_its_diagnosis_comes_back(specs, threads, store):
    cs.run(specs[0], store)
    before = same_everywhere(store, specs[0].run_id)
    cs.run_all(specs[:1], store, executor=threads, gather=True, diagnosed=[specs[0].run_id])
    after = same_everywhere(store, specs[0].run_id)
    assert before.items() <= after.items()
    assert store.run_folder(specs[0].run_id).has_diagnosis()


def test_a_failed_run_comes_back_as_failed(specs, threads, store):
    bad = replace(specs[0], training=cs.Training(steps=3, lr=1e30))
    (outcome,) = cs.run_all([bad], store, executor=threads, gather=True)
    assert "diverged" in outcome.failure
    assert store.failed(bad.run_id)


def test_files_that_lead_out_of_the_folder_are_refused(store, tiny_spec):
    with pytest.raises(cs.BadInput, match="leads out"):
        store.add(tiny_spec.run_id, {"../elsewhere": b""})


@pytest.mark.parametrize("name", ["composcope", "torch", "RESULTS_VERSION"])
def test_a_worker_with_another_version_is_refused(name, specs, threads, store, monkeypatch):
    here = jobs.installed_versions()
    monkeypatch.setattr(executor, "Settings", lambda **fields: jobs.Settings(**fields, versions={**here, name: "0.0"}))
    with pytest.raises(cs.RunFailed, match=rf"refused: it has {name} \S+ instead of 0.0; install the same"):
        cs.run_all(specs, store, executor=threads)
    assert store.run_ids() == []


def test_a_plugin_that_a_worker_does_not_have_is_named(specs, threads, store, tmp_path):
    with pytest.raises(cs.RunFailed, match=r"no plugin file .*mine.py"):
        cs.run_all(specs, store, executor=threads, plugins=[tmp_path / "mine.py"])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_disk_stops_the_sweep(code, specs, store, monkeypatch):
    def full(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("composcope.store.store.add_folder", full)
    with ThreadPoolExecutor(1) as pool, pytest.raises(cs.RunFailed, match=rf"{os.strerror(code)}.*stopped, 3 runs"):
        cs.run_all(specs, store, executor=pool)


def test_another_error_of_a_file_fails_only_its_run(specs, threads, store, monkeypatch):
    save = cs.Store.save

    def odd(self, spec, *more):
        if spec.seed == 1:
            raise OSError(errno.EIO, "odd")
        return save(self, spec, *more)

    monkeypatch.setattr(cs.Store, "save", odd)
    outcomes = {outcome.run_id: outcome.failure for outcome in cs.run_all(specs, store, executor=threads)}
    assert [bool(outcomes[spec.run_id]) for spec in specs] == [False, True, False]
    assert specs[1].run_id in outcomes[specs[1].run_id]


def test_a_run_by_itself_waits_for_another_process_that_does_it(tiny_spec, store, threads, caplog):
    with store.lease(tiny_spec.run_id):
        waiting = threads.submit(cs.run, tiny_spec, store)
        time.sleep(0.3)
        assert not waiting.done()
        run_with_lease(tiny_spec, store, "cpu", 1, "auto")
    assert waiting.result(timeout=60).run_id == tiny_spec.run_id
    assert caplog.text.count("another process is doing it") == 1
    with store.lease(tiny_spec.run_id):
        cs.run(tiny_spec, store)  # done: loading needs no lease


def test_one_driver_at_a_time_gathers_into_a_store(specs, threads, store):
    with store.lease("gathering"), pytest.raises(cs.BadInput, match="another process is gathering"):
        cs.run_all(specs, store, executor=threads, gather=True)
    assert not store.run_ids()
    assert not [outcome for outcome in cs.run_all(specs, store, executor=threads, gather=True) if outcome.failure]


def test_a_run_that_another_process_is_doing_is_waited_for(specs, threads, store, monkeypatch):
    """Somebody else holds two runs: finishes one of them, and dies during the other."""
    elsewhere, asked = cs.Store(store.folder), []

    @contextmanager
    def lease(self, run_id):
        asked.append(run_id)
        first = asked.count(run_id) == 1
        if first and run_id == specs[0].run_id:
            run_with_lease(specs[0], elsewhere, "cpu", 1, "auto")
        yield not (first and run_id in (specs[0].run_id, specs[1].run_id))

    monkeypatch.setattr(executor, "BUSY_PAUSE", 0.1)
    monkeypatch.setattr(cs.Store, "lease", lease, raising=False)
    outcomes = cs.run_all(specs, store, executor=threads)
    assert sorted(outcome.run_id for outcome in outcomes) == sorted(spec.run_id for spec in specs)
    assert all(store.has(spec.run_id) for spec in specs)
    assert [asked.count(spec.run_id) for spec in specs] == [1, 2, 1]


class KilledWorker(Exception):
    """Of the name that Dask's has."""


class Losing(ThreadPoolExecutor):
    """Loses the worker of some jobs, a number of times by seed; remembers how many jobs were under way."""

    def __init__(self, losses, error=KilledWorker):
        super().__init__(1)
        self.losses, self.error, self.seen = dict(losses), error, []

    def submit(self, fn, /, job, settings):
        seed = job.spec["seed"]
        self.seen.append(seed)
        if self.losses.get(seed, 0):
            self.losses[seed] -= 1
            future = Future()
            future.set_exception(self.error("gone"))
            return future
        return super().submit(fn, job, settings)


def test_a_run_whose_worker_died_is_tried_again_at_the_end_alone(specs, store):
    with Losing({0: 1}) as pool:
        outcomes = cs.run_all(specs, store, executor=pool)
    assert not any(outcome.failure for outcome in outcomes)
    assert pool.seen == [0, 1, 2, 0]


def test_a_run_whose_worker_died_twice_has_failed(specs, store):
    with Losing({0: 9, 1: 1}, BrokenProcessPool) as pool:
        outcomes = {outcome.run_id: outcome.failure for outcome in cs.run_all(specs, store, executor=pool)}
    assert pool.seen == [0, 1, 2, 0, 1]
    assert "died 2 times" in outcomes[specs[0].run_id]
    assert [store.failed(spec.run_id) for spec in specs] == [True, False, False]
    assert "died 2 times" in store.record(specs[0].run_id).problem


class Job:
    """Like submitit's: it can be asked, but tells nothing by itself."""

    def __init__(self, future):
        self.done, self.result, self.cancel = future.done, future.result, future.cancel


def test_jobs_that_have_to_be_asked(specs, threads, store):
    class Queue(Executor):
        def submit(self, fn, *arguments):
            return Job(threads.submit(fn, *arguments))

    outcomes = cs.run_all(specs, store, executor=Queue())
    assert not any(outcome.failure for outcome in outcomes)
    assert all(store.has(spec.run_id) for spec in specs)


def test_an_engine_that_fails_ends_the_sweep_with_its_message(specs, store):
    with (
        Losing({1: 1}, ConnectionError) as pool,
        pytest.raises(cs.RunFailed, match=r"ConnectionError: gone.*run the same again"),
    ):
        cs.run_all(specs, store, executor=pool)
    assert not store.failed(specs[1].run_id)


# The time limit


def test_a_run_over_its_time_limit_has_failed(tiny_spec, threads, store):
    slow = replace(tiny_spec, training=cs.Training(steps=10**6))
    start = time.monotonic()
    (outcome,) = cs.run_all([slow], store, executor=threads, time_limit=0.2)
    assert time.monotonic() - start < limits.GRACE
    assert "longer than its time limit" in outcome.failure
    assert "longer than its time limit" in store.record(slow.run_id).problem


def test_a_run_that_does_not_ask_is_recorded_and_ended(monkeypatch):
    told, ended = [], []
    monkeypatch.setattr(limits, "GRACE", 0.05)
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr(limits.faulthandler, "dump_traceback_later", lambda *_, **__: None)
    with TimeLimit(0.05, told.append) as limit:
        time.sleep(0.4)
    assert len(told) == len(ended) == 1
    assert "hung" in told[0]
    with pytest.raises(OutOfTime):
        limit.check()


def test_no_limit_never_ends():
    with TimeLimit(None, lambda reason: None) as limit:
        limit.check()


# Resources


@pytest.mark.parametrize("wish", ["memory=4XB", "gpu=1", "threads", "threads=0", "threads=2GB", "memory=-1", "=3"])
def test_bad_wishes_are_told(wish):
    with pytest.raises(cs.BadInput, match="--resource"):
        Resources.parse([wish])


def test_wishes_reach_the_engine_by_name():
    assert Resources().named == {}
    assert Resources.parse(["threads=2", "memory=4GB", "gpus=1"]).named == {"threads": 2, "MEMORY": 4e9, "GPU": 1}
    assert (Resources().device, Resources(gpus=1).device) == ("cpu", "cuda")


def test_local_workers_fit_the_machine(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10**10 // 4096}.get)
    assert local_workers(None, Resources(), 100) == 8
    assert local_workers(None, Resources(threads=3), 100) == 2
    assert local_workers(None, Resources(memory=3 * 10**9), 100) == 3
    assert local_workers(None, Resources(memory=10**12), 100) == 1
    assert local_workers(5, Resources(threads=3), 4) == 4


@pytest.mark.usefixtures("quick_workers")
def test_several_calls_use_the_same_processes(specs, store, monkeypatch):
    progress = []
    with executor.shared_workers({}, 1, 2) as (pool, options):
        assert options["executor"] is pool
        assert not any(outcome.failure for outcome in cs.run_all(specs[:1], store, **options))
        first = set(pool._pool._processes)
        assert pool.steps()[0] > 0
        submit = pool.submit
        monkeypatch.setattr(pool, "submit", lambda *job: (progress.append(pool.steps()), submit(*job))[1])
        cs.run_all(specs[1:], store, **options)
        assert set(pool._pool._processes) == first
    assert progress[0] == [0, 0]  # what the first call left in shared memory does not count
    assert pool._pool is None
    assert all(store.has(spec.run_id) for spec in specs)


def test_an_executor_of_the_user_is_kept(threads):
    with executor.shared_workers({"executor": threads}, None, 10) as (pool, options):
        assert options == {"executor": threads}
    assert pool._pool is None  # no process was started
    assert threads.submit(int).result() == 0  # it was not shut down


def test_costly_runs_come_first_and_of_long_work_whole_seeds(tiny_spec):
    cells = [
        replace(tiny_spec, training=replace(tiny_spec.training, lr=lr), seed=seed) for lr in (1, 2) for seed in (0, 1)
    ]
    assert executor.ordered(cells, {}) == cells
    hours = {spec.run_id: 3600.0 * spec.training.lr for spec in cells}
    small = {run_id: cost / 10 for run_id, cost in hours.items()}
    assert [(spec.training.lr, spec.seed) for spec in executor.ordered(cells, small)] == [
        (2, 0),
        (2, 1),
        (1, 0),
        (1, 1),
    ]
    assert [(spec.training.lr, spec.seed) for spec in executor.ordered(cells, hours)] == [
        (2, 0),
        (1, 0),
        (2, 1),
        (1, 1),
    ]


PARENT = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from composcope.workers.local_pool import end_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), end_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        assert os.path.isdir(f"/proc/{worker}")
        parent.kill()
    deadline = time.monotonic() + 20
    while os.path.isdir(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not os.path.isdir(f"/proc/{worker}")
