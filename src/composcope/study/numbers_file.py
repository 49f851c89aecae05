"""The numbers behind a figure as one small file, from which it can be drawn again without any run."""

import functools
import json
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from composcope.errors import BadInput
from composcope.plain import Arrays, from_plain, pack_arrays, to_plain, unpack_arrays

FORMAT = 1
TREE = "tree.json"


def pack_numbers(numbers: Any, caption: str) -> bytes:
    """The contents of a .npz file: every tensor, in float32 where it was finer, and the rest as JSON."""
    arrays: Arrays = {}
    tree = to_plain(numbers, arrays)
    text = json.dumps({"format": FORMAT, "caption": caption, "numbers": tree}, allow_nan=False)
    small = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in arrays.items()}
    return pack_arrays({TREE: np.frombuffer(text.encode(), dtype=np.uint8), **small})


def unpack_numbers(content: bytes, make: Callable[..., Any]) -> tuple[Any, str]:
    """The numbers and the caption. `make`: the function that makes such numbers, whose return type they have."""
    while isinstance(make, functools.partial):
        make = make.func
    kind = typing.get_type_hints(make)["return"]
    try:
        arrays = unpack_arrays(content)
        body = json.loads(arrays.pop(TREE).tobytes())
        if body["format"] > FORMAT:
            raise BadInput(f"numbers of format {body['format']}; this composcope reads {FORMAT}: upgrade it")
        return from_plain(kind, body["numbers"], arrays), str(body["caption"])
    except (KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"not the numbers of a figure: {error}") from None
