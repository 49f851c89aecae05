"""The command line on disks that are full or cannot be written: one line, no traceback."""

import os
import subprocess

import pytest

import composcope as cs
from processes import COMMAND


def one_line(text):
    return text.startswith("error: ") and text.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this machine")
def test_a_list_onto_a_full_disk_is_one_line(tiny_spec, store, folder):
    cs.run(tiny_spec, store)
    with open("/dev/full", "w") as full:
        finished = subprocess.run(
            [*COMMAND, "list", "--store", str(folder)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert finished.returncode == 1
    assert one_line(finished.stderr), finished.stderr
    assert "No space left" in finished.stderr


@pytest.mark.parametrize("command", [("list",), ("run", "SPEC"), ("explore", "0")])
def test_a_name_that_is_too_long_is_one_line(command, tiny_toml, tmp_path, composcope):
    words = [str(tiny_toml) if word == "SPEC" else word for word in command]
    finished = composcope(*words, "--store", tmp_path / ("x" * 300))
    assert finished.code in (1, 2)
    assert one_line(finished.err), finished.err
    assert "too long" in finished.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python shows users none; pytest does, at a first import
def test_a_page_that_cannot_be_written_is_one_line(tiny_spec, store, folder, tmp_path, composcope):
    run = cs.run(tiny_spec, store)
    (tmp_path / "file").write_text("")
    for command in (
        ("explore", run.run_id, "--out", tmp_path / "file" / "page.html"),
        ("diagnose", run.run_id, "--only", "verdict", "--out", tmp_path / "file" / "out"),
    ):
        finished = composcope(*command, "--store", folder)
        assert finished.code == 2
        assert one_line(finished.err), finished.err
