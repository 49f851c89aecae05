"""Compiling the kernels with the system's compiler, once per processor, source and compiler, and loading them.

Linux on x86 is where they are measured. On aarch64 (Linux) they are tested for correctness in an emulator. macOS on ARM
should work with Apple's clang but has not been tried; wherever the build fails, PyTorch's convolutions are used.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from composcope.user_cache import cache_folder, is_private, remove_unused

logger = logging.getLogger("composcope.fastconv")

SOURCES = ("winograd.cpp", "winograd8.cpp", "narrow.cpp", "parts.cpp", "step.cpp")
HEADERS = (
    "blocks.h",
    "layer.h",
    "planes.h",
    "prefetch.h",
    "product.h",
    "step.h",
    "threads.h",
    "tiles.h",
    "vectors.h",
    "weights.h",
)
# Clang would not fuse all multiplications and additions by itself; GCC does. Where square roots need not report errors
# in errno, they are vectorised.
FLAGS = ("-O3", "-std=c++17", "-ffp-contract=fast", "-fno-math-errno", "-fPIC", "-shared", "-pthread")
TIMEOUT = 300  # seconds
TRIAL_TIMEOUT = 60


class BuildError(RuntimeError):
    """The kernels cannot be had here; the message says why in one line."""


def load() -> ctypes.CDLL:
    """The compiled kernels, from the cache or built now."""
    try:
        target_flags()  # refuses a processor before anything is written
        return declare(ctypes.CDLL(str(compiled(cache_folder("fastconv")))))
    except BuildError:
        raise
    except (OSError, ValueError, subprocess.SubprocessError, AttributeError) as error:
        raise BuildError(str(error)) from error


def target_flags() -> tuple[str, ...]:
    """The compiler's flags for this processor, or BuildError where there are no kernels for it.

    On x86 the compiler may use what PyTorch uses: `ATEN_CPU_CAPABILITY=avx2` limits the kernels too. NEON belongs to
    every aarch64, so nothing is asked for there; Apple's clang does not know `-march=native`.
    """
    machine = platform.machine().lower()
    if os.name != "posix":
        raise BuildError(f"there are no kernels for {platform.system()}")
    if machine in ("aarch64", "arm64"):
        return ()
    capability = torch.backends.cpu.get_cpu_capability()
    if machine not in ("x86_64", "amd64") or capability not in ("AVX2", "AVX512"):
        raise BuildError(f"this processor ({machine}) has neither AVX2 nor NEON")
    return ("-march=native",) if capability == "AVX512" else ("-march=native", "-mno-avx512f")


def compiled(folder: Path) -> Path:
    """The kernels made by this compiler, from the folder or made now; without a compiler, those that any has made."""
    try:
        path = folder / f"fastconv-{fingerprint()}-{compiler_fingerprint()}.so"
    except BuildError:
        ready = [path for path in folder.glob(f"fastconv-{fingerprint()}-*.so") if intact(path)]
        if not ready:
            raise
        return max(ready, key=lambda path: path.stat().st_mtime)
    if not intact(path):
        compile_to(path)
    return path


def intact(path: Path) -> bool:
    """Whether the compiled file is there, whole and our own: a torn one would crash the process that loads it."""
    seal = path.with_suffix(".sha256")
    if not all(_is_own_file(file) for file in (path, seal)):
        return False
    return seal.read_bytes() == hashlib.sha256(path.read_bytes()).hexdigest().encode()


def _is_own_file(path: Path) -> bool:
    """Whether it is a regular file, not a link, that belongs to this user and that nobody else may change."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and is_private(status)


