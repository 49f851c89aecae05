"""A part of the runs for each task of a job array; which part a run belongs to follows from its id alone."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from composcope.errors import BadInput

if TYPE_CHECKING:
    from composcope.runs.spec import Spec


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count`, counted from 1.

    >>> [Shard(i, 3).has("threshold of bumps, size 8") for i in (1, 2, 3)]
    [True, False, False]
    """

    index: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "2/8"."""
        first, _, second = text.partition("/")
        if not (first.isascii() and first.isdecimal() and second.isascii() and second.isdecimal()):
            raise BadInput(f"--shard {text!r}: write I/N, as in --shard 1/8 (I from 1 to N)")
        index, count = int(first), int(second)
        if not 1 <= index <= count <= 1_000_000:
            raise BadInput(f"--shard {text!r}: I must be from 1 to N")
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, name: str) -> bool:
        """Whether what has this name belongs to this part."""
        digest = hashlib.sha256(name.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1

    def select(self, specs: "Iterable[Spec]", groups: Mapping[str, str] | None = None) -> "list[Spec]":
        """The specs of this part. Runs with the same name in `groups`, by run id, belong to the same part."""
        names = groups or {}
        return [spec for spec in specs if self.has(names.get(spec.run_id, spec.run_id))]
