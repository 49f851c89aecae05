"""What the benchmarks say of the machine, and how `make bench` runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LIMITS = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}

ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: {}\n\nprocessor\t: 1\nCPU part\t: {}\n"


@pytest.fixture
def timing(monkeypatch):
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return __import__("timing")


def test_processors_of_the_same_architecture_have_different_names(timing):
    assert timing.name_in("processor\t: 0\nmodel name\t: AMD EPYC\nmodel\t: 1\n") == "AMD EPYC"
    names = [timing.name_in(ARM.format(*parts)) for parts in (("0xd0c", "0xd0c"), ("0xd05", "0xd0b"))]
    assert names == ["ARM 0x41 0xd0c", "ARM 0x41 0xd05 0xd0b"]
    assert timing.name_in("processor : 0\n") == ""


def test_limits_are_named(timing, monkeypatch):
    plain = timing.folder()
    assert "limited" not in timing.machine() + plain
    for name, value in LIMITS.items():
        monkeypatch.setenv(name, value)
    assert timing.machine("one thread").endswith(
        "; limited by ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2; one thread"
    )
    assert timing.folder() == f"{plain}-limited"


@pytest.mark.parametrize(("only", "missing"), [tuple(LIMITS), tuple(reversed(LIMITS))])
def test_one_limit_alone_is_warned_of(only, missing, timing, monkeypatch):
    monkeypatch.setenv(only, LIMITS[only])
    _, warning = timing.machine().splitlines()
    assert warning.startswith(f"WARNING: {missing} is not set")


def bench(folder: Path, *names: str) -> "subprocess.CompletedProcess[str]":
    """`make bench` with a copy of the program that runs the benchmarks."""
    for file in ("bench.py", "timing.py"):
        (folder / file).write_text((BENCHMARKS / file).read_text())
    source = str(BENCHMARKS.parent / "src")
    env = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(folder / "bench.py"), *names], env=env, capture_output=True, text=True, timeout=120
    )


def test_results_are_shown_and_kept_but_not_those_of_a_failure(tmp_path):
    (tmp_path / "good.py").write_text("print('a line')")
    (tmp_path / "bad.py").write_text("print('a line')\nraise SystemExit(3)")
    done = bench(tmp_path, "good", "bad")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("== good\na line\n== kept in ")
    assert done.stdout.endswith("== bad\na line\n")
    assert "the benchmark bad failed" in done.stderr
    (kept,) = (tmp_path / "results").rglob("*.*")
    assert kept.name == "good.txt"
    assert kept.read_text() == "a line\n"
