"""Shapes and types in signatures, checked while the tests run."""

from collections import Counter
from functools import wraps
from typing import Any

import torch
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception

CONF = BeartypeConf(is_pep484_tower=True)  # an int may stand where a float is asked for
CALLS = 50  # checked per function and test; to check all takes a fifth of the CPU time where calls are many and small

checked_calls: Counter[int] = Counter()  # by function; emptied before each test


def checked(function_or_class: Any) -> Any:
    """beartype for a test's first calls, except where a single method says Self, which only its class can check."""
    if isinstance(function_or_class, type):
        return beartype(function_or_class, conf=CONF)
    # Made at the first call: to make the checks of all functions takes longer than to import the package.
    checks: list[Any] = []

    # jaxtyping gives functions with our signature and an empty body, so that a call that is left out changes nothing
    @wraps(function_or_class)
    def check_first_calls(*arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling() or checked_calls[id(checks)] >= CALLS:
            return None
        checked_calls[id(checks)] += 1
        if not checks:
            checks.append(_check_of(function_or_class))
        return checks[0](*arguments, **named)

    return check_first_calls


def _check_of(function: Any) -> Any:
    try:
        return beartype(function, conf=CONF)
    except BeartypeDecorHintPep673Exception:
        return function
