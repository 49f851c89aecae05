"""Compiling the kernels: cached, private, safe for processes building at once, and never a reason to fail."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from composcope import fastconv
from composcope.fastconv import build
from composcope.user_cache import cache_folder

needs_kernels = pytest.mark.skipif(not fastconv.status().available, reason="no kernels here")

TRAIN = """
import logging, torch
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
from composcope import fastconv
layer = fastconv.Conv3x3(16, 16)
for _ in range(3):
    layer(torch.randn(4, 16, 16, 16)).sum().backward()
print(fastconv.status().available, dict(fastconv.used()), fastconv.status().reason)
"""


def start(cache: Path, **changes: str) -> "subprocess.Popen[str]":
    source = str(Path(build.__file__).parents[2])
    env = {**os.environ, "COMPOSCOPE_CACHE": str(cache), "PYTHONPATH": source, "OMP_NUM_THREADS": "1", **changes}
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(process: "subprocess.Popen[str]") -> tuple[str, list[str]]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip(), [line for line in err.splitlines() if "composcope.fastconv" in line]


@needs_kernels
@pytest.mark.slow
def test_two_processes_build_at_once_and_a_third_finds_it(tmp_path):
    # a compiler that writes slowly what this process has compiled already
    compiled = build.compiled(cache_folder("fastconv"))
    slow = 'while [ "$1" != -o ]; do shift; done; head -c 5000 "$0" > "$2"; sleep 1; cat "$0" > "$2"'
    compiler = shlex.join(["sh", "-c", slow, str(compiled)])
    both = [start(tmp_path, CXX=compiler), start(tmp_path, CXX=compiler)]
    for process in both:
        out, notices = outcome(process)
        assert out == "True {'winograd': 3}"
        assert len(notices) <= 1
        assert all("compiled" in line for line in notices)
    folder = tmp_path / "fastconv"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.suffix for path in folder.iterdir()) == [".sha256", ".so"]
    assert outcome(start(tmp_path, PATH="")) == ("True {'winograd': 3}", [])  # no compiler needed any more
    library = next(folder.glob("*.so"))
    library.write_bytes(library.read_bytes()[:5000])  # loading it would crash the process
    out, notices = outcome(start(tmp_path, CXX=compiler))
    assert out == "True {'winograd': 3}"
    assert "compiled" in notices[0]


@pytest.fixture
def warned_once(tmp_path, monkeypatch, caplog):
    """`warned_once(reason, cache, **environment)`: training takes PyTorch's convolutions and says why, once."""

    def check(reason: str, cache: Path = tmp_path, **environment: str) -> None:
        for name, value in {"COMPOSCOPE_CACHE": str(cache), **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("composcope.fastconv.state._loaded", None)  # as at the start of a process
        layer, before = fastconv.Conv3x3(16, 16), fastconv.used()
        for _ in range(3):
            layer(torch.randn(4, 16, 16, 16)).sum().backward()
        assert fastconv.used() - before == {"torch": 3}
        assert not fastconv.status().available
        assert reason in fastconv.status().reason
        (record,) = caplog.records
        assert (record.name, record.levelname) == ("composcope.fastconv", "WARNING")
        assert reason in record.getMessage()

    return check


def test_no_compiler(tmp_path, warned_once):
    warned_once("no C++ compiler" if fastconv.status().available else "", PATH=str(tmp_path), CXX="")


@needs_kernels
def test_compiler_fails(tmp_path, warned_once):
    warned_once("the compiler failed", CXX="false")
    assert list((tmp_path / "fastconv").iterdir()) == []


@needs_kernels
@pytest.mark.parametrize("garbage", [b"", b"\x7fELF" + bytes(5000)], ids=["empty", "torn"])
def test_a_compiler_that_reports_success_and_writes_garbage(garbage, tmp_path, warned_once):
    made = tmp_path / "made"
    made.write_bytes(garbage)
    script = 'while [ "$1" != -o ]; do shift; done; cat "$0" > "$2"'
    warned_once("reported success, but", CXX=shlex.join(["sh", "-c", script, str(made)]))
    assert list((tmp_path / "fastconv").iterdir()) == []


def test_a_library_that_crashes_when_it_is_loaded(tmp_path):
    source, library = tmp_path / "crash.c", tmp_path / "crash.so"
    source.write_text("__attribute__((constructor)) static void crash(void) { *(volatile int*)0 = 1; }")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(build.BuildError, match="ended with -11"):
        build.try_out(library)


WRONG = """
int pause(void);
long composcope_lanes(void) { return LANES; }
long composcope_winograd_scratch(const long* shape) { return 1; }
void composcope_winograd_forward() {}
void composcope_winograd_backward() { BACKWARD; }
"""


@pytest.mark.parametrize(
    ("lanes", "backward", "message"),
    [
        (2, "", "it has 2 lanes"),
        (8, "", "winograd kernels give wrong numbers"),
        (8, "__builtin_trap()", "ended with -"),
        (8, "for (;;) pause()", "timed out"),
    ],
    ids=["lanes", "numbers", "crash", "hang"],
)
def test_a_library_whose_kernels_are_wrong(lanes, backward, message, tmp_path, monkeypatch):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    monkeypatch.setattr(build, "TRIAL_TIMEOUT", 2)
    source, library = tmp_path / "wrong.c", tmp_path / "wrong.so"
    source.write_text(WRONG.replace("LANES", str(lanes)).replace("BACKWARD", backward))
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    with pytest.raises((build.BuildError, subprocess.TimeoutExpired), match=message):
        build.try_out(library)


@pytest.mark.parametrize(("answer", "found"), [(0, True), (2, False)])
def test_the_stand_in_for_a_compiler_on_macos_is_not_called(answer, found, monkeypatch):
    asked = []

    def run(command, **options):
        asked.append(command)
        return subprocess.CompletedProcess(command, answer)

    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", run)
    if found:
        assert build.compiler() == ["/usr/bin/c++"]
    else:
        with pytest.raises(build.BuildError, match=r"no C\+\+ compiler"):
            build.compiler()
    assert asked[0] == ["xcode-select", "--print-path"]


def test_no_home(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("COMPOSCOPE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(build.BuildError, match="home" if fastconv.status().available else ""):
        build.load()


def test_only_the_users_own_regular_files_are_loaded(tmp_path, monkeypatch):
    path = tmp_path / "fastconv-x.so"
    path.write_bytes(b"code")
    path.with_suffix(".sha256").write_text(hashlib.sha256(b"code").hexdigest())
    path.chmod(0o700)
    assert build.intact(path)
    path.chmod(0o722)
    assert not build.intact(path)
    path.chmod(0o700)
    monkeypatch.setattr("os.getuid", lambda: path.stat().st_uid + 1)
    assert not build.intact(path)
    monkeypatch.undo()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert not build.intact(path)
    path.unlink()
    path.mkdir()
    assert not build.intact(path)


@needs_kernels
def test_folder_cannot_be_made(tmp_path, warned_once):
    (tmp_path / "file").write_text("")
    warned_once("Not a directory", cache=tmp_path / "file")


def test_folder_others_may_write_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPOSCOPE_CACHE", str(tmp_path))
    (tmp_path / "fastconv").mkdir()
    (tmp_path / "fastconv").chmod(0o777)
    with pytest.raises(build.BuildError, match="not private" if fastconv.status().available else ""):
        build.load()


def test_fingerprint_follows_source_flags_and_processor(monkeypatch):
    first = build.fingerprint()
    assert first == build.fingerprint()
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-g"))
    second = build.fingerprint()
    monkeypatch.setattr(build, "processor", lambda: "another")
    assert len({first, second, build.fingerprint()}) == 3


def test_compiler_fingerprint_follows_command_and_file(tmp_path, monkeypatch):
    compiler = tmp_path / "c++"

    def changed(command: str, content: str) -> str:
        compiler.write_text(content)
        compiler.chmod(0o700)
        monkeypatch.setenv("CXX", command)
        return build.compiler_fingerprint()

    named = str(compiler)
    first = changed(named, "version 1")
    assert first == build.compiler_fingerprint()
    assert len({first, changed(named, "version 1.1"), changed(f"{named} -g", "version 1")}) == 3
    compiler.unlink()
    assert build.compiler_fingerprint() != first


@needs_kernels
def test_without_a_compiler_the_kernels_of_any_are_taken(tmp_path, monkeypatch):
    made = build.compiled(cache_folder("fastconv"))
    older, newer = (tmp_path / f"fastconv-{build.fingerprint()}-{name}.so" for name in ("older", "newer"))
    for path, time in ((older, 1), (newer, 2)):
        for suffix in (".so", ".sha256"):
            shutil.copy2(made.with_suffix(suffix), path.with_suffix(suffix))
        os.utime(path, (time, time))
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", "")
    assert build.compiled(tmp_path) == newer
    newer.write_bytes(b"torn")
    assert build.compiled(tmp_path) == older
    older.unlink()
    with pytest.raises(build.BuildError, match=r"no C\+\+ compiler"):
        build.compiled(tmp_path)


@needs_kernels
def test_another_compiler_compiles_again(tmp_path, monkeypatch):
    made = build.compiled(cache_folder("fastconv"))
    for name in ("one", "other"):
        script = f'while [ "$1" != -o ]; do shift; done; cat "$0" > "$2" # {name}'
        monkeypatch.setenv("CXX", shlex.join(["sh", "-c", script, str(made)]))
        assert build.intact(build.compiled(tmp_path))
    assert len(list(tmp_path.glob("*.so"))) == 2


def test_an_old_processor_is_refused(monkeypatch):
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "DEFAULT")
    with pytest.raises(build.BuildError, match="AVX2"):
        build.load()


@pytest.mark.parametrize("machine", ["aarch64", "arm64"])
def test_arm_is_admitted_without_flags_its_compilers_may_not_know(machine, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "DEFAULT")
    assert build.target_flags() == ()


def test_kernels_are_limited_where_pytorch_is(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX2")
    assert "-mno-avx512f" in build.target_flags()
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX512")
    assert build.target_flags() == ("-march=native",)


def test_other_processors_are_refused(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(build.BuildError, match="riscv64"):
        build.target_flags()


def test_every_source_file_decides_the_fingerprint():
    files = {path.name for path in Path(build.__file__).parent.iterdir() if path.suffix in (".h", ".cpp")}
    assert files == {*build.HEADERS, *build.SOURCES}
