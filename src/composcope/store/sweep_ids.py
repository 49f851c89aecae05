"""The ids of a sweep's runs, remembered between commands.

Making them takes PyTorch, which takes seconds to import; with them it is soon clear that nothing is to be done. They
are known by the contents of the sweep's file and the package's code. Specs may name other files, and installed packages
may add components: such sweeps are not remembered, since their ids depend on more than that.
"""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from pathlib import Path

from composcope.files import write_atomically
from composcope.runs.plugins import GROUP
from composcope.store.cache import folder_or_none, package_code
from composcope.user_cache import remove_unused


@dataclass(frozen=True)
class SweepIds:
    """The ids of a sweep's runs in order, and the names of its lists."""

    run_ids: list[str]
    varied: list[str]


class SweepMemory:
    """What is remembered of a sweep's file as it is now.

    - `only`: settings such as "decoder.depth=4", which leave runs out.
    """

    def __init__(self, sweep: Path, only: Sequence[str] = ()) -> None:
        self.sweep, self.only = sweep, only
        self.path = self._path()

    def read(self) -> SweepIds | None:
        """None if nothing is remembered."""
        if self.path is None:
            return None
        try:
            return SweepIds(**json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, ids: SweepIds) -> None:
        """Remember the ids, unless the file has changed meanwhile; what cannot be written is forgotten."""
        if self.path is None or self.path != self._path():
            return
        with contextlib.suppress(OSError):
            remove_unused(self.path.parent)
            write_atomically(self.path, json.dumps(asdict(ids)).encode())

    def _path(self) -> Path | None:
        try:
            content = self.sweep.read_bytes()
        except OSError:
            return None
        folder = folder_or_none("sweeps")
        if folder is None or b"file" in content or entry_points(group=GROUP):
            return None
        known_by = hashlib.sha256(content).hexdigest(), list(self.only), package_code()
        return folder / f"{hashlib.sha256(json.dumps(known_by).encode()).hexdigest()[:24]}.json"
