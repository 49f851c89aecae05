"""What goes wrong in the user's hands, told with the field, the value and what is allowed."""

from collections.abc import Sequence

from pydantic import ValidationError


class ComposcopeError(Exception):
    """Anything that the user can mend; the command line prints it without a traceback."""


class BadInput(ComposcopeError, ValueError):
    """A request that cannot be met: wrong use, exit code 2."""


class RunFailed(ComposcopeError, RuntimeError):
    """A run that was started and did not end well: exit code 1."""


def explain(error: ValidationError) -> str:
    """One line a problem: `decoder.depth = 0: input should be greater than or equal to 1`."""
    lines = []
    for problem in error.errors(include_url=False):
        where = dotted(problem["loc"])
        value = problem["input"]
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        if problem["type"] in ("missing", "missing_argument"):
            lines.append(f"{where}: is missing")
        elif isinstance(value, bool | int | float | str | None | list | tuple):
            lines.append(f"{where} = {shown(value)}: {lowered(message)}")
        else:
            lines.append(f"{where}: {lowered(message)}" if where else lowered(message))
    return "\n".join(dict.fromkeys(lines))


def dotted(place: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in place)


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
