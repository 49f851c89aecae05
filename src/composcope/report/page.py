"""What all pages share: templates filled in, data embedded, one file written."""

import base64
import json
import os
import uuid
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from composcope.errors import BadInput

FOLDER = Path(__file__).parent
# Characters that could end a script or a line in it, and what JSON may write instead.
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def render(template: str, **context: Any) -> str:
    """The named template as a whole HTML file; a name that it lacks is an error, and text is escaped."""
    return environment().get_template(template).render(**context)


@cache
def environment() -> Environment:
    """Templates may call `style(name)` and `script(name)` for files of `static/`, and `embed(name, data)`."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"style": style, "script": script, "embed": embed}
    return made


def style(name: str) -> Markup:
    """A style sheet of ours, inlined."""
    return Markup(f"<style>\n{_static(name)}</style>")


def script(name: str) -> Markup:
    """A script of ours, inlined."""
    return Markup(f"<script>\n{_static(name)}</script>")


def embed(name: str, data: Any) -> Markup:
    """Data as JSON in a script that is not run; no text in it can end the script.

    >>> print(embed("answer", {"text": "</script>"}))
    <script type="application/json" id="answer">{"text":"\\u003c/script\\u003e"}</script>
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False).translate(UNSAFE)
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array as plain data: shape, type, and its little-endian bytes deflated in base64. `pictures.js` unpacks it."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    if plain.dtype.name not in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"):
        raise ValueError(f"a page has no type for {array.dtype}")
    data = base64.b64encode(zlib.compress(plain.tobytes(), 9)).decode("ascii")
    return {"shape": list(array.shape), "dtype": plain.dtype.name, "data": data}


def write_page(text: str, path: Path) -> Path:
    """Write the page, whole or not at all; its folder is made."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    except OSError as error:
        raise BadInput(f"page {str(path)!r} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
    return path


def _static(name: str) -> str:
    return (FOLDER / "static" / name).read_text(encoding="utf-8")
