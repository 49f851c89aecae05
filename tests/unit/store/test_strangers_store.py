"""A store from somebody else: nothing in it blocks, leads elsewhere, fills the memory or reaches the terminal raw."""

import io
import json
import os
import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import composcope as cs
from composcope.diagnosis import load_diagnosis, save_diagnosis
from composcope.errors import Damaged
from composcope.files import read_regular, sha256
from composcope.pages.explorer import write_explorer
from composcope.pages.runs import run_row
from composcope.plain import pack_arrays, unpack_arrays
from composcope.terminal import shown

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202etxt.exe \ud800 \x9b31m"


@pytest.fixture
def done(tiny_spec, store, trained):
    """Two finished runs; tests replace parts of the first."""
    trained(replace(tiny_spec, seed=1), store)
    return trained(tiny_spec, store)


def resealed(folder, name, content):
    """Replace a file and its checksum, as somebody who wants to be believed would."""
    (folder / name).write_bytes(content)
    seal = json.loads((folder / "done.json").read_text())
    seal["files"][name] = {"bytes": len(content), "sha256": sha256(content)}
    (folder / "done.json").write_text(json.dumps(seal))


def as_link(path):
    elsewhere = path.parent.parent.parent / f"elsewhere-{path.name}"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def as_folder(path):
    path.unlink()
    path.mkdir()


def as_huge(path):
    os.truncate(path, 2**40)  # takes no space: the file is sparse


def as_nested(path):
    path.write_bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


def as_deep(path):
    path.write_bytes(b'{"a":' * 500 + b"1" + b"}" * 500)


def as_numbers(path):
    path.write_text('{"format": NaN, "files": {"spec.json": Infinity}}')


@pytest.mark.parametrize("odd", [as_link, as_pipe, as_device, as_folder, as_huge, as_nested, as_deep, as_numbers])
@pytest.mark.parametrize("name", ["spec.json", "done.json", "provenance.json", "measures/error.json"])
def test_an_odd_file_makes_its_run_damaged_and_leaves_the_others(name, odd, done, store, folder):
    odd(folder / done.run_id / name)
    statuses = {record.run_id: record.status for record in store.records(verify=True)}
    assert statuses[done.run_id] == "damaged"
    assert sorted(statuses.values()) == ["damaged", "done"]
    assert run_row(store, done.run_id).status == "damaged"


@pytest.mark.parametrize("name", ["spec.json", "done.json", "provenance.json", "measures/error.json"])
def test_the_explorer_leaves_out_a_damaged_run(name, done, store, folder, tmp_path):
    as_link(folder / done.run_id / name)
    page = write_explorer(store, store.run_ids(), tmp_path / "page.html").read_text()
    assert all(run_id in page for run_id in store.run_ids())


@pytest.mark.parametrize("odd", [as_link, as_pipe, as_device, as_huge])
@pytest.mark.parametrize("name", ["weights.safetensors", "curve.csv"])
def test_odd_weights_are_damage(name, odd, done, store, folder):
    odd(folder / done.run_id / name)
    assert store.record(done.run_id, verify=True).status == "damaged"
    with pytest.raises(Damaged):
        store[done.run_id]


@pytest.mark.parametrize("name", ["", "measures"])
def test_folders_that_are_links_are_damage_and_are_not_written_through(name, done, store, folder, tmp_path):
    as_link(folder / done.run_id / name if name else folder / done.run_id)
    before = sorted(tmp_path.rglob("*"))
    assert store.record(done.run_id).status == "damaged"
    with pytest.raises(cs.RunFailed, match=done.run_id):
        store.run_folder(done.run_id).save_measures("more", 1, {"value": 1})
    with pytest.raises(cs.RunFailed, match=done.run_id):
        store.run_folder(done.run_id).save_diagnosis(done.diagnose(only="verdict"))
    assert sorted(tmp_path.rglob("*")) == before


def test_the_store_itself_may_be_a_link(done, tiny_spec, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    linked = cs.Store(tmp_path / "link")
    assert linked.record(done.run_id, verify=True).status == "done"
    assert cs.run(replace(tiny_spec, seed=3), linked).measures
    (folder / "store.json").write_text('{"format": 2}')
    with pytest.raises(cs.BadInput, match="upgrade"):
        cs.Store(tmp_path / "link")


def test_a_diagnosis_is_not_written_through_a_link(done, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(cs.BadInput, match="is a link"):
        save_diagnosis(done.diagnose(only="verdict"), tmp_path / "out")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "measures/../spec.json", "x.json", ""])
def test_a_seal_names_no_other_files(name, done, store, folder):
    path = folder / done.run_id / "done.json"
    seal = json.loads(path.read_text())
    seal["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    path.write_text(json.dumps(seal))
    assert store.record(done.run_id, verify=True).status == "damaged"


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, (2**60).to_bytes(8, "little") + b"{}"])
def test_weights_that_are_not_weights_are_damage(content, done, store, folder):
    resealed(folder / done.run_id, "weights.safetensors", content)
    with pytest.raises(Damaged):
        store.run_folder(done.run_id).weights()


@pytest.mark.parametrize("content", [b"", b"\0\0", b"loss\nx\n"])
def test_a_curve_that_is_not_a_curve_is_damage_to_the_reader(content, done, store, folder, composcope):
    resealed(folder / done.run_id, "curve.csv", content)
    shown_run = composcope("show", done.run_id, "--store", folder)
    assert shown_run.code in (0, 1)
    assert "Traceback" not in shown_run.err


# Text


