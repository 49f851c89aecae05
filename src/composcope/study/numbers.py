"""What a figure shows, as one value: rows, images of the first seed, and what follows from them; and its file.

From the file beside a figure it can be drawn again without any run, with the numbers of other machines added.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composcope.display import counted
from composcope.errors import BadInput
from composcope.plain import pack_arrays, unpack_arrays

FORMAT = 3
TREE = "tree.json"
MAX_NAMED = 3

Row = dict[str, Any]
Rows = list[Row]


@dataclass(frozen=True)
class Numbers:
    """What a figure shows.

    - `rows`: one per kind of run and seed, or finer. The first cell is the label of the kind of run, and the cells up
      to `seed` say what the row is of. The others are numbers, words or small tensors, such as a curve over layers.
    - `first`: what is shown of the first seed alone, such as images and maps, by kind of run.
    - `common`: what depends on no run, such as the true images.
    - `seeds`: those that each kind of run has; none where there are no runs yet.
    - `about`: the preset, the settings changed in it, and image sizes.

    >>> rows = [{"code": "bump", "seed": 0, "MSE": 0.1}, {"code": "bump", "seed": 1, "MSE": 0.3}]
    >>> Numbers(rows).column("MSE", "bump")
    [0.1, 0.3]
    """

    rows: Rows
    first: Mapping[str, Row] = field(default_factory=dict)
    common: Row = field(default_factory=dict)
    seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    about: str = ""

    @property
    def kinds(self) -> list[str]:
        """The kinds of run that have rows."""
        return list(dict.fromkeys(map(kind_of, self.rows)))

    def of(self, kind: str) -> Rows:
        """The rows of one kind of run."""
        return [row for row in self.rows if kind_of(row) == kind]

    def column(self, name: str, kind: str | None = None) -> list[Any]:
        """One cell of every row, or of every row of one kind of run."""
        return [row[name] for row in (self.rows if kind is None else self.of(kind))]

    def stack(self, name: str, kind: str) -> Tensor:
        """The tensors of one column, of one kind of run, as one: seeds come first."""
        return torch.stack(self.column(name, kind))

    def table(self) -> Rows:
        """The rows without tensors."""
        return [{name: cell for name, cell in row.items() if not isinstance(cell, Tensor)} for row in self.rows]

    @property
    def lacking(self) -> tuple[str, ...]:
        """The kinds of run of which there are no runs yet."""
        return tuple(kind for kind, seeds in self.seeds.items() if not seeds)

    def caption(self, first_seed: str = "") -> str:
        """The line under the figure; `first_seed` is what it shows of the first seed alone.

        >>> seeds = {"bump": (0, 1), "rate": (), "one-hot": ()}
        >>> Numbers([], about="preset paper: 28 x 28", seeds=seeds).caption("images")
        'preset paper: 28 x 28; 2 seeds, images of the first; no runs yet: rate; one-hot'
        """
        seeds = count_seeds(map(len, self.seeds.values()))
        if first_seed and seeds not in ("", "1 seed"):
            seeds = f"{seeds}, {first_seed} of the first"
        return "; ".join(part for part in (self.about, seeds, no_runs_yet(self.lacking)) if part)

    def sorted(self) -> "Numbers":
        """The same with its rows in the order of the plan, and then of the seeds."""
        place = {kind: index for index, kind in enumerate(self.seeds)}
        rows = sorted(self.rows, key=lambda row: (place.get(kind_of(row), 0), row.get("seed", 0), identity(row)[1:]))
        return replace(self, rows=rows)

    def joined(self, other: "Numbers") -> "Numbers":
        """The rows of both; where both have a kind of run and seed, those of the first."""
        if self.about != other.about:
            raise BadInput(f"numbers of {self.about!r} cannot be joined with those of {other.about!r}")
        own = set(map(identity, self.rows))
        seeds = {
            kind: tuple(sorted({*self.seeds.get(kind, ()), *other.seeds.get(kind, ())}))
            for kind in {**self.seeds, **other.seeds}
        }
        earlier = {kind: other for kind in other.first if _begins_before(other, self, kind)}
        return Numbers(
            rows=self.rows + [row for row in other.rows if identity(row) not in own],
            first={kind: earlier.get(kind, self).first[kind] for kind in seeds if {kind} & {*self.first, *earlier}},
            common=other.common if _beginning(other, seeds) < _beginning(self, seeds) else self.common,
            seeds=seeds,
            about=self.about,
        ).sorted()


def kind_of(row: Row) -> str:
    """The label of the row's kind of run: its first cell."""
    return str(next(iter(row.values())))


