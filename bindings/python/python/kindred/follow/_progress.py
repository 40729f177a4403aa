"""Progress and lag of a follower: a bar on standard error, and numbers for reports to the service."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque

from ._target import say

# A line of the log that often, where there is no bar.
LINE_EVERY = 10.0


class Bar:
    """The progress of a snapshot, with the time that is left."""

    def __init__(self, what: str, of: int, unit: str = "rows") -> None:
        self.what, self.of, self.unit = what, max(of, 1), unit
        self.begun = self.shown = time.monotonic()

    def at(self, done: int) -> None:
        """So much is done."""
        now, is_terminal = time.monotonic(), sys.stderr.isatty()
        if now - self.shown < (0.1 if is_terminal else LINE_EVERY):
            return
        self.shown = now
        rate = done / max(now - self.begun, 1e-9)
        # The source's count is an estimate.
        part = min(done / self.of, 0.99)
        left = _duration((self.of - done) / rate) if 0 < done < self.of else "?"
        text = f"{self.what}: {done:,} of about {self.of:,} {self.unit}, {rate:,.0f} {self.unit}/s, {left} left"
        if not is_terminal:
            say(text)
            return
        width = max(10, min(30, shutil.get_terminal_size().columns - len(text) - 4))
        filled = round(width * part)
        print(f"\r\x1b[K[{'#' * filled}{' ' * (width - filled)}] {text}", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


class Lag:
    """The time by which rows are behind their source: how long ago the source had what is still missing."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self.reached = 0

    def saw(self, end: int) -> None:
        """The source's end now."""
        if not self._seen or end > self._seen[-1][1]:
            self._seen.append((time.monotonic(), end))
        self._drop()

    def reach(self, position: int) -> None:
        """Everything up to this position is applied."""
        self.reached = max(self.reached, position)
        self._drop()

    def _drop(self) -> None:
        while self._seen and self._seen[0][1] <= self.reached:
            self._seen.popleft()

    @property
    def behind(self) -> int:
        """Bytes or messages that are missing."""
        return self._seen[-1][1] - self.reached if self._seen else 0

    @property
    def seconds(self) -> float:
        """Time since the first of them was seen."""
        return time.monotonic() - self._seen[0][0] if self._seen else 0.0
