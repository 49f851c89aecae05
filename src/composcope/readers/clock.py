"""Progress of work whose parts take different times, in seconds."""

import time
from collections.abc import Callable

OnProgress = Callable[[int, int], None]


class Clock:
    """Progress in seconds: those gone, and those that the parts not yet done are expected to take.

    Training readers and drawing images take different times, so their steps cannot be added; their seconds can.
    """

    def __init__(self, report: OnProgress | None) -> None:
        self.report, self.start = report, time.monotonic()
        self.parts: dict[str, tuple[float, float, float]] = {}  # seconds, done, expected

    def expect(self, part: str, seconds: float) -> None:
        """A part that has not begun."""
        self.parts[part] = (seconds, 0.0, 1.0)

    def part(self, name: str) -> Callable[[int, int], None]:
        """To be called with the steps done and expected of this part."""
        begin = time.monotonic()

        def step(done: int, expected: int) -> None:
            self.parts[name] = (time.monotonic() - begin, done, expected)
            self.tell()

        return step

    def tell(self) -> None:
        if self.report is None:
            return
        left = 0.0
        for seconds, done, expected in self.parts.values():
            left += seconds if not done else seconds / done * max(0.0, expected - done)
        gone = time.monotonic() - self.start
        total = max(1, round(gone + left))
        self.report(round(gone) if left else total, total)
