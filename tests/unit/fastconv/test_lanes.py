"""The kernels with other vectors than this machine's: 16, 8 and 4 lanes, both compilers, and ARM in an emulator."""

import shutil
import subprocess
from pathlib import Path

import pytest

from composcope import fastconv
from composcope.fastconv import build

CHECK = Path(__file__).with_name("check_kernels.cpp")
KERNELS = Path(build.__file__).parent
CASES, CASES_OF_EIGHT = 54, 36  # beside sixteen lanes there are kernels of eight

needs_kernels = pytest.mark.skipif(not fastconv.status().available, reason="no kernels here")


def installed(compiler: str) -> str:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    return compiler


def cases(lanes: int) -> int:
    return CASES + (CASES_OF_EIGHT if lanes == 16 else 0)


def checked(program: Path, compiler: str, *flags: str, level: str = "-O1", emulator: tuple[str, ...] = ()) -> str:
    """What the check prints, compiled with the kernels: with the users' flags, at a level that compiles faster."""
    sources = [str(CHECK), *(str(KERNELS / name) for name in build.SOURCES)]
    plain = [flag for flag in build.FLAGS if flag not in ("-O3", "-shared")]
    strict = ["-Wall", "-Wextra", "-Werror", f"-I{KERNELS}"]
    made = subprocess.run(
        [compiler, level, *plain, *strict, *flags, *sources, "-o", str(program)], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    done = subprocess.run([*emulator, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@needs_kernels
@pytest.mark.parametrize(
    ("compiler", "lanes", "registers"),
    [
        pytest.param("g++", 16, 32, marks=pytest.mark.slow),  # as with AVX-512
        pytest.param("g++", 8, 16, marks=pytest.mark.slow),  # as with AVX2
        ("g++", 4, 32),  # as with NEON
        pytest.param("g++", 16, 16, marks=pytest.mark.slow),
        pytest.param("clang++", 16, 32, marks=pytest.mark.slow),
        pytest.param("clang++", 8, 16, marks=pytest.mark.slow),
        pytest.param("clang++", 4, 32, marks=pytest.mark.slow),
    ],
)
def test_kernels_with_other_lanes_agree_with_float64(compiler, lanes, registers, tmp_path):
    # vectors wider than the processor's are passed between functions differently, which does not matter in one program
    flags = [f"-DCOMPOSCOPE_LANES={lanes}", f"-DCOMPOSCOPE_REGISTERS={registers}", "-Wno-psabi"]
    printed = checked(tmp_path / "check", installed(compiler), *build.target_flags(), *flags)
    assert printed == f"{lanes} lanes, {registers} registers: {cases(lanes)} cases, 0 wrong"


@needs_kernels
@pytest.mark.slow  # test_layers.py tests the same kernels through PyTorch
def test_kernels_as_users_compile_them_agree_with_float64(tmp_path):
    (compiler, *words) = build.compiler()
    printed = checked(tmp_path / "check", compiler, *words, *build.target_flags(), level="-O3")
    assert printed.endswith(f": {cases(fastconv.status().lanes)} cases, 0 wrong")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_kernels_compile_for_avx512(compiler, tmp_path):
    """Compiled as for a processor with AVX-512, which need not be this one: sixteen lanes, and all 32 registers."""
    target = "-march=skylake-avx512"
    empty, configuration = tmp_path / "empty.cpp", tmp_path / "configuration.cpp"
    empty.write_text("")
    refused = subprocess.run(
        [installed(compiler), target, "-c", str(empty), "-o", str(tmp_path / "empty.o")], capture_output=True, text=True
    )
    if refused.returncode:
        pytest.skip(f"{compiler} refuses {target}: {refused.stderr.strip()}")
    configuration.write_text(
        '#include "product.h"\nstatic_assert(composcope::LANES == 16 && composcope::REGISTERS == 32);\n'
        "static_assert(composcope::STRIP == 4);\n"
    )
    flags = [flag for flag in build.FLAGS if flag != "-shared"]
    sources = [configuration, *(KERNELS / name for name in build.SOURCES)]
    done = subprocess.run(
        [compiler, *flags, target, "-Wall", "-Wextra", "-Werror", f"-I{KERNELS}", "-S", *map(str, sources)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "%zmm31" in (tmp_path / "winograd.s").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["aarch64-linux-gnu-g++", "clang++ --target=aarch64-linux-gnu"])
def test_kernels_on_arm_agree_with_float64(compiler, tmp_path):
    (command, *words), emulator = compiler.split(), "qemu-aarch64"
    needed = {command, "aarch64-linux-gnu-g++", emulator}  # clang takes the libraries of the other compiler
    if missing := sorted(name for name in needed if shutil.which(name) is None):
        pytest.skip(f"{' and '.join(missing)} not installed (Debian: clang, g++-aarch64-linux-gnu, qemu-user)")
    printed = checked(tmp_path / "check", command, *words, "-static", emulator=(emulator,))
    assert printed == f"4 lanes, 32 registers: {CASES} cases, 0 wrong"


@needs_kernels
@pytest.mark.slow
def test_a_wrong_kernel_would_be_noticed(tmp_path):
    """The check itself: with a transform's constant changed it must fail."""
    for name in (*build.HEADERS, *build.SOURCES):
        text = (KERNELS / name).read_text()
        (tmp_path / name).write_text(text.replace("p + 16.0f * q + v5", "p + 15.0f * q + v5"))
    command = [*build.compiler(), "-O1", "-std=c++17", "-pthread", *build.target_flags(), f"-I{tmp_path}", str(CHECK)]
    command += [*(str(tmp_path / name) for name in build.SOURCES), "-o", str(tmp_path / "check")]
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "WRONG: doubling" in done.stdout
