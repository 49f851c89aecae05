"""Power failures: whatever was not synced is lost, and what was reported as stored is not."""

import random
import shutil
from dataclasses import replace

import pytest
from crash_clone import Disk

import composcope as cs
from composcope import files


def crash_everywhere(spec, root, monkeypatch, clones, every):
    """Do two runs, measure and fail another; after every operation look at what a power failure would leave."""
    chance = random.Random(0)
    stored, measured, problems, points = set(), set(), [], 0

    def look():
        nonlocal points
        points += 1
        if points % every:
            return
        for _ in range(clones):
            clone = disk.clone(root / f"clone{points}", chance)
            with monkeypatch.context() as patch:
                for name, function in disk.real.items():
                    patch.setattr(files.os, name, function)
                after = cs.Store(clone / "deep" / "runs")
                for run_id in after.run_ids():
                    record = after.record(run_id, verify=True)
                    if record.status == "damaged":
                        problems.append(f"point {points}: {record.problem}")
                    elif run_id in measured and not after.complete(run_id):
                        problems.append(f"point {points}: {run_id} has lost its measures")
                for run_id in stored - {run_id for run_id in after.run_ids() if after.has(run_id)}:
                    problems.append(f"point {points}: {run_id} is lost")
            removed(clone)

    removed = shutil.rmtree
    watched = root / "disk"
    watched.mkdir()
    disk = Disk(watched, monkeypatch, look)
    store = cs.Store(watched / "deep" / "runs")
    for seed in range(2):
        run = cs.run(replace(spec, seed=seed), store)
        stored.add(run.run_id)
        measured.add(run.run_id)
        store.run_folder(run.run_id).save_measures("more", 1, {"value": 1.0})
    store.save_failure(replace(spec, seed=3), "tired", {})
    stored.add(cs.run(replace(spec, seed=3), store).run_id)
    assert store[run.run_id].measures
    return problems


def test_a_power_failure_loses_nothing_that_was_stored(tiny_spec, tmp_path, monkeypatch):
    snapshots = replace(tiny_spec, training=cs.Training(steps=6, batch=16, snapshots=(2,)))
    assert not crash_everywhere(snapshots, tmp_path, monkeypatch, clones=1, every=3)


@pytest.mark.slow
def test_a_power_failure_at_any_point_loses_nothing(tiny_spec, tmp_path, monkeypatch):
    snapshots = replace(tiny_spec, training=cs.Training(steps=6, batch=16, snapshots=(2, 4)))
    assert not crash_everywhere(snapshots, tmp_path, monkeypatch, clones=40, every=1)


@pytest.mark.parametrize("forgotten", ["files", "folders"])
def test_the_model_finds_what_is_not_synced(forgotten, tiny_spec, tmp_path, monkeypatch):
    """The crash test itself is tested: without syncing it must fail."""
    if forgotten == "folders":
        for room in ("composcope.files", "composcope.store.staging"):
            monkeypatch.setattr(f"{room}.sync_folder", lambda folder: None)
    else:

        def without_sync(path, content):
            path.write_bytes(content)

        for room in ("composcope.files", "composcope.store.staging"):
            monkeypatch.setattr(f"{room}.write_synced", without_sync)
    assert crash_everywhere(tiny_spec, tmp_path, monkeypatch, clones=1, every=1)