def identity(row: Row) -> tuple[Any, ...]:
    """What the row is of: its cells up to the seed; of a row without a seed, the kind of run."""
    names = list(row)
    return tuple(row[name] for name in names[: names.index("seed") + 1]) if "seed" in row else (kind_of(row),)


def _begins_before(one: Numbers, other: Numbers, kind: str) -> bool:
    """Whether the first seed of this kind is that of `one`."""
    return kind not in other.first or one.seeds.get(kind, ()) < other.seeds.get(kind, ())


def _beginning(numbers: Numbers, kinds: Iterable[str]) -> tuple[float, int]:
    """The place of the first kind that has runs, and its first seed."""
    return min(((place, min(s)) for place, kind in enumerate(kinds) if (s := numbers.seeds.get(kind))), default=(0, 0))


def count_seeds(counts: Iterable[int]) -> str:
    """How many seeds the kinds of run have; empty if there is no run.

    >>> count_seeds([5, 1, 0])
    '1 to 5 seeds'
    """
    present = [count for count in counts if count]
    if not present:
        return ""
    low, high = min(present), max(present)
    return counted(high, "seed") if low == high else f"{low} to {high} seeds"


def no_runs_yet(lacking: tuple[str, ...]) -> str:
    """Which kinds of run are missing, for readers; of many, some."""
    if not lacking:
        return ""
    rest = len(lacking) - MAX_NAMED
    named = "; ".join(lacking if rest <= 1 else lacking[:MAX_NAMED])
    return f"no runs yet: {named}" + (f" and {rest} more" if rest > 1 else "")


def pack_numbers(numbers: Numbers) -> bytes:
    """The contents of a .npz file: everything as JSON, except tensors, which are in one array per type, end to end.

    Numbers are in float32 where they were finer: the figure's file is small, and no figure shows more digits.
    """
    parts: dict[str, list[np.ndarray]] = {}

    def encode(value: Any) -> Any:
        if isinstance(value, Tensor):
            array = value.detach().cpu().numpy()
            array = array.astype(np.float32) if array.dtype == np.float64 else array
            parts.setdefault(array.dtype.name, []).append(array.ravel())
            return {"tensor": array.dtype.name, "shape": list(array.shape)}
        if isinstance(value, Mapping):
            return {name: encode(part) for name, part in value.items()}
        return [encode(part) for part in value] if isinstance(value, list | tuple) else value

    names = ("about", "seeds", "common", "first", "rows")
    text = json.dumps({"format": FORMAT, **{name: encode(getattr(numbers, name)) for name in names}})
    tensors = {kind: np.concatenate(arrays) for kind, arrays in parts.items()}
    return pack_arrays({TREE: np.frombuffer(text.encode(), dtype=np.uint8), **tensors})


def unpack_numbers(content: bytes) -> Numbers:
    """What a file holds."""
    try:
        arrays = unpack_arrays(content)
        tree = json.loads(arrays.pop(TREE).tobytes())
        if tree["format"] != FORMAT:
            raise BadInput(f"numbers of format {tree['format']}; this composcope reads {FORMAT}")
        decode = _decoder(arrays)
        about, seeds, common, first = (decode(tree[name]) for name in ("about", "seeds", "common", "first"))
        seeds = {kind: tuple(map(int, own)) for kind, own in seeds.items()}
        return Numbers([dict(row) for row in decode(tree["rows"])], first, common, seeds, str(about))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise BadInput(f"not the numbers of a figure: {error}") from None


def _decoder(arrays: Mapping[str, np.ndarray]) -> Callable[[Any], Any]:
    """Turns data back into values; tensors are taken from the arrays in the order in which they were written."""
    position = dict.fromkeys(arrays, 0)

    def decode(data: Any) -> Any:
        if isinstance(data, list):
            return [decode(part) for part in data]
        if not isinstance(data, dict):
            return data
        if "tensor" not in data:
            return {name: decode(part) for name, part in data.items()}
        kind, shape = data["tensor"], data["shape"]
        start, size = position[kind], int(np.prod(shape))
        position[kind] += size
        return torch.from_numpy(arrays[kind][start : start + size].reshape(shape).copy())

    return decode
