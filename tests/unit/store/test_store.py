"""Results on disk: whole or not at all, and never believed when damaged."""

import json
import multiprocessing
import os
import random
import shutil
import time
from dataclasses import replace

import pytest
import torch

import composcope as cs
from composcope.errors import Damaged
from composcope.store import staging
from composcope.store import store as store_room
from composcope.store.records import flatten
from composcope.store.run_folder import RunFolder

fork = multiprocessing.get_context("fork")  # a child that need not import torch again
SEALED = ["spec.json", "curve.csv", "weights.safetensors", "provenance.json"]


@pytest.fixture
def done(tiny_spec, store, trained):
    """Two finished runs; tests damage the first."""
    trained(replace(tiny_spec, seed=1), store)
    return trained(tiny_spec, store)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# What is kept


def test_a_stored_run_loads_as_it_was(tiny_spec, store):
    trained = cs.run(tiny_spec)
    kept = cs.run(tiny_spec, store)
    again = cs.run(tiny_spec, cs.Store(store.folder))
    for result in (kept, again):
        assert result.spec == tiny_spec
        assert same(result.weights, trained.weights)
        assert result.measures == trained.measures
        assert result.curve["loss"].tolist() == pytest.approx(trained.curve["loss"].tolist())
    assert again.seconds == kept.seconds > 0
    assert again.cpu_seconds == kept.cpu_seconds > 0


def test_a_finished_run_is_not_trained_again(done, tiny_spec, store):
    calls = []
    cs.run(tiny_spec, store, on_step=lambda step, module: calls.append(step))
    assert not calls


def test_what_was_trained_just_now_is_not_read_again(tiny_spec, store, monkeypatch):
    reads = []
    monkeypatch.setattr(RunFolder, "weights", lambda self, step=None: reads.append(self.run_id))
    assert cs.run(tiny_spec, store).measures["error"]
    assert not reads


def test_layout_of_a_run(done, folder):
    assert sorted(path.name for path in (folder / done.run_id).iterdir()) == [
        "curve.csv",
        "done.json",
        "measures",
        "provenance.json",
        "spec.json",
        "weights.safetensors",
    ]
    assert [path.name for path in (folder / done.run_id / "measures").iterdir()] == ["error.json"]
    assert json.loads((folder / "store.json").read_text()) == {"format": 1}