def test_text_is_shown_without_what_a_terminal_acts_on():
    text = shown(HOSTILE)
    assert text.isprintable()
    assert "\\x1b[2J" in text
    assert "\\ud800" in text
    assert shown("a\tb\nü→") == "a\tb\nü→"


def test_hostile_text_of_a_failed_run_reaches_neither_terminal_nor_page(tiny_spec, store, folder, composcope, tmp_path):
    store.save_failure(tiny_spec, HOSTILE, {"platform": HOSTILE})
    for command in (("list",), ("show", tiny_spec.run_id)):
        finished = composcope(*command, "--store", folder)
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\ud800"} & set(finished.out + finished.err)
    page = write_explorer(store, [tiny_spec.run_id], tmp_path / "page.html").read_text()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(page)


def test_hostile_names_in_a_spec_reach_no_terminal(done, tiny_spec, store, folder, composcope):
    spec = json.loads((folder / done.run_id / "spec.json").read_text())
    spec["decoder"]["kind"] = HOSTILE
    spec[HOSTILE] = {HOSTILE: HOSTILE}
    resealed(folder / done.run_id, "spec.json", json.dumps(spec).encode())
    for command in (("list",), ("show", done.run_id)):
        finished = composcope(*command, "--store", folder)
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\ud800"} & set(finished.out + finished.err)
        assert "Traceback" not in finished.err


# Archives


def archive(content, name="a.npy"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as stored:
        stored.writestr(name, content)
    return file.getvalue()


def npy(shape, size):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(size)


@pytest.mark.parametrize(
    "content",
    [
        archive(npy((2**40,), 8)),
        archive(npy((2**62, 2**62), 8)),
        archive(npy((-1,), 8)),
        archive(npy((1,) * 40, 8)),
        archive(npy((2,), 8)),
        archive(b"\x93NUMPY\x09\x09"),
        archive(b""),
    ],
)
def test_arrays_that_declare_more_than_there_is_are_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011  (any message)
        unpack_arrays(content)


def test_arrays_are_refused_by_their_declared_size_before_they_are_unpacked():
    bomb = archive(npy((2**17,), 2**20))
    with pytest.raises(ValueError, match="are allowed"):
        unpack_arrays(bomb, most=2**16)
    assert unpack_arrays(bomb)["a"].shape == (2**17,)


def test_arrays_survive_as_they_are():
    arrays = {
        "c": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.eye(3)),
        "t": np.array("text"),
        "e": np.ones((0, 2)),
    }
    read = unpack_arrays(pack_arrays(arrays))
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert (read[name] == array).all()
        assert read[name].shape == array.shape


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path), os.mkdir])
def test_a_table_is_read_from_a_regular_file_only(make, tmp_path, tiny_spec):
    path = str(tmp_path / "table.npz")
    make(path)
    with pytest.raises(cs.BadInput, match=r"not a table|folder|regular"):
        cs.Spec.from_dict({**tiny_spec.to_dict(), "task": {"kind": "table", "file": path}})


def test_a_huge_table_is_not_read(tmp_path, tiny_spec):
    path = tmp_path / "table.npz"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(cs.BadInput, match="bytes"):
        cs.Spec.from_dict({**tiny_spec.to_dict(), "task": {"kind": "table", "file": str(path)}})


def test_reading_names_what_is_there_instead(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="it is a link"):
        read_regular(tmp_path / "link")


# Diagnoses


def test_an_edited_diagnosis_is_refused(done, tmp_path):
    save_diagnosis(done.diagnose(only="verdict"), tmp_path / "out")
    path = tmp_path / "out" / "numbers.json"
    body = json.loads(path.read_text())
    body["diagnosis"]["seed"] = 7
    body["diagnosis"]["certificate"] = "composition: of course"
    path.write_text(json.dumps(body))
    with pytest.raises(cs.BadInput, match="checksum"):
        load_diagnosis(tmp_path / "out")


# Specs that would take forever


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", {"kind": "rotation", "angles": 10**9}),
        ("task", {"kind": "bump", "size": 10**6}),
        ("task", {"kind": "bump", "size": 1024, "brightness": [i / 200 for i in range(1, 200)]}),
        ("task", {"kind": "bump", "size": 8, "brightness": [i / 10**4 for i in range(1, 10**4)]}),
        ("encoding", {"kind": "positional", "pairs": 10**9}),
        ("decoder", {"kind": "cnn", "depth": 10**9}),
        ("decoder", {"kind": "mlp", "width": 10**9}),
        ("decoder", {"kind": "transformer", "width": 10**9, "heads": 4}),
        ("decoder", {"kind": "lowrank", "rank": 10**9}),
        ("sampling", {"kind": "draws", "n": 10**12}),
        ("holdout", {"kind": "union", "parts": [{"kind": "square", "lo": 2, "hi": 3}] * 2000}),
    ],
)
def test_a_spec_cannot_hang_validation(name, value, tiny_spec):
    with pytest.raises(cs.BadInput):
        cs.Spec.from_dict({**tiny_spec.to_dict(), name: value})


def test_a_spec_that_is_nested_without_end_is_refused(tiny_spec):
    holdout = {"kind": "square", "lo": 2, "hi": 5}
    for _ in range(5000):
        holdout = {"kind": "complement", "of": holdout}
    with pytest.raises(cs.BadInput):
        cs.Spec.from_dict({**tiny_spec.to_dict(), "holdout": holdout})


# Code


@pytest.mark.parametrize("command", ["run", "sweep", "diagnose", "reproduce"])
def test_the_help_says_which_options_run_code(command, composcope):
    text = " ".join(composcope(command, "--help").out.replace("│", " ").split())
    assert "code is run" in text
