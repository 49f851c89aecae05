"""Shared by all tests: shape checks, one thread, a tiny run, the command line called in this process."""

import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

assert "composcope" not in sys.modules, (
    "the import hook for shape checks must be installed before composcope is imported"
)
from shapecheck import checked_calls, install_shape_checks  # noqa: E402

install_shape_checks()

import torch  # noqa: E402

import composcope as cs  # noqa: E402
from processes import train_in_threads  # noqa: E402
from tiny import tiny  # noqa: E402

torch.set_num_threads(1)


# The files that take longest, so that they are not begun when all others are done. `make test` gives each file to one
# of two processes, in this order.
LONGEST = ("test_reproduce", "test_docs", "test_report", "test_diagnosis", "test_explorer", "test_laws")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Every test starts from the same random state, whichever ran before it, and its first calls are checked."""
    torch.manual_seed(0)
    checked_calls.clear()


@pytest.fixture(autouse=True, scope="session")
def unsynced() -> Iterator[None]:
    """Files are not forced onto the disk, which takes longer than most tests; test_power_loss.py looks at the calls."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("os.fsync", lambda descriptor: None)
        yield


TINY_TOML = """\
version = 1
seed = 0
task = {kind = "bump", size = 8}
holdout = {kind = "square", lo = 2, hi = 5}
encoding = {kind = "bump"}
decoder = {kind = "mlp", depth = 1, width = 8}
sampling = {kind = "everything"}
training = {steps = 6, batch = 16}
"""


@pytest.fixture
def tiny_spec() -> cs.Spec:
    return tiny()


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


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[cs.Spec, cs.Store], cs.Run]:
    """`trained(spec, store)`: as `cs.run(spec, store)`, but training only for the first test that asks for this run."""
    origin = cs.Store(tmp_path_factory.mktemp("trained") / "runs")

    def copied(spec: cs.Spec, store: cs.Store) -> cs.Run:
        cs.run(spec, origin)
        store.prepare()
        shutil.copytree(origin.folder / spec.run_id, store.folder / spec.run_id)
        return cs.run(spec, store)

    return copied


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
    train_in_threads(monkeypatch)


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes are forked from one process, which imports torch once."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["composcope.workers.jobs", "composcope.study.parallel", "distributed"])
    monkeypatch.setattr("multiprocessing.get_context", lambda method=None: server)


@pytest.fixture(scope="session")
def tiny_runs(tmp_path_factory: pytest.TempPathFactory) -> cs.Store:
    """A store that all tests share, also those in other processes, for runs of the tiny preset."""
    base = tmp_path_factory.getbasetemp()
    return cs.Store((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny runs")


@pytest.fixture
def no_new_kinds() -> Any:
    """Remove the components that a test registers."""
    roles = (cs.Task, cs.Holdout, cs.Encoding, cs.Decoder, cs.Sampling, cs.Penalty)
    before = [dict(role.kinds) for role in roles]
    yield
    for role, kinds in zip(roles, before, strict=True):
        role.kinds.clear()
        role.kinds.update(kinds)
