"""A small store that an earlier version wrote: it opens, and measuring it again gives the same numbers.

It carries its own specs and must never be written again. Numbers made anew are compared with a tolerance, since other
processors and versions of PyTorch round differently.
"""

import json
import math
import shutil
from pathlib import Path

import pytest

import composcope as cs
from composcope.diagnosis import load_diagnosis
from composcope.pages.runs import run_row
from composcope.runs.diagnose_runs import measure_run
from composcope.runs.run import VERSIONS, Run
from composcope.store.store import flatten

FOLDER = Path(__file__).parents[2] / "fixtures" / "store_v1"
STORE = cs.Store(FOLDER)
FAILED = "b3eb5274218c9b5d"
RUNS = [run_id for run_id in STORE.run_ids() if run_id != FAILED]
DIAGNOSED = [run_id for run_id in RUNS if (FOLDER / run_id / "measures" / "diagnosis.json").is_file()]
# Rounding grows where a number is a small difference or a ratio of small ones.
CLOSE = {"rel": 2e-4, "abs": 1e-5}


def old_numbers(run_id):
    """The numbers as the earlier version wrote them."""
    return json.loads((FOLDER / run_id / "measures" / "diagnosis.json").read_text())["values"]


def test_it_lists_every_kind_of_run():
    frame = STORE.frame(verify=True).set_index("run_id")
    assert sorted(frame["status"]) == ["done"] * 9 + ["failed"]
    assert frame.loc[FAILED, "status"] == "failed"
    assert "diverged" in frame.loc[FAILED, "problem"]
    done = frame.loc[RUNS]
    assert set(done["decoder.kind"]) == {"cnn", "mlp", "lowrank", "image_encoder"}
    assert set(done["task.kind"]) == {"bump", "rotation"}
    assert len(DIAGNOSED) == 7
    assert done.loc[DIAGNOSED, "diagnosis.verdict.kind"].notna().all()


@pytest.mark.parametrize("run_id", [*RUNS, FAILED])
def test_specs_hash_to_their_folders(run_id):
    assert cs.Spec.from_dict(json.loads((FOLDER / run_id / "spec.json").read_text())).run_id == run_id


@pytest.mark.parametrize("run_id", RUNS)
def test_a_run_opens_and_its_error_is_measured_alike(run_id, tmp_path):
    """Its version is older, so it is measured again; the definition has changed for tables only."""
    shutil.copytree(FOLDER / run_id, tmp_path / run_id)
    run = Run(STORE.spec(run_id), cs.Store(tmp_path))
    stored = STORE.measures(run_id)["error"]
    again = run.error
    assert cs.Store(tmp_path).measures(run_id, VERSIONS).keys() == {"error"}
    assert STORE.measures(run_id, VERSIONS) == {}
    assert again.keys() == stored.keys()
    for name, value in stored.items():
        assert again[name] == (value if value is None else pytest.approx(value, rel=1e-4, abs=1e-7)), name
    assert set(run.snapshots) == set(run.spec.training.snapshots)
    assert run.seconds > 0
    assert run.cpu_seconds is None
    assert STORE.frame([run_id])["cpu_seconds"].isna().all()


@pytest.mark.parametrize("run_id", DIAGNOSED)
def test_stored_diagnoses_give_the_numbers_that_were_stored(run_id):
    """Fields added since are missing in them, and take their defaults."""
    old, new = flatten(old_numbers(run_id)), flatten(STORE.diagnosis(run_id).numbers())
    assert old.items() <= new.items()
    assert STORE.measures(run_id)["diagnosis"] == old_numbers(run_id)
    assert STORE.diagnosis(run_id).more == {}
    assert "composcope measure" in run_row(STORE, run_id).note  # of an older version: the verdict was another one


@pytest.mark.parametrize("run_id", DIAGNOSED)
def test_diagnosing_again_gives_the_same_numbers(run_id, tmp_path):
    shutil.copytree(FOLDER / run_id, tmp_path / run_id)
    store = cs.Store(tmp_path)
    made = measure_run(store, run_id)
    assert store.diagnosis(run_id).summary() == made.summary()
    assert list(store.diagnosis(run_id).layers) == list(STORE.diagnosis(run_id).layers)  # in order, not sorted
    assert sorted(path.name for path in (tmp_path / run_id).iterdir() if path.is_dir()) == ["measures"]
    old, new = flatten(old_numbers(run_id)), flatten(store.measures(run_id)["diagnosis"])
    # The verdict's definition has changed; and a network that hardly changes its image used to have no exact geometry.
    changed = ("notes.", "verdict.", *(["geometry.", "untrained.geometry."] if "notes.geometry" in old else []))
    kept = {name: value for name, value in old.items() if not name.startswith(changed)}
    assert kept.keys() <= new.keys()
    for name, value in kept.items():
        assert same(new[name], value), f"{name}: {new[name]} instead of {value}"
    assert store.frame()["diagnosis.verdict.kind"].tolist() == [made.verdict.kind]


def same(new, old):
    """Equal, up to rounding: numbers by themselves or in a list written as text."""
    if isinstance(old, str) and old.startswith("["):
        pairs = list(zip(json.loads(new), json.loads(old), strict=True))
        return all(same(a, b) for a, b in pairs)
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(new, old, rel_tol=CLOSE["rel"], abs_tol=CLOSE["abs"])
    return bool(new == old)


def test_a_diagnosis_that_lacks_later_fields_loads(tmp_path):
    """Format 1 had no derived means, no `more` and every tensor among the arrays."""
    body = json.loads((FOLDER / DIAGNOSED[0] / "diagnosis" / "numbers.json").read_text())
    assert body["format"] == 1
    assert "more" not in body["diagnosis"]
    diagnosis = load_diagnosis(FOLDER / DIAGNOSED[0] / "diagnosis")
    cs.save_diagnosis(diagnosis, tmp_path)
    assert load_diagnosis(tmp_path).summary() == diagnosis.summary()
