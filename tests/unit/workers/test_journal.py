"""The state and the log of a sweep, and its summary."""

import json

import pandas as pd
import pytest

import composcope as cs
from composcope.workers import journal as journals
from composcope.workers import sweeps as summary
from composcope.workers.executor import Outcome
from composcope.workers.journal import Journal, read_statuses
from composcope.workers.sweeps import summary_rows, sweep_frame, write_summary


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(journals.time, "monotonic", lambda: now[0])
    return now


def test_rate_time_left_and_failures(store, clock):
    store.prepare()
    journal = Journal(store, "sweep.toml", 10, 1000.0)
    ended = [Outcome("a"), Outcome("b"), Outcome("c", "run c: diverged\nbadly \x1b[31m")]
    for seconds, work, count in [(10, 100.0, 1), (20, 200.0, 2), (30, 300.0, 3)]:
        clock[0] = 1000.0 + seconds
        journal.update(work, ended[:count])
    (status,) = read_statuses(store)
    assert (status.state, status.done, status.failed, status.runs) == ("running", 2, 1, 10)
    assert status.per_minute == pytest.approx(6)
    assert status.left == pytest.approx(70)
    assert status.last_failure == "run c: diverged badly  [31m"
    assert status.row["left"] == "1 min 10 s"
    journal.finish("finished")
    assert read_statuses(store)[0].state == "finished"
    lines = journal.log.read_text().splitlines()
    assert "10 runs to do" in lines[0]
    assert any("failed: run c: diverged badly" in line for line in lines)
    assert "finished: 2 done, 1 failed" in lines[-1]


def test_a_sweep_that_was_killed_is_silent(store):
    store.prepare()
    journal = Journal(store, "s", 1, 1.0)
    journal.update(0.0, [])
    data = json.loads(journal.path.read_text())
    journal.path.write_text(json.dumps({**data, "updated": data["updated"] - 7200}))
    (status,) = read_statuses(store)
    assert status.row["state"] == "silent for 2 h 0 min"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"title": 1}', "\xff", '{"started": "x"}'])
def test_other_files_among_the_logs_are_ignored(content, store):
    (store.folder / "logs").mkdir(parents=True)
    (store.folder / "logs" / "x.json").write_text(content)
    (store.folder / "logs" / "y.json").mkdir()
    assert read_statuses(store) == []


def test_a_summary_has_means_over_seeds_and_files(store, tiny_spec, tmp_path, monkeypatch):
    sweep = cs.Sweep(tiny_spec.to_dict(), {"training.lr": [1e-3, 1e30], "seed": [0, 1]})
    specs = sweep.specs()
    for spec in specs:
        try:
            cs.run(spec, store)
        except cs.RunFailed:
            continue
    frame = sweep_frame(store, [spec.run_id for spec in specs])
    good, bad = summary_rows(frame, sweep.varied)
    assert (good["training.lr"], good["runs"], good["failed"]) == (1e-3, 2, 0)
    assert good["heldout_mse"] == pytest.approx(frame["error.heldout_mse"].mean())
    assert (bad["runs"], bad["failed"]) == (0, 2)
    csv, parquet = write_summary(frame, tmp_path / "out", "s")
    assert pd.read_csv(csv)["run_id"].tolist() == pd.read_parquet(parquet)["run_id"].tolist()
    monkeypatch.setattr(summary, "PARQUET", "no_such_package")
    assert [path.suffix for path in write_summary(frame, tmp_path / "again", "s")] == [".csv"]


def test_a_folder_that_cannot_be_written_is_told_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(cs.BadInput, match="cannot be written"):
            summary.check_writable(folder)
