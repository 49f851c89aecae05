"""The kernels with other vectors than this machine's: 16, 8 and 4 lanes, both compilers, and ARM in an emulator."""

import shutil
import subprocess
from pathlib import Path

import pytest

from composcope import fastconv
from composcope.fastconv import build

CHECK = Path(__file__).with_name("check_kernels.cpp")
CASES = 42


def checked(program: Path, compiler: str, *flags: str, emulator: tuple[str, ...] = ()) -> str:
    """What the check prints, compiled with the kernels."""
    sources = [str(Path(build.__file__).parent / name) for name in build.SOURCES]
    plain = [flag for flag in build.FLAGS if flag not in ("-O3", "-shared", "-fPIC")]
    command = [compiler, "-O1", *plain, "-Wall", "-Wextra", "-Werror", *flags, str(CHECK), *sources, "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([*emulator, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not fastconv.status().available, reason="no kernels here")
@pytest.mark.parametrize(
    ("compiler", "lanes"), [("g++", 16), ("g++", 8), ("g++", 4), pytest.param("clang++", 8, marks=pytest.mark.slow)]
)
def test_kernels_with_other_lanes_agree_with_float64(compiler, lanes, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    # vectors wider than the processor's are passed between functions differently, which does not matter in one program
    flags = [*build.target_flags(), f"-DCOMPOSCOPE_LANES={lanes}", "-Wno-psabi"]
    assert checked(tmp_path / "check", compiler, *flags) == f"lanes {lanes}: {CASES} cases, 0 wrong"


@pytest.mark.slow
def test_kernels_on_arm_agree_with_float64(tmp_path):
    compiler, emulator = "aarch64-linux-gnu-g++", "qemu-aarch64"
    if missing := [name for name in (compiler, emulator) if shutil.which(name) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed (Debian: g++-aarch64-linux-gnu, qemu-user)")
    printed = checked(tmp_path / "check", compiler, "-static", emulator=(emulator,))
    assert printed == f"lanes 4: {CASES} cases, 0 wrong"


def test_a_wrong_kernel_would_be_noticed(tmp_path):
    """The check itself: with a transform's constant changed it must fail."""
    if not fastconv.status().available:
        pytest.skip("no kernels here")
    sources = Path(build.__file__).parent
    for name in (*build.HEADERS, *build.SOURCES):
        text = (sources / name).read_text()
        (tmp_path / name).write_text(text.replace("p + 16.0f * q + v5", "p + 15.0f * q + v5"))
    command = [*build.compiler(), "-O1", "-std=c++17", "-pthread", *build.target_flags(), str(CHECK)]
    command += [*(str(tmp_path / name) for name in build.SOURCES), "-o", str(tmp_path / "check")]
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "WRONG: doubling" in done.stdout
