"""Errors that a user can fix; messages name the field, its value and what is allowed."""

from collections.abc import Sequence

from pydantic import ValidationError


class ComposcopeError(Exception):
    """Any error that the user can fix; the command line prints it without a traceback."""


class BadInput(ComposcopeError, ValueError):
    """An invalid request: exit code 2."""


class RunFailed(ComposcopeError, RuntimeError):
    """A run that started and failed: exit code 1."""


class CannotStore(RunFailed):
    """A run was done, but could not be stored."""


class DiskFull(CannotStore):
    """No run can be stored: the disk is full or read-only. A sweep stops, since the next run would be lost too."""


class StoreUnwritable(BadInput, DiskFull):
    """The same, found before anything was trained."""


class Damaged(RunFailed):
    """A stored file is missing, unreadable or not the one that was written."""


class TooNew(Damaged):
    """A stored file has a format that a later version writes; it is neither read nor replaced."""


def explain(error: ValidationError) -> str:
    """One line per problem: `decoder.depth = 0: input should be greater than or equal to 1`."""
    lines = []
    for problem in error.errors(include_url=False):
        field = dotted(problem["loc"])
        value = problem["input"]
        # pydantic's own prefixes say nothing to a user.
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        if problem["type"] in ("missing", "missing_argument"):
            lines.append(f"{field}: is missing")
        elif isinstance(value, bool | int | float | str | None | list | tuple):
            lines.append(f"{field} = {shown(value)}: {lowered(message)}")
        else:
            lines.append(f"{field}: {lowered(message)}" if field else lowered(message))
    return "\n".join(dict.fromkeys(lines))  # each line once, in order


def dotted(location: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in location)


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
