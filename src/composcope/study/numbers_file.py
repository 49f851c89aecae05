"""The numbers behind a figure as one small file, from which it can be drawn again without any run."""

import functools
import json
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from composcope.errors import BadInput
from composcope.plain import Arrays, from_plain, pack_arrays, to_plain, unpack_arrays

FORMAT = 2
TREE = "tree.json"
MOST_NAMED = 3


@dataclass(frozen=True)
class NumbersFile:
    """What a figure shows, and what it was made from.

    - `about`: the preset, the settings changed in it and image sizes; `seeds`: how many.
    - `lacking`: the kinds of run without which it was made, since there were none yet.
    """

    numbers: Any
    about: str
    seeds: str = ""
    lacking: tuple[str, ...] = ()

    def caption(self, first_seed: str = "") -> str:
        """The line under the figure; `first_seed` is what it shows of the first seed alone.

        >>> NumbersFile(None, "preset paper: 28 x 28", "5 seeds", ("rate", "one-hot")).caption("images")
        'preset paper: 28 x 28; 5 seeds, images of the first; no runs yet: rate; one-hot'
        """
        several = self.seeds not in ("", "1 seed")
        seeds = f"{self.seeds}, {first_seed} of the first" if first_seed and several else self.seeds
        return "; ".join(part for part in (self.about, seeds, no_runs_yet(self.lacking)) if part)


def no_runs_yet(lacking: tuple[str, ...]) -> str:
    """Which kinds of run are missing, for readers; of many, some."""
    if not lacking:
        return ""
    rest = len(lacking) - MOST_NAMED
    named = "; ".join(lacking if rest <= 1 else lacking[:MOST_NAMED])
    return f"no runs yet: {named}" + (f" and {rest} more" if rest > 1 else "")


def pack_numbers(file: NumbersFile) -> bytes:
    """The contents of a .npz file: every tensor, in float32 where it was finer, and the rest as JSON."""
    arrays: Arrays = {}
    tree = {
        "format": FORMAT,
        "about": file.about,
        "seeds": file.seeds,
        "lacking": list(file.lacking),
        "numbers": to_plain(file.numbers, arrays),
    }
    text = json.dumps(tree, allow_nan=False)
    small = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in arrays.items()}
    return pack_arrays({TREE: np.frombuffer(text.encode(), dtype=np.uint8), **small})


def numbers_type(make: Callable[..., Any]) -> Any:
    """The type of the numbers that a function makes, from its annotation."""
    while isinstance(make, functools.partial):
        make = make.func
    kind = typing.get_type_hints(make).get("return")
    if kind is None:
        raise BadInput(
            f"{make.__name__}: annotate its return type, `-> Numbers`, so that the numbers can be read again"
        )
    return kind


def unpack_numbers(content: bytes, make: Callable[..., Any]) -> NumbersFile:
    """What a file holds. `make`: the function that makes such numbers, whose return type they have."""
    kind = numbers_type(make)
    try:
        arrays = unpack_arrays(content)
        body = json.loads(arrays.pop(TREE).tobytes())
        if body["format"] > FORMAT:
            raise BadInput(f"numbers of format {body['format']}; this composcope reads {FORMAT}: upgrade it")
        if body["format"] == 1:  # which had one line of text: "preset quick: 16 x 16; 5 seeds"
            about, _, seeds = str(body["caption"]).rpartition("; ")
            body |= {"about": about or seeds, "seeds": seeds if about else "", "lacking": []}
        numbers = from_plain(kind, body["numbers"], arrays)
        return NumbersFile(numbers, str(body["about"]), str(body["seeds"]), tuple(map(str, body["lacking"])))
    except (KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"not the numbers of a figure: {error}") from None
