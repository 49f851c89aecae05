"""Words for messages and captions."""


def counted(count: int, noun: str, more: str = "") -> str:
    """A number with its noun, in the singular for one.

    - `more`: words between the two.

    >>> counted(1, "run"), counted(3, "run"), counted(2, "run", "more")
    ('1 run', '3 runs', '2 more runs')
    """
    return " ".join(word for word in (str(count), more, noun if count == 1 else f"{noun}s") if word)
