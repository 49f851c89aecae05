"""Results on disk: nothing else reads or writes them.

    store/store.json                      the version of the format
    store/<run_id>/spec.json curve.csv weights.safetensors provenance.json [snapshots/<step>.safetensors] done.json
    store/<run_id>/measures/<name>.json   added later, each with its version and checksum
    store/<run_id>/measures/diagnosis.npz the maps of the diagnosis, whose numbers are in diagnosis.json
    store/<run_id>/spec.json failed.json  a run that diverged, with the reason
    store/.leases/                        who is doing which run at the moment

A run's folder is filled under a temporary name and renamed when complete, so it exists completely or not at all;
`done.json` holds the checksums of the other files. Nothing is ever loaded by running code.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from composcope.display import counted
from composcope.errors import BadInput, Damaged, StoreUnwritable
from composcope.files import make_folder, read_regular, sha256, write_atomically, write_synced
from composcope.store.checked_files import MAX_TEXT, as_csv, as_json, parse_json
from composcope.store.index import Entry, Index, settled, signature, without_collections
from composcope.store.leases import Leases
from composcope.store.records import Record
from composcope.store.run_folder import FORMAT, RunFolder, storing
from composcope.store.staging import add_folder, is_sealed, remove_leftovers, temporary_folder

# PyTorch takes seconds to import, and a listing does not need it.
if TYPE_CHECKING:
    import pandas as pd

    from composcope.runs.run import Run
    from composcope.runs.spec import Spec
    from composcope.training import Trained

T = TypeVar("T")
OnProgress = Callable[[int, int], None]

RUN_ID = re.compile("[0-9a-f]{16}")
LEASE_NAME = re.compile("[0-9A-Za-z_-]{1,100}")
# A disk with less space than this is full: nothing is trained that could not be stored.
MIN_FREE_BYTES = 2**20


class Store:
    """A folder of runs, shared by any number of processes: `store[run_id]` opens one, `store.frame()` lists all."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._leases = Leases(self.folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"store {str(folder)!r} is a file; a folder is needed")
        version = self._read_format()
        if version > FORMAT:
            raise BadInput(f"store {str(folder)!r} has format {version}; this composcope knows {FORMAT}: upgrade it")

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    def __getitem__(self, run_id: str) -> "Run":
        """The run, opened; Damaged names a file that is missing or not the one that was written."""
        from composcope.runs.run import Run

        folder = self.run_folder(run_id)
        folder.verify()
        return Run(folder.spec(), folder)

    def run_folder(self, run_id: str) -> RunFolder:
        """What the store has of a run, read without a look at the rest: its files may be missing or damaged."""
        return RunFolder(self.folder / run_id)

    # Which runs there are

    def has(self, run_id: str) -> bool:
        """Whether the run is trained and sealed."""
        return is_sealed(f"{self.folder}/{run_id}")

    def complete(self, run_id: str) -> bool:
        """Whether the run is sealed and was measured; one that is only sealed is completed by `cs.run`, untrained."""
        return self.has(run_id) and self.run_folder(run_id).has_measures("error")

    def failed(self, run_id: str) -> bool:
        """Whether the run failed the last time."""
        return not self.has(run_id) and (self.folder / run_id / "failed.json").is_file()

    def run_ids(self) -> list[str]:
        """Every run's id, done, failed or damaged, in alphabetical order."""
        try:
            with os.scandir(self.folder) as entries:
                return sorted(entry.name for entry in entries if RUN_ID.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"store {str(self.folder)!r} cannot be read: {error.strerror}") from None

    def find(self, prefix: str) -> str:
        """The id of the only run whose id begins with this."""
        matches = [run_id for run_id in self.run_ids() if run_id.startswith(prefix)] if prefix else []
        if len(matches) == 1:
            return matches[0]
        hint = f"it holds {counted(len(self.run_ids()), 'run')}; `composcope list` shows them"
        if not matches:
            raise BadInput(f"no run in store {str(self.folder)!r} has an id that begins with {prefix!r}; {hint}")
        raise BadInput(
            f"{len(matches)} runs have ids that begin with {prefix!r}: {', '.join(matches[:5])}; give more digits"
        )

    # Adding runs

    def prepare(self, run_id: str | None = None) -> None:
        """Create the folder, or raise BadInput if it cannot be written to; remove what a killed process left behind.

        - `run_id`: the run that is to be stored, for the message.
        """
        try:
            make_folder(self.folder, parents=True)
            if shutil.disk_usage(self.folder).free < MIN_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if not os.path.lexists(self.folder / "store.json"):
                write_atomically(self.folder / "store.json", as_json({"format": FORMAT}))
            with temporary_folder(self.folder / "check") as mine:
                write_synced(mine / "check", b"can be written")
                remove_leftovers(self.folder, mine.stat().st_mtime)
        except OSError as error:
            raise self._unwritable(error, run_id) from None

    def _unwritable(self, error: OSError, run_id: str | None = None) -> StoreUnwritable:
        run = "" if run_id is None else f"run {run_id}: "
        return StoreUnwritable(f"{run}store {str(self.folder)!r} cannot be written: {error.strerror}")

    @contextmanager
    def lease(self, run_id: str) -> Iterator[bool]:
        """True while this process holds the run, False if another live process does: for a run that is to be done once.

        Another process may have finished the run before, so look at `has` again after taking the lease. The lease of a
        process that died ends by itself: at once on the same machine, within two minutes on another.

            with store.lease(spec.run_id) as mine:
                if mine and not store.has(spec.run_id):
                    ...
        """
        if not LEASE_NAME.fullmatch(run_id):
            raise BadInput(f"lease {run_id!r}: letters, digits, '-' and '_' are allowed")
        stack = ExitStack()
        try:
            make_folder(self.folder, parents=True)
            mine = stack.enter_context(self._leases.take(run_id))
        except OSError as error:
            raise self._unwritable(error, run_id) from None
        with stack:
            yield mine

    def save(self, spec: "Spec", trained: "Trained", provenance: Mapping[str, Any]) -> "Run":
        """Store a finished run, with the checksums of its files; the run, opened, with its weights at hand."""
        import safetensors.torch

        from composcope.runs.run import Run

        files = {
            "spec.json": as_json(spec.to_dict()),
            "curve.csv": as_csv(trained.curve),
            "weights.safetensors": safetensors.torch.save(trained.weights),
            "provenance.json": as_json({**provenance, **trained.times}),
        }
        for step, weights in trained.snapshots.items():
            files[f"snapshots/{step:08d}.safetensors"] = safetensors.torch.save(weights)
        checksums = {name: {"bytes": len(content), "sha256": sha256(content)} for name, content in files.items()}
        seal = {"format": FORMAT, "run_id": spec.run_id, "files": checksums}
        folder = self.run_folder(spec.run_id)
        with storing(folder.path):
            add_folder(folder.path, {**files, "done.json": as_json(seal)})
        return Run(spec, folder, trained.weights)

    def save_failure(self, spec: "Spec", reason: str, provenance: Mapping[str, Any]) -> None:
        """Record that a run failed; it is tried again the next time it is requested."""
        failure = {"format": FORMAT, "reason": reason, "provenance": dict(provenance)}
        path = self.folder / spec.run_id
        with storing(path):
            add_folder(path, {"spec.json": as_json(spec.to_dict()), "failed.json": as_json(failure)})

    def add(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Add a run that was done elsewhere, from its files; of a run that is here already, only the measures."""
        if any(Path(name).is_absolute() or ".." in Path(name).parts for name in files):
            raise BadInput(f"run {run_id}: a file's name leads out of the run's folder")
        path = self.folder / run_id
        with storing(path):
            if not self.has(run_id):
                add_folder(path, files)
            for name in sorted(files, reverse=True):  # maps before the numbers that hold their checksum
                if name.startswith("measures/"):
                    make_folder(path / "measures")
                    write_atomically(path / name, files[name])
        if "done.json" in files:
            self.run_folder(run_id).verify()

    # Listings

    def record(self, run_id: str, verify: bool = False) -> Record:
        """The run's row in a listing, whatever its state; `verify` compares the checksum of every file."""
        return self.run_folder(run_id).record(verify)

    def records(
        self,
        run_ids: Sequence[str] | None = None,
        verify: bool = False,
        on_progress: OnProgress = lambda done, total: None,
    ) -> list[Record]:
        """What is listed of many runs, by default of all. Runs of a large store that have not changed are not read."""
        return self._listed(run_ids, verify, on_progress, Index.records, lambda record: record)

    def rows(
        self,
        run_ids: Sequence[str] | None = None,
        verify: bool = False,
        on_progress: OnProgress = lambda done, total: None,
    ) -> list[dict[str, Any]]:
        """The records as flat rows of a table: id, status, `decoder.depth`, `error.heldout_mse`, seconds, problem."""
        return self._listed(run_ids, verify, on_progress, Index.rows, Record.row)

    def _listed(
        self,
        run_ids: Sequence[str] | None,
        verify: bool,
        on_progress: OnProgress,
        remembered: Callable[[Index], Mapping[str, Entry[T]]],
        made: Callable[[Record], T],
    ) -> list[T]:
        """Of each run what the index has if the files have not changed since, or else what is made from its record."""
        selected = self.run_ids() if run_ids is None else list(run_ids)
        index = Index.of(self.folder, len(selected))
        if index is None:
            return [made(self.record(run_id, verify)) for run_id in selected]
        fresh, listed = {}, []
        with without_collections():
            entries = remembered(index)
            for done, run_id in enumerate(selected):
                if done % 50 == 0:
                    on_progress(done, len(selected))
                now = signature(f"{self.folder}/{run_id}")
                entry = entries.get(run_id)
                if entry is not None and entry.signature == now.text and (entry.verified or not verify):
                    listed.append(entry.content)
                    continue
                record = self.record(run_id, verify)
                if settled(now) and record.status != "damaged":
                    fresh[run_id] = Entry(now.text, verify, record)
                listed.append(made(record))
        if fresh:
            index.write(fresh)
        return listed

    def frame(self, run_ids: Sequence[str] | None = None, verify: bool = False) -> "pd.DataFrame":
        """One row per run: id, status, spec fields (`decoder.depth`), measures (`error.heldout_mse`), and times."""
        import pandas as pd

        rows = self.rows(run_ids, verify)
        return pd.DataFrame(rows, columns=None if rows else ["run_id", "status", "seconds", "cpu_seconds", "problem"])

    def _read_format(self) -> int:
        path = self.folder / "store.json"
        try:
            version = parse_json(path, read_regular(path, MAX_TEXT)).get("format")  # the store itself may be a link
        except (Damaged, OSError):
            return FORMAT  # the runs have checksums of their own
        if not isinstance(version, int):
            raise BadInput(f"store {str(self.folder)!r}: store.json has format {version!r}; a whole number is needed")
        return version


def store_state(folder: str | os.PathLike[str]) -> str:
    """Whether results can be stored there, in one line for `composcope doctor`."""
    try:
        existed = Path(folder).exists()  # looked at first, since preparing a store creates it
        store = Store(folder)
        if not existed:
            parent = next(path for path in Path(folder).absolute().parents if path.exists())
            writable = os.access(parent, os.W_OK) and parent.is_dir()
            return f"{folder} does not exist yet and {'can' if writable else 'CANNOT'} be created"
        store.prepare()
        return f"{folder} is writable and holds {counted(len(store.run_ids()), 'run')}"
    except BadInput as problem:
        return f"PROBLEM: {problem}"
