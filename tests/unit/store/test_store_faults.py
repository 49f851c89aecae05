"""Disks that are full, folders that resist, files that vanish: one clear line, and nothing repeated forever."""

import errno
import json
import os
import shutil
from dataclasses import replace

import pytest

import composcope as cs
from composcope.errors import CannotStore, DiskFull
from composcope.store import staging
from composcope.store import store as store_room
from composcope.store.run_folder import RunFolder
from composcope.workers import jobs
from composcope.workers.costs import missing


@pytest.fixture
def done(tiny_spec, store, trained):
    return trained(tiny_spec, store)


def trained(run):
    return cs.Trained(run.weights, [{"epoch": 1, "step": 1, "loss": 0.0}], 1.0)


def failing(number, only=lambda path: True):
    """A file operation that fails."""

    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    return fail


# Folders in the way


def test_a_seal_that_is_a_folder_is_not_a_seal(done, tiny_spec, store, folder):
    (folder / done.run_id / "done.json").unlink()
    (folder / done.run_id / "done.json" / "inside").mkdir(parents=True)
    assert not store.has(done.run_id)
    assert store.record(done.run_id).status == "damaged"
    cs.run(tiny_spec, store)
    assert store.record(done.run_id, verify=True).status == "done"


def test_a_file_in_the_place_of_a_run_is_shown_and_replaced(tiny_spec, store, folder):
    store.prepare()
    (folder / tiny_spec.run_id).write_text("mine")
    assert store.record(tiny_spec.run_id).status == "damaged"
    cs.run(tiny_spec, store)
    assert store.record(tiny_spec.run_id, verify=True).status == "done"


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOENT, errno.EIO])
def test_a_rename_that_fails_is_not_repeated(number, done, tiny_spec, store, monkeypatch):
    other, calls = replace(tiny_spec, seed=5), []

    def rename(source, target):
        calls.append(target)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store_room.os, "rename", rename)
    with pytest.raises(CannotStore, match=f"run {other.run_id}: cannot be stored in .*: {os.strerror(number)}"):
        store.save(other, trained(done), {})
    assert len(calls) == 1