def test_weights_are_safetensors_and_nothing_is_pickled(done, folder):
    content = (folder / done.run_id / "weights.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert {name for name in header if name != "__metadata__"} == set(done.weights)
    for path in (folder / done.run_id).rglob("*"):
        if path.is_file():
            assert not path.read_bytes().startswith((b"\x80\x02", b"\x80\x04", b"PK")), path


def test_snapshots_are_kept(tiny_spec, store):
    spec = replace(tiny_spec, training=cs.Training(steps=6, batch=16, snapshots=(2, 4)))
    result = cs.run(spec, store)
    short = cs.run(replace(tiny_spec, training=cs.Training(steps=4, batch=16)))
    assert same(store.run_folder(result.run_id).weights(step=4), short.weights)
    assert not same(store.run_folder(result.run_id).weights(step=2), short.weights)
    with pytest.raises(cs.ComposcopeError, match="after step 3"):
        store.run_folder(result.run_id).weights(step=3)


def test_provenance_tells_what_the_numbers_may_depend_on(done):
    assert {"composcope", "torch", "python", "platform", "threads", "device", "dtype", "seconds"} <= set(
        done.provenance
    )


def test_measures_can_be_added_and_renewed(done, store):
    store.run_folder(done.run_id).save_measures("geometry", 1, {"dv": 0.5})
    store.run_folder(done.run_id).save_measures("geometry", 2, {"dv": 0.75})
    assert store.run_folder(done.run_id).measures()["geometry"] == {"dv": 0.75}
    assert "geometry" not in store.run_folder(done.run_id).measures({"geometry": 1})
    assert store.record(done.run_id, verify=True).status == "done"


def test_missing_measures_are_made_again_without_training(done, store, folder):
    shutil.rmtree(folder / done.run_id / "measures")
    assert store[done.run_id].measures == done.measures


# The frame


def test_frame_has_a_row_a_run_and_dotted_columns(done, store):
    frame = store.frame()
    assert len(frame) == 2
    assert set(frame["seed"]) == {0, 1}
    assert {"run_id", "status", "task.kind", "task.size", "decoder.width", "training.steps", "seconds"} <= set(frame)
    assert (frame["cpu_seconds"] > 0).all()
    row = frame.set_index("run_id").loc[done.run_id]
    assert row["error.heldout_mse"] == done.measures["error"]["heldout_mse"]
    assert row["status"] == "done"


@pytest.mark.parametrize("make", [False, True])
def test_empty_store_has_an_empty_frame(make, store, folder):
    if make:
        store.prepare()
    assert store.frame().empty
    assert "run_id" in store.frame()
    assert store.run_ids() == []
    assert folder.exists() == make


def test_flatten_writes_lists_as_json():
    assert flatten({"a": {"b": [1, 2]}, "c": None}) == {"a.b": "[1, 2]", "c": None}


def test_runs_are_found_by_their_first_digits(done, store):
    assert store.find(done.run_id[:12]) == done.run_id
    for prefix in ("", "zz"):
        with pytest.raises(cs.BadInput):
            store.find(prefix)


# Failed runs


@pytest.fixture
def failing(tiny_spec):
    return replace(tiny_spec, training=cs.Training(steps=6, lr=1e30))


def test_a_failed_run_is_recorded_with_its_reason(failing, store):
    with pytest.raises(cs.RunFailed, match=failing.run_id):
        cs.run(failing, store)
    record = store.record(failing.run_id)
    assert record.status == "failed"
    assert "diverged" in record.problem
    assert store.frame()["status"].tolist() == ["failed"]
    assert not store.has(failing.run_id)


def test_any_trouble_of_a_decoder_is_a_failed_run(tiny_spec, store, monkeypatch):
    def broken(*_, **__):
        raise KeyError("no such layer")

    monkeypatch.setattr(cs.MLP, "build", broken)
    with pytest.raises(cs.RunFailed, match="KeyError"):
        cs.run(tiny_spec, store)
    assert "KeyError" in store.record(tiny_spec.run_id).problem


def test_a_failed_run_is_tried_again(failing, store):
    for _ in range(2):
        with pytest.raises(cs.RunFailed):
            cs.run(failing, store)
    assert store.run_ids() == [failing.run_id]


def test_success_takes_the_place_of_a_failure(tiny_spec, store):
    store.save_failure(tiny_spec, "the machine was tired", {})
    cs.run(tiny_spec, store)
    assert store.record(tiny_spec.run_id, verify=True).status == "done"
    assert not (store.folder / tiny_spec.run_id / "failed.json").exists()


def test_a_failure_never_takes_the_place_of_success(done, tiny_spec, store):
    store.save_failure(tiny_spec, "late", {})
    assert store.record(done.run_id, verify=True).status == "done"


# Damage


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "deleted":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "emptied":
        path.write_bytes(b"")
    else:
        content[len(content) // 2] ^= 0x01
        path.write_bytes(content)


@pytest.mark.parametrize("how", ["flipped", "cut", "emptied", "deleted"])
@pytest.mark.parametrize("name", SEALED)
def test_damage_is_found_and_named(name, how, done, store, folder):
    damage(folder / done.run_id / name, how)
    with pytest.raises(Damaged, match=name):
        store[done.run_id]
    record = store.record(done.run_id, verify=True)
    assert record.status == "damaged"
    assert name in record.problem


@pytest.mark.parametrize("how", ["flipped", "cut", "emptied"])
def test_damaged_seal_is_found(how, done, store, folder):
    damage(folder / done.run_id / "done.json", how)
    assert store.record(done.run_id, verify=True).status == "damaged"
    with pytest.raises(Damaged, match=done.run_id):
        store[done.run_id]


def test_without_its_seal_a_run_is_damaged_and_done_again(done, tiny_spec, store, folder):
    (folder / done.run_id / "done.json").unlink()
    assert store.record(done.run_id).status == "damaged"
    calls = []
    again = cs.run(tiny_spec, store, on_step=lambda step, module: calls.append(step))
    assert calls
    assert same(again.weights, done.weights)
    assert store.record(done.run_id, verify=True).status == "done"


@pytest.mark.parametrize("how", ["flipped", "cut", "emptied"])
def test_damaged_measures_are_found_and_named(how, done, store, folder):
    damage(folder / done.run_id / "measures" / "error.json", how)
    with pytest.raises(Damaged, match=r"error\.json"):
        store[done.run_id]
    assert store.record(done.run_id).status == "damaged"


@pytest.mark.parametrize("name", ["done.json", "measures/error.json", "spec.json", "provenance.json"])
def test_no_flipped_byte_can_break_the_table(name, done, store, folder):
    """Each byte in turn: the run may still read as done (where nothing hangs on the byte), but no table breaks."""
    path = folder / done.run_id / name
    content = path.read_bytes()
    broken = []
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x02]) + content[place + 1 :])
        try:
            store.record(done.run_id, verify=True)
        except Exception as error:
            broken.append(f"byte {place}: {type(error).__name__}: {error}")
    assert not broken


