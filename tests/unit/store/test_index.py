"""The index of a large store: faster, and never believed against the files."""

import os
import time
from dataclasses import replace

import pytest

import composcope as cs
from composcope.store import index as index_room
from composcope.store.index import Index
from composcope.user_cache import cache_folder_or_none as folder_or_none


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index_room, "MIN_RUNS", 2)
    monkeypatch.setattr(index_room, "SETTLED_SECONDS", 0.0)
    return tmp_path / "cache" / "composcope" / "stores"


@pytest.fixture
def runs(tiny_spec, store, cache):
    found = [cs.run(replace(tiny_spec, seed=seed), store) for seed in range(3)]
    time.sleep(0.05)
    return found


def reads(monkeypatch):
    """The runs whose files are read."""
    seen, record = [], cs.Store.record
    monkeypatch.setattr(
        cs.Store, "record", lambda self, run_id, verify=False: seen.append(run_id) or record(self, run_id, verify)
    )
    return seen


def test_unchanged_runs_are_read_once(runs, store, monkeypatch):
    first = store.records(verify=True)
    seen = reads(monkeypatch)
    assert cs.Store(store.folder).records(verify=True) == first
    assert store.records() == first
    assert not seen
    assert store.frame()["error.heldout_mse"].tolist() == [record.measures["error"]["heldout_mse"] for record in first]


def test_only_a_verified_row_counts_as_verified(runs, store, monkeypatch):
    store.records()
    seen = reads(monkeypatch)
    store.records(verify=True)
    assert len(seen) == 3


@pytest.mark.parametrize("restore_times", [False, True])
def test_a_changed_file_is_noticed(restore_times, runs, store, folder):
    assert {record.status for record in store.records(verify=True)} == {"done"}
    path = folder / runs[0].run_id / "weights.safetensors"
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    if restore_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    by_id = {record.run_id: record.status for record in store.records(verify=True)}
    assert by_id[runs[0].run_id] == "damaged"


def test_new_measures_new_runs_and_removed_runs_are_noticed(runs, tiny_spec, store, folder):
    store.records()
    store.run_folder(runs[0].run_id).save_measures("more", 1, {"value": 2.0})
    cs.run(replace(tiny_spec, seed=7), store)
    records = {record.run_id: record for record in store.records()}
    assert len(records) == 4
    assert records[runs[0].run_id].measures["more"] == {"value": 2.0}
    os.rename(folder / runs[1].run_id, folder / "gone")
    assert len(store.records()) == 3


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, None])
def test_a_damaged_index_is_made_anew(content, runs, store, cache, monkeypatch):
    first = store.records()
    (path,) = cache.glob("*.sqlite")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert store.records() == first
    assert store.records() == first
    seen = reads(monkeypatch)
    assert store.records() == first
    assert not seen


def test_an_index_with_wrong_rows_is_made_anew(runs, store):
    first = store.records()
    index = Index.of(store.folder, 3)
    with index._open() as database:
        database.execute("update runs set record = '[]'")
    assert store.records() == first


@pytest.mark.parametrize("trouble", ["no home", "others can write"])
def test_without_a_folder_of_ones_own_there_is_no_index(trouble, runs, store, cache, monkeypatch):
    if trouble == "no home":
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    else:
        cache.mkdir(parents=True, exist_ok=True)
        cache.chmod(0o777)
    assert folder_or_none("stores") is None
    assert len(store.records()) == 3


def test_rows_of_other_code_are_not_used(runs, store, monkeypatch):
    store.records()
    monkeypatch.setattr(index_room, "package_code", lambda: "another version")
    seen = reads(monkeypatch)
    store.records()
    assert len(seen) == 3


def test_a_small_store_has_no_index(runs, store, cache, monkeypatch):
    monkeypatch.setattr(index_room, "MIN_RUNS", 200)
    store.records()
    assert not list(cache.glob("*")) if cache.exists() else True


def test_a_busy_index_is_waited_for_or_done_without(runs, store, monkeypatch):
    first = store.records()
    monkeypatch.setattr(
        index_room.sqlite3,
        "connect",
        lambda *a, **k: (_ for _ in ()).throw(index_room.sqlite3.OperationalError("locked")),
    )
    assert store.records() == first
