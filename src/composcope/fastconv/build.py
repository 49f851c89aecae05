"""Compiling the kernels with the system's compiler, once per machine and source, and loading them."""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import torch

logger = logging.getLogger("composcope.fastconv")

SOURCES = ("winograd.cpp", "narrow.cpp")
HEADERS = ("common.h", "product.h", "tiles.h")
FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", "-pthread")
TIMEOUT = 300  # seconds


class BuildError(RuntimeError):
    """The kernels cannot be had here; the message says why in one line."""


def load() -> ctypes.CDLL:
    """The compiled kernels, from the cache or built now."""
    if os.name != "posix" or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        raise BuildError("this processor has no AVX2")
    try:
        folder = private_folder()
        path = folder / f"fastconv-{fingerprint()}.so"
        if not intact(path):
            compile_to(path)
        return declare(ctypes.CDLL(str(path)))
    except (OSError, ValueError, subprocess.SubprocessError, AttributeError) as error:
        raise BuildError(str(error)) from error


def intact(path: Path) -> bool:
    """Whether the compiled file is there and whole: a torn one would crash the process that loads it."""
    seal = path.with_suffix(".sha256")
    if not path.exists() or not seal.exists():
        return False
    return seal.read_text() == hashlib.sha256(path.read_bytes()).hexdigest()


def private_folder() -> Path:
    """The folder compiled kernels live in; nobody but the user may write there, since its files are executed."""
    if named := os.environ.get("COMPOSCOPE_CACHE"):
        folder = Path(named) / "fastconv"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "composcope" / "fastconv"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise BuildError(f"{folder} is not private to this user")
    return folder


def fingerprint() -> str:
    """Hash of all that decides the compiled code: source, flags and processor (the code is for this one only)."""
    here = Path(__file__).parent
    parts = [(here / name).read_bytes() for name in (*HEADERS, *SOURCES)]
    parts += [" ".join(FLAGS).encode(), processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


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
        if found := shutil.which(name):
            return [found]
    raise BuildError("no C++ compiler on PATH")


def compile_to(path: Path) -> None:
    """Compile beside the target and rename, so that processes building at once never see half a file."""
    here = Path(__file__).parent
    start = time.perf_counter()
    handle, made = tempfile.mkstemp(prefix="building-", suffix=".so", dir=path.parent)
    os.close(handle)
    try:
        command = [*compiler(), *FLAGS, *(str(here / name) for name in SOURCES), "-o", made]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise BuildError(f"the compiler failed: {next((x for x in lines if 'error' in x), lines[-1])}")
        seal = Path(f"{made}.sha256")
        seal.write_text(hashlib.sha256(Path(made).read_bytes()).hexdigest())
        os.replace(made, path)
        os.replace(seal, path.with_suffix(".sha256"))
    finally:
        Path(made).unlink(missing_ok=True)
    logger.info("compiled the convolution kernels in %.1f s: %s", time.perf_counter() - start, path)


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Tell ctypes the kernels' arguments."""
    pointer, shape = ctypes.c_void_p, ctypes.POINTER(ctypes.c_long)
    for name in ("winograd", "narrow"):
        scratch = getattr(library, f"composcope_{name}_scratch")
        scratch.argtypes, scratch.restype = [shape], ctypes.c_long
        forward = getattr(library, f"composcope_{name}_forward")
        forward.argtypes, forward.restype = [shape, *[pointer] * 3, ctypes.c_int, *[pointer] * 2], None
        backward = getattr(library, f"composcope_{name}_backward")
        backward.argtypes, backward.restype = [shape, *[pointer] * 8], None
    return library
