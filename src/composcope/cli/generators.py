"""Diagnosing a generator with labelled examples: what the command line names, as values."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from composcope.diagnosis import Diagnosis
from composcope.encodings import OneHot
from composcope.errors import BadInput
from composcope.holdouts import GivenHoldout, Orthotope
from composcope.runs.own_decoder import made_by
from composcope.tasks.examples import Examples


def diagnose_with_examples(
    generator: str,
    examples: Path,
    labels: Path | None,
    holdout: Sequence[str],
    reader: str | None,
    n_samples: int,
    options: dict[str, Any],
    on_progress: Callable[[float, float], None],
) -> Diagnosis:
    """The diagnosis of `path/file.py:function`, which returns the generator, or the generator and its encoding.

    - `labels`: by default `labels.csv` in the folder of examples.
    - `holdout`: blocks such as "digit=1,4 tint=red" or "x=0..2", all of which are held out; or one
      `path/file.py:function` that returns what `diagnose` takes.
    """
    from composcope.diagnosis import diagnose

    if ":" not in generator:
        raise BadInput(f"{generator}: name the function that returns the generator, as in {generator}:make_generator")
    if not holdout:
        raise BadInput('--holdout is needed: the combinations that were not trained on, such as "digit=1,4 tint=red"')
    task = Examples.from_folder(examples, labels or examples / "labels.csv")
    made = made_by(generator)
    module, encoding = made if isinstance(made, tuple) and len(made) == 2 else (made, OneHot())
    return diagnose(
        module,
        task,
        read_holdout(holdout),
        encoding,
        reader=None if reader is None else made_by(reader),
        n_samples=n_samples,
        on_progress=on_progress,
        **options,
    )


def read_holdout(texts: Sequence[str]) -> GivenHoldout:
    """Blocks of values, or what a function returns.

    >>> read_holdout(["digit=1,4 tint=red", "x=0..2"]).blocks
    ({'digit': (1.0, 4.0), 'tint': ('red',)}, {'x': ('0..2',)})
    """
    if len(texts) == 1 and ".py:" in texts[0]:
        holdout: GivenHoldout = made_by(texts[0])
        return holdout
    return Orthotope(tuple(map(_block, texts)))


def _block(text: str) -> dict[str, tuple[float | str, ...]]:
    block: dict[str, tuple[float | str, ...]] = {}
    for part in text.split():
        name, _, values = part.partition("=")
        if not name or not values or name in block:
            raise BadInput(f'--holdout {text!r}: write factor=value,value for each factor, as in "digit=1,4 tint=red"')
        block[name] = tuple(map(_value, values.split(",")))
    if not block:
        raise BadInput("--holdout is empty")
    return block


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
