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
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from composcope.display import counted
from composcope.errors import BadInput, CannotStore, DiskFull, StoreUnwritable
from composcope.files import (
    make_folder,
    read_regular,
    sha256,
    write_atomically,
    write_synced,
)
from composcope.store import measure_files
from composcope.store.checked_files import (
    MOST_TEXT,
    Damaged,
    as_csv,
    as_json,
    parse_json,
    read_file,
)
from composcope.store.index import Entry, Index, settled, without_collections
from composcope.store.leases import Leases
from composcope.store.records import Record, flatten, signature
from composcope.store.run_folder import FORMAT, RunFolder, is_sealed
from composcope.store.staging import Staging

# PyTorch takes seconds to import, and a listing does not need it.
if TYPE_CHECKING:
    import pandas as pd

    from composcope.diagnosis import Diagnosis
    from composcope.runs.spec import Spec
    from composcope.training import Trained, Weights

T = TypeVar("T")

__all__ = ["Damaged", "Record", "Store", "flatten"]

RUN_ID = re.compile("[0-9a-f]{16}")
LEASE_NAME = re.compile("[0-9A-Za-z_-]{1,100}")
# A disk with less space than this is full: nothing is trained that could not be stored.
LEAST_FREE_BYTES = 2**20
# The set of measures that every finished run has.
ALWAYS_MEASURED = "error"