def test_other_runs_are_unaffected_by_a_damaged_one(done, tiny_spec, store, folder):
    damage(folder / done.run_id / "weights.safetensors", "flipped")
    assert sorted(store.frame(verify=True)["status"]) == ["damaged", "done"]
    assert cs.run(replace(tiny_spec, seed=1), store).measures


def test_foreign_files_and_folders_do_not_break_the_table(done, store, folder):
    (folder / "notes.txt").write_text("mine")
    (folder / "plots").mkdir()
    assert sorted(store.frame(verify=True)["status"])[-2:] == ["done", "done"]


def test_damaged_failure_is_shown_as_damaged(tiny_spec, store, folder):
    store.save_failure(tiny_spec, "tired", {})
    (folder / tiny_spec.run_id / "failed.json").write_text("{}")
    assert store.record(tiny_spec.run_id).status == "damaged"


# The folder


def test_store_of_a_newer_format_is_refused(folder):
    folder.mkdir()
    (folder / "store.json").write_text('{"format": 2}')
    with pytest.raises(cs.BadInput, match=r"format 2; this composcope knows 1: upgrade"):
        cs.Store(folder)


@pytest.mark.parametrize("content", ["", "[]", "\0"])
def test_runs_stay_readable_when_the_format_file_is_damaged(content, done, store, folder):
    (folder / "store.json").write_text(content)
    assert cs.Store(folder).frame()["status"].tolist() == ["done", "done"]


def test_somebody_elses_folder_is_no_run(done, store, folder):
    (folder / "notes").mkdir()
    assert len(store.run_ids()) == 2


@pytest.mark.parametrize("content", ['{"format": "new"}', '{"format": null}'])
def test_a_format_that_is_no_number_is_named(content, folder):
    folder.mkdir()
    (folder / "store.json").write_text(content)
    with pytest.raises(cs.ComposcopeError, match=r"store\.json|format"):
        cs.Store(folder)


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(cs.BadInput, match="is a file; a folder is needed"):
        cs.Store(tmp_path / "runs")


def test_unwritable_store_is_told_before_training(tiny_spec, tmp_path):
    (tmp_path / "file").write_text("")
    calls = []
    with pytest.raises(cs.BadInput, match="cannot be written"):
        cs.run(tiny_spec, cs.Store(tmp_path / "file" / "runs"), on_step=lambda step, module: calls.append(step))
    assert not calls