def fingerprint() -> str:
    """Hash of what is compiled, and for what: source, flags and processor (the code is for this one only)."""
    here = Path(__file__).parent
    parts = [(here / name).read_bytes() for name in (*HEADERS, *SOURCES)]
    parts += [" ".join((*FLAGS, *target_flags())).encode(), processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def compiler_fingerprint() -> str:
    """Hash of the compiler's command, and of its file's path, size and time, which an update changes.

    The compiler is not asked for its version, since every start would wait for the answer.
    """
    parts = []
    for word in compiler():
        parts.append(word)
        if file := shutil.which(word):
            status = os.stat(file)
            parts += [os.path.realpath(file), str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def processor() -> str:
    """What tells one kind of processor from another: its name and instruction sets."""
    text = f"{platform.machine()} {platform.processor()}"
    info = Path("/proc/cpuinfo")
    if info.exists():
        wanted = ("model name", "flags")
        text += "".join(sorted({line for line in info.read_text().splitlines() if line.startswith(wanted)}))
    return text


def compiler() -> list[str]:
    """The command of the C++ compiler: $CXX, or the first one on PATH."""
    if named := os.environ.get("CXX"):
        return shlex.split(named)
    for name in ("c++", "g++", "clang++"):
        if (file := shutil.which(name)) and not _only_offers_to_install(file):
            return [file]
    raise BuildError("no C++ compiler on PATH (install g++ or clang, or name one in CXX)")


def _only_offers_to_install(file: str) -> bool:
    """Whether it is the stand-in that macOS has for a compiler: without the command line tools it opens a dialog."""
    if sys.platform != "darwin" or not file.startswith("/usr/bin/"):
        return False
    return subprocess.run(["xcode-select", "--print-path"], capture_output=True).returncode != 0


def compile_to(path: Path) -> None:
    """Compile beside the target and rename, so that processes building at once never see half a file."""
    here = Path(__file__).parent
    start = time.perf_counter()
    remove_unused(path.parent)
    handle, new = tempfile.mkstemp(prefix="building-", suffix=".so", dir=path.parent)
    os.close(handle)
    seal = Path(f"{new}.sha256")
    try:
        command = [*compiler(), *FLAGS, *target_flags(), *(str(here / name) for name in SOURCES), "-o", new]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise BuildError(f"the compiler failed: {next((x for x in lines if 'error' in x), lines[-1])}")
        try_out(Path(new))
        os.chmod(new, 0o700)
        seal.write_text(hashlib.sha256(Path(new).read_bytes()).hexdigest())
        os.chmod(seal, 0o600)
        _remove_what_is_in_the_way(path, path.with_suffix(".sha256"))
        os.replace(new, path)
        os.replace(seal, path.with_suffix(".sha256"))
    finally:
        Path(new).unlink(missing_ok=True)
        seal.unlink(missing_ok=True)
    logger.info("compiled the convolution kernels in %.1f s: %s", time.perf_counter() - start, path)


def try_out(path: Path) -> None:
    """Compute a few known numbers in another process, which may crash; BuildError if the kernels do not give them."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("trial.py")), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TRIAL_TIMEOUT)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"the process that loaded it ended with {done.returncode}"]
        raise BuildError(f"the compiler reported success, but what it made cannot be used: {lines[-1]}")


def _remove_what_is_in_the_way(*paths: Path) -> None:
    """A folder of the name would make the rename fail."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Tell ctypes the kernels' arguments."""
    pointer, shape = ctypes.c_void_p, ctypes.POINTER(ctypes.c_long)
    library.composcope_lanes.restype = ctypes.c_long
    for name in ("winograd", "winograd8", "narrow"):
        if name == "winograd8" and library.composcope_lanes() != 16:
            continue
        scratch = getattr(library, f"composcope_{name}_scratch")
        scratch.argtypes, scratch.restype = [shape], ctypes.c_long
        forward = getattr(library, f"composcope_{name}_forward")
        forward.argtypes, forward.restype = [shape, *[pointer] * 3, ctypes.c_int, *[pointer] * 2], None
        backward = getattr(library, f"composcope_{name}_backward")
        backward.argtypes, backward.restype = [shape, *[pointer] * 8], None
    library.composcope_embedding_scratch.argtypes = [shape]
    library.composcope_embedding_scratch.restype = ctypes.c_long
    library.composcope_step.argtypes = [pointer, pointer, ctypes.c_long, ctypes.c_double, ctypes.c_long, pointer]
    library.composcope_step.restype = None
    return library