class Store:
    """A folder of runs, shared by any number of processes."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._leases = Leases(self.folder)
        self._staging = Staging(self.folder, self._leases, self)
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"store {str(folder)!r} is a file; a folder is needed")
        version = self._read_format()
        if version > FORMAT:
            raise BadInput(f"store {str(folder)!r} has format {version}; this composcope knows {FORMAT}: upgrade it")

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    def prepare(self, run_id: str | None = None) -> None:
        """Create the folder, or raise BadInput if it cannot be written to; remove what a killed process left behind.

        - `run_id`: the run that is to be stored, for the message.
        """
        try:
            make_folder(self.folder, parents=True)
            if shutil.disk_usage(self.folder).free < LEAST_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if not os.path.lexists(self.folder / "store.json"):
                write_atomically(self.folder / "store.json", as_json({"format": FORMAT}))
            with self._staging.temporary("check") as mine:
                write_synced(mine / "check", b"can be written")
                self._staging.remove_leftovers(mine.stat().st_mtime)
        except OSError as error:
            raise self._unwritable(error, run_id) from None

    def _unwritable(self, error: OSError, run_id: str | None = None) -> StoreUnwritable:
        run = "" if run_id is None else f"run {run_id}: "
        return StoreUnwritable(f"{run}store {str(self.folder)!r} cannot be written: {error.strerror}")

    @property
    def read_only(self) -> bool:
        """Whether this process may only read the store."""
        return self.folder.exists() and not os.access(self.folder, os.W_OK)

    @contextmanager
    def _storing(self, run_id: str) -> Iterator[None]:
        """Errors of the file system as one line that names the run."""
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
            reason = error.strerror or type(error).__name__
            raise (DiskFull if full else CannotStore)(
                f"run {run_id}: cannot be stored in {str(self.folder)!r}: {reason}"
            ) from None

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
        try:
            make_folder(self.folder, parents=True)
            number = self._leases.acquire(run_id)
        except OSError as error:
            raise self._unwritable(error, run_id) from None
        if number is None:
            yield False
            return
        with self._leases.holding(run_id, number):
            yield True

    def has(self, run_id: str) -> bool:
        """Whether the run is trained and sealed."""
        return is_sealed(f"{self.folder}/{run_id}")

    def complete(self, run_id: str) -> bool:
        """Whether the run is sealed and was measured; one that is only sealed is completed by `load`, untrained."""
        return self.has(run_id) and self.has_measures(run_id, ALWAYS_MEASURED)

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

    def save(self, spec: "Spec", trained: "Trained", provenance: Mapping[str, Any]) -> None:
        """Store a finished run, with the checksums of its files."""
        import safetensors.torch

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
        with self._storing(spec.run_id):
            self._staging.add(spec.run_id, {**files, "done.json": as_json(seal)})

    def save_failure(self, spec: "Spec", reason: str, provenance: Mapping[str, Any]) -> None:
        """Record that a run failed; it is tried again the next time it is requested."""
        failure = {"format": FORMAT, "reason": reason, "provenance": dict(provenance)}
        with self._storing(spec.run_id):
            self._staging.add(spec.run_id, {"spec.json": as_json(spec.to_dict()), "failed.json": as_json(failure)})

    def files(self, run_id: str) -> dict[str, bytes]:
        """Every file of a run by its path within the run's folder, to be added to another store."""
        folder = self.folder / run_id
        return {str(path.relative_to(folder)): read_file(path) for path in folder.rglob("*") if path.is_file()}

    def add(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Add a run that was done elsewhere, from its files; of a run that is here already, only the measures."""
        if any(Path(name).is_absolute() or ".." in Path(name).parts for name in files):
            raise BadInput(f"run {run_id}: a file's name leads out of the run's folder")
        with self._storing(run_id):
            if not self.has(run_id):
                self._staging.add(run_id, files)
            for name in sorted(files, reverse=True):  # maps before the numbers that hold their checksum
                if name.startswith("measures/"):
                    make_folder(self.folder / run_id / "measures")
                    write_atomically(self.folder / run_id / name, files[name])
        if "done.json" in files:
            self.verify(run_id)

    def save_measures(self, run_id: str, name: str, version: int, values: Mapping[str, Any]) -> None:
        """Add a set of measures to a finished run, or replace it."""
        with self._storing(run_id):
            measure_files.write_measures(self.folder / run_id, name, version, values)

    def has_measures(self, run_id: str, name: str) -> bool:
        """Whether the run has a set of measures of this name, in any state."""
        return measure_files.has_measures(f"{self.folder}/{run_id}", name)

    def measures(self, run_id: str, versions: Mapping[str, int] | None = None) -> dict[str, dict[str, Any]]:
        """All sets of measures of a run by name; with `versions`, only those that are up to date."""
        return measure_files.read_measures(self.folder / run_id, versions)

    def save_diagnosis(self, run_id: str, diagnosis: "Diagnosis") -> None:
        """Add a diagnosis to a finished run, or replace it; its numbers are the measures named "diagnosis"."""
        with self._storing(run_id):
            measure_files.write_diagnosis(self.folder / run_id, diagnosis)

    def has_diagnosis(self, run_id: str) -> bool:
        """Whether the run has a diagnosis that is up to date."""
        return measure_files.has_diagnosis(self.folder / run_id)

    def current_diagnosis(self, run_id: str) -> "Diagnosis | None":
        """The diagnosis with its maps, None if there is none that is up to date; Damaged if it cannot be read."""
        return measure_files.current_diagnosis(self.folder / run_id)

    def diagnosis(self, run_id: str) -> "Diagnosis":
        """The run's diagnosis with its maps; Damaged if there is none, or none that can be read."""
        return measure_files.read_diagnosis(self.folder / run_id)

    def spec(self, run_id: str) -> "Spec":
        """The run's spec; Damaged if it is the spec of another run."""
        return self._run(run_id).spec()

    def provenance(self, run_id: str) -> dict[str, Any]:
        return self._run(run_id).provenance()

    def weights(self, run_id: str, step: int | None = None) -> "Weights":
        """The final weights, or the snapshot after a step."""
        return self._run(run_id).weights(step)

    def curve(self, run_id: str) -> "pd.DataFrame":
        return self._run(run_id).curve()

    def losses(self, run_id: str) -> list[float]:
        """The loss after each epoch: a column of the curve."""
        return self._run(run_id).losses()

    def verify(self, run_id: str) -> None:
        """Compare the checksum of every file of a finished run; Damaged names one that does not match."""
        self._run(run_id).verify()

    def record(self, run_id: str, verify: bool = False) -> Record:
        """The run's row in a listing, whatever its state; `verify` compares the checksum of every file."""
        return self._run(run_id).record(verify)

    def _run(self, run_id: str) -> RunFolder:
        return RunFolder(self.folder / run_id)

    def records(
        self,
        run_ids: Sequence[str] | None = None,
        verify: bool = False,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[Record]:
        """What is listed of many runs, by default of all. Runs of a large store that have not changed are not read."""
        return self._listed(run_ids, verify, on_progress, Index.records, lambda record: record)

    def rows(
        self,
        run_ids: Sequence[str] | None = None,
        verify: bool = False,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[dict[str, Any]]:
        """The records as flat rows of a table: id, status, `decoder.depth`, `error.heldout_mse`, seconds, problem."""
        return self._listed(run_ids, verify, on_progress, Index.rows, Record.row)

    def _listed(
        self,
        run_ids: Sequence[str] | None,
        verify: bool,
        on_progress: Callable[[int, int], None],
        remembered: Callable[[Index], Mapping[str, Entry[T]]],
        made: Callable[[Record], T],
    ) -> list[T]:
        """Of each run what the index has if the files have not changed since, or else what is made from its record."""
        chosen = self.run_ids() if run_ids is None else list(run_ids)
        index = Index.of(self.folder, len(chosen))
        if index is None:
            return [made(self.record(run_id, verify)) for run_id in chosen]
        fresh, listed = {}, []
        with without_collections():
            known = remembered(index)
            for done, run_id in enumerate(chosen):
                if done % 50 == 0:
                    on_progress(done, len(chosen))
                now = signature(f"{self.folder}/{run_id}")
                entry = known.get(run_id)
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

    def certified(self, run_id: str) -> tuple[Record, str]:
        """A run's verified row, and the certificate of its split: what its holdout tests; "" if it is not known."""
        record = self.record(run_id, verify=True)
        return record, str(record.provenance.get("split") or _certificate(record))

    def frame(self, run_ids: Sequence[str] | None = None, verify: bool = False) -> "pd.DataFrame":
        """One row per run: id, status, spec fields (`decoder.depth`), measures (`error.heldout_mse`), and times."""
        import pandas as pd

        rows = self.rows(run_ids, verify)
        return pd.DataFrame(rows, columns=None if rows else ["run_id", "status", "seconds", "cpu_seconds", "problem"])

    def _read_format(self) -> int:
        path = self.folder / "store.json"
        try:
            version = parse_json(path, read_regular(path, MOST_TEXT)).get("format")  # the store itself may be a link
        except (Damaged, OSError):
            return FORMAT  # the runs have checksums of their own
        if not isinstance(version, int):
            raise BadInput(f"store {str(self.folder)!r}: store.json has format {version!r}; a whole number is needed")
        return version


def _certificate(record: Record) -> str:
    """What the run's split tests; "" if its components are not known."""
    from composcope.holdouts import split
    from composcope.runs.spec import Spec

    try:
        spec = Spec.from_dict(record.spec)
        return str(split(spec.task, spec.holdout).certificate)
    except ValueError:
        return ""