def test_a_folder_that_cannot_be_moved_away_ends_in_an_error(done, tiny_spec, store, folder, monkeypatch):
    """An immutable folder: it exists, and stays."""
    other, calls = replace(tiny_spec, seed=5), []
    (folder / other.run_id / "kept").mkdir(parents=True)

    def rename(source, target):
        calls.append(target)
        exists = os.path.basename(target) == other.run_id
        raise OSError(errno.ENOTEMPTY if exists else errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(store_room.os, "rename", rename)
    with pytest.raises(CannotStore, match=other.run_id):
        store.save(other, trained(done), {})
    assert len(calls) == 2


def test_a_folder_that_comes_back_again_and_again_ends_in_an_error(done, tiny_spec, store, monkeypatch):
    other, calls = replace(tiny_spec, seed=5), []

    def rename(source, target):
        calls.append(target)
        raise OSError(errno.ENOTEMPTY, "not empty")

    monkeypatch.setattr(store_room.os, "rename", rename)
    monkeypatch.setattr(staging, "remove_unfinished", lambda path: None)
    with pytest.raises(CannotStore, match="is not a finished run"):
        store.save(other, trained(done), {})
    assert len(calls) == staging.MAX_TRIES


def test_a_staging_folder_that_vanishes_ends_in_an_error(done, tiny_spec, store, monkeypatch):
    other, rename = replace(tiny_spec, seed=5), os.rename

    def vanished(source, target):
        shutil.rmtree(source)
        rename(source, target)

    monkeypatch.setattr(store_room.os, "rename", vanished)
    with pytest.raises(CannotStore, match=f"{other.run_id}.*No such file"):
        store.save(other, trained(done), {})


# Full and read-only disks


def test_a_full_disk_is_told_before_training(tiny_spec, store, monkeypatch):
    monkeypatch.setattr(store_room.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    calls = []
    with pytest.raises(cs.BadInput, match=f"run {tiny_spec.run_id}.*No space left") as error:
        cs.run(tiny_spec, store, on_step=lambda step, module: calls.append(step))
    assert not calls
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_that_fills_while_training_is_one_line_with_the_run(number, tiny_spec, store, folder, monkeypatch):
    def fill(step, module):
        monkeypatch.setattr("composcope.files.os.fsync", failing(number))

    with pytest.raises(DiskFull, match=f"run {tiny_spec.run_id}.*{os.strerror(number)}") as error:
        cs.run(tiny_spec, store, on_step=fill)
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert not store.has(tiny_spec.run_id)
    assert not list(folder.glob(".staging-*"))
    assert cs.run(tiny_spec, store).measures


def test_a_disk_that_fills_before_the_measures(tiny_spec, store, monkeypatch):
    """The run is sealed and lacks its measures: it is not complete, and is completed without training."""
    monkeypatch.setattr("composcope.store.run_folder.write_atomically", failing(errno.ENOSPC))
    with pytest.raises(DiskFull, match=tiny_spec.run_id):
        cs.run(tiny_spec, store)
    monkeypatch.undo()
    assert store.has(tiny_spec.run_id)
    assert not store.complete(tiny_spec.run_id)
    assert missing(tiny_spec, store)
    calls = []
    assert cs.run(tiny_spec, store, on_step=lambda step, module: calls.append(step)).measures["error"]
    assert not calls
    assert store.complete(tiny_spec.run_id)
    assert not missing(tiny_spec, store)


@pytest.mark.parametrize("full", ["before", "after"])
def test_a_full_disk_ends_a_sweep_instead_of_failing_every_run(full, tiny_spec, folder, monkeypatch):
    """What a worker makes of a run on a full disk: it says that the sweep must stop."""
    store = cs.Store(folder)
    store.prepare()
    settings = jobs.Settings(str(folder), "torch")
    if full == "before":
        monkeypatch.setattr(store_room.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    else:
        trained = jobs._report

        def fill(slot, step):
            monkeypatch.setattr("composcope.files.os.fsync", failing(errno.ENOSPC))
            trained(slot, step)

        monkeypatch.setattr(jobs, "_report", fill)
    ended = jobs.work(jobs.Job(tiny_spec.run_id, tiny_spec.to_dict(), False, 0, "attempt"), settings)
    assert ended.state == "stop"
    assert "No space left" in ended.failure


def test_a_failure_that_cannot_be_stored_is_one_line(tiny_spec, store, monkeypatch):
    diverging = replace(tiny_spec, training=cs.Training(steps=6, lr=1e30))
    monkeypatch.setattr(cs.Store, "prepare", lambda self, run_id=None: None)
    monkeypatch.setattr("composcope.files.os.fsync", failing(errno.ENOSPC))
    with pytest.raises(DiskFull, match=diverging.run_id):
        cs.run(diverging, store)


def test_a_run_of_a_read_only_store_is_measured_in_memory(done, tiny_spec, store, folder, monkeypatch):
    shutil.rmtree(folder / done.run_id / "measures")
    monkeypatch.setattr(RunFolder, "read_only", True)
    monkeypatch.setattr("composcope.store.run_folder.make_folder", failing(errno.EROFS))
    assert store[done.run_id].measures == done.measures


# Runs that are not what their name says


def test_a_run_copied_to_another_id_is_damaged(done, tiny_spec, store, folder):
    other = replace(tiny_spec, seed=9).run_id
    shutil.copytree(folder / done.run_id, folder / other)
    record = store.record(other)
    assert record.status == "damaged"
    assert done.run_id in record.problem
    with pytest.raises(cs.RunFailed):
        store[other]


def test_runs_of_a_plugin_that_is_not_loaded_are_not_damaged(done, tiny_spec, store, folder, no_new_kinds):
    del cs.Decoder.kinds["mlp"]
    assert store.record(done.run_id, verify=True).status == "done"


# Newer formats


@pytest.mark.parametrize(
    ("name", "key"),
    [("done.json", "format"), ("measures/error.json", "version"), ("measures/diagnosis.json", "version")],
)
def test_a_newer_format_is_refused_and_kept(name, key, done, store, folder):
    store.run_folder(done.run_id).save_diagnosis(done.diagnose())
    path = folder / done.run_id / name
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, key: 99}))
    with pytest.raises(cs.RunFailed, match=r"newer than this composcope knows.*upgrade"):
        _ = store[done.run_id].measures
    assert json.loads(path.read_text())[key] == 99


def test_a_newer_failure_is_refused(tiny_spec, store, folder):
    store.save_failure(tiny_spec, "tired", {})
    path = folder / tiny_spec.run_id / "failed.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    assert "upgrade" in store.record(tiny_spec.run_id).problem


# Half-written folders


def test_a_half_written_folder_stays_for_a_day(store, folder):
    store.prepare()
    with staging.temporary_folder(folder / "live") as live:
        cs.Store(folder).prepare()
        assert live.exists()
        hours = 3600.0
        os.utime(live, (live.stat().st_mtime - 23 * hours,) * 2)
        cs.Store(folder).prepare()
        assert live.exists()
        os.utime(live, (live.stat().st_mtime - 2 * hours,) * 2)
        cs.Store(folder).prepare()
        assert not live.exists()
