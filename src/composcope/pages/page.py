"""What all pages share: filling in templates, embedding data, writing one file."""

import base64
import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from composcope.errors import BadInput
from composcope.files import write_atomically
from composcope.terminal import ACTED_ON, shown

FOLDER = Path(__file__).parent
# Characters that could end a script or a line in it, and the escapes that JSON allows instead.
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def render(template: str, **context: Any) -> str:
    """The named template as a whole HTML file; text is escaped, and a name that the context lacks is an error."""
    # Last of all, so that no text of a store reaches the browser with characters that it would act on.
    return shown(environment().get_template(template).render(**context))


@cache
def environment() -> Environment:
    """Templates may call `style(name)` and `script(name)` for files of `static/`, and `embed(name, data)`."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"style": style, "script": script, "embed": embed}
    return environment


def style(name: str) -> Markup:
    """One of our style sheets, inlined."""
    return Markup(f"<style>\n{_static(name)}</style>")


def script(name: str) -> Markup:
    """One of our scripts, inlined."""
    return Markup(f"<script>\n{_static(name)}</script>")


def embed(name: str, data: Any) -> Markup:
    """Data as JSON in a script that is not run; no text in it can end the script.

    >>> print(embed("answer", {"text": "</script>"}))
    <script type="application/json" id="answer">{"text":"\\u003c/script\\u003e"}</script>
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False).translate(UNSAFE)
    text = ACTED_ON.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array as plain data: shape, type, and its little-endian bytes deflated in base64. `pictures.js` unpacks it."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    if plain.dtype.name not in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"):
        raise ValueError(f"pages cannot hold arrays of type {array.dtype}")
    data = base64.b64encode(zlib.compress(plain.tobytes(), 9)).decode("ascii")
    return {"shape": list(array.shape), "dtype": plain.dtype.name, "data": data}


def write_page(text: str, path: Path) -> Path:
    """Write the page, completely or not at all; its folder is created if necessary."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise BadInput(f"page {str(path)!r} cannot be written: {error.strerror}") from None
    return path


def _static(name: str) -> str:
    return (FOLDER / "static" / name).read_text(encoding="utf-8")
