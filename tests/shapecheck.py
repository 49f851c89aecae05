"""Shapes and types in signatures, checked while the tests run."""

from typing import Any

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception

CONF = BeartypeConf(is_pep484_tower=True)  # an int may stand where a float is asked for


def checked(function_or_class: Any) -> Any:
    """beartype, except where a single method says Self, which only its class can check."""
    try:
        return beartype(function_or_class, conf=CONF)
    except BeartypeDecorHintPep673Exception:
        return function_or_class