def test_making_a_store_value_writes_nothing(store, folder):
    assert store.frame().empty
    assert not folder.exists()


# Kills and rivals


def test_nothing_half_written_is_believed_when_killed_while_placing(tiny_spec, folder, monkeypatch):
    """The process dies before the final rename: nothing but a hidden folder is left."""
    store = cs.Store(folder)
    store.prepare()

    def die(*paths):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store_room.os, "rename", die)
        patch.setattr(store_room.shutil, "rmtree", lambda *a, **k: None)
        with pytest.raises(KeyboardInterrupt):
            cs.run(tiny_spec, store)
    assert list(folder.glob(".staging-*"))
    assert store.run_ids() == []
    assert cs.run(tiny_spec, store).measures


def run_many(spec, folder):
    for seed in range(10_000):
        cs.run(replace(spec, seed=seed), cs.Store(folder))


def test_killed_at_random_moments_finished_runs_stay(tiny_spec, folder):
    chance = random.Random(0)
    store = cs.Store(folder)
    longest = 0.25
    for _ in range(8):
        longest *= 1 if store.run_ids() else 1.5  # a busy machine may need longer for the first
        before = {run_id for run_id in store.run_ids() if store.has(run_id)}
        child = fork.Process(target=run_many, args=(tiny_spec, folder))
        child.start()
        time.sleep(chance.uniform(0.02, longest))
        child.kill()
        child.join()
        assert child.exitcode == -9
        assert before <= {run_id for run_id in store.run_ids() if store.has(run_id)}
        for run_id in store.run_ids():
            assert store.record(run_id, verify=True).status == "done"
    assert store.run_ids()
    for run_id in store.run_ids():
        assert store[run_id].measures["error"]
    assert cs.run(tiny_spec, store).run_id in store.run_ids()


def run_at_once(spec, folder, start, failures):
    start.wait()
    try:
        cs.run(spec, cs.Store(folder))
    except BaseException as error:
        failures.put(repr(error))


def test_two_processes_may_do_the_same_run_at_once(tiny_spec, folder):
    failures = fork.SimpleQueue()
    for seed in range(4):
        start = fork.Barrier(2)
        spec = replace(tiny_spec, seed=seed)
        pair = [fork.Process(target=run_at_once, args=(spec, folder, start, failures)) for _ in range(2)]
        for child in pair:
            child.start()
        for child in pair:
            child.join()
    assert failures.empty(), failures.get()
    assert cs.Store(folder).frame(verify=True)["status"].tolist() == ["done"] * 4
    assert not list(folder.glob(".staging-*"))


def test_preparing_bears_a_rivals_vanishing_folder(store, folder):
    """Between listing the half-written folders and looking at one, its owner may have removed it."""
    store.prepare()
    (folder / ".staging-check-rival").symlink_to(folder / "nowhere")
    store.prepare()


def test_stale_leftovers_are_cleared_and_fresh_ones_kept(store, folder):
    store.prepare()
    stale, fresh = folder / ".staging-old", folder / ".staging-new"
    stale.mkdir()
    fresh.mkdir()
    os.utime(stale, (0, 0))
    store.prepare()
    assert not stale.exists()
    assert fresh.exists()


def test_a_run_sealed_by_a_rival_in_the_last_moment_stays(done, tiny_spec, store, folder, monkeypatch):
    """The rival wins between the look and the rename; what it sealed may be in someone's hands already."""
    before = (folder / done.run_id).stat().st_ino
    looks = iter([False])
    look = staging.is_sealed
    monkeypatch.setattr(staging, "is_sealed", lambda path: next(looks, look(path)))
    store.save(tiny_spec, cs.Trained(done.weights, [{"epoch": 1, "step": 1, "loss": 0.0}], 1.0), {})
    assert (folder / done.run_id).stat().st_ino == before
