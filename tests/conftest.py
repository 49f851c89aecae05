"""Shared by all tests: shape checks, one thread, a tiny run, the command line called in this process."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jaxtyping import install_import_hook

assert "composcope" not in sys.modules, (
    "the import hook for shape checks must be installed before composcope is imported"
)
# All modules but the command line, whose function signatures typer inspects.
SOURCE = Path(find_spec("composcope").origin).parent
CHECKED = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")} - {"__init__", "__pycache__", "cli"}
install_import_hook([f"composcope.{name}" for name in sorted(CHECKED)], "shapecheck.checked")

import torch  # noqa: E402

import composcope as cs  # noqa: E402
from shapecheck import checked_calls  # noqa: E402

torch.set_num_threads(1)


# The files that take longest, so that they are not begun when all others are done. `make test` gives each file to one
# of two processes, in this order.
LONGEST = ("test_reproduce", "test_report", "test_explorer", "test_docs", "test_strangers_store", "test_cures_beyond")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Every test starts from the same random state, whichever ran before it, and its first calls are checked."""
    torch.manual_seed(0)
    checked_calls.clear()


TINY_TOML = """\
version = 1
seed = 0

[task]
kind = "bump"
size = 8

[holdout]
kind = "square"
lo = 2
hi = 5

[encoding]
kind = "bump"

[decoder]
kind = "mlp"
depth = 1
width = 8

[sampling]
kind = "everything"

[training]
steps = 6
batch = 16
"""


@pytest.fixture
def tiny_spec() -> cs.Spec:
    """A complete run that takes milliseconds: 48 seen images of 8 x 8, three steps per epoch, two epochs."""
    return cs.Spec(
        task=cs.BumpTask(8),
        holdout=cs.Square(2, 5),
        encoding=cs.Bump(),
        decoder=cs.MLP(depth=1, width=8),
        sampling=cs.Everything(),
        training=cs.Training(steps=6, batch=16),
    )


@pytest.fixture
def tiny_toml(tmp_path: Path) -> Path:
    """The same run as a TOML file."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY_TOML)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A path for a store; it does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def store(folder: Path) -> cs.Store:
    return cs.Store(folder)


@dataclass(frozen=True)
class Finished:
    """A command's exit code and output."""

    code: int
    out: str
    err: str


@pytest.fixture
def composcope(capsys: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """The command line, in this process: `composcope("run", path)`."""
    from composcope.cli import main

    def call(*arguments: Any) -> Finished:
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Finished(int(exit_.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture(scope="module")
def composcope_once() -> Callable[..., Finished]:
    """The same for module-scoped fixtures, which cannot use capsys."""
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    from composcope.cli import main

    def call(*arguments: Any) -> Finished:
        out, err = StringIO(), StringIO()
        with pytest.raises(SystemExit) as exit_, redirect_stdout(out), redirect_stderr(err):
            main([str(argument) for argument in arguments])
        return Finished(int(exit_.value.code or 0), out.getvalue(), err.getvalue())

    return call


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are done by a thread of this process, which starts at once."""
    from concurrent.futures import ThreadPoolExecutor

    from composcope.workers.local_pool import LocalPool

    class Threads(LocalPool):
        def __init__(self, workers: int, slots: int) -> None:
            super().__init__(1, slots)
            self.threads = ThreadPoolExecutor(1)

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            return self.threads.submit(fn, *args, **kwargs)

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            self.threads.shutdown(wait, cancel_futures=cancel_futures)

    monkeypatch.setattr("composcope.workers.executor.LocalPool", Threads)


@pytest.fixture
def no_new_kinds() -> Any:
    """Remove the components that a test registers."""
    roles = (cs.Task, cs.Holdout, cs.Encoding, cs.Decoder, cs.Sampling, cs.Penalty)
    before = [dict(role.kinds) for role in roles]
    yield
    for role, kinds in zip(roles, before, strict=True):
        role.kinds.clear()
        role.kinds.update(kinds)
