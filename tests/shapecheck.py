"""Shapes and types in signatures, checked while the tests run: the first calls of each function in each test."""

from collections import Counter
from dataclasses import is_dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jaxtyping
import torch
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception

CONF = BeartypeConf(is_pep484_tower=True)  # an int may stand where a float is asked for
CALLS = 20  # checked per function and test; most of the others repeat the same shapes in a loop

checked_calls: Counter[int] = Counter()  # by the id of the function's code; emptied before each test
check_all_calls = jaxtyping.jaxtyped


def install_shape_checks() -> None:
    """Check all modules imported from now on, but not the command line, whose signatures typer inspects."""
    source = Path(find_spec("composcope").origin).parent
    rooms = {path.stem for path in source.iterdir() if path.suffix in ("", ".py")} - {"__init__", "__pycache__", "cli"}
    jaxtyping.jaxtyped = check_first_calls  # the import hook decorates by this name
    jaxtyping.install_import_hook([f"composcope.{room}" for room in sorted(rooms)], "shapecheck.typechecked")


def check_first_calls(*, typechecker: Any) -> Any:
    """`jaxtyping.jaxtyped` for a test's first calls; afterwards the function itself is called."""

    def decorate(function: Any) -> Any:
        if isinstance(function, type):
            if is_dataclass(function) and "__init__" in vars(function):
                function.__init__ = decorate(function.__init__)
            return function
        # Made at the first call: to make the checks of all functions takes longer than to import the package.
        checks: list[Any] = []
        code = id(function.__code__)  # the same for all closures of one definition

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if torch.compiler.is_compiling() or checked_calls[code] >= CALLS:
                return function(*arguments, **named)
            checked_calls[code] += 1
            if not checks:
                checks.append(check_all_calls(function, typechecker=typechecker))
            return checks[0](*arguments, **named)

        return call

    return decorate


def typechecked(function_or_class: Any) -> Any:
    """beartype, except where a single method says Self, which only its class can check."""
    try:
        return beartype(function_or_class, conf=CONF)
    except BeartypeDecorHintPep673Exception:
        return function_or_class
