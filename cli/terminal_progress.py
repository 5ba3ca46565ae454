"""Progress as people see it: one line that changes on a terminal, at most one line a minute in a log. All on stderr."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from axonnx.base.plain_text import escaped, escaped_lines, raw_stream
from axonnx.base.progress import Progress
from axonnx.runtime.jobs.running import Pace

MINUTE = 60.0  # between two lines of a log
MOMENT = 0.2  # between two changes of the line on a terminal
CLEAR = "\r\x1b[K"


class Shown(Progress):
    """Progress on a stream; ``quiet`` leaves only warnings."""

    def __init__(self, verb: str, quiet: bool = False, out: TextIO | None = None) -> None:
        self.verb, self.quiet, self.out = verb, quiet, raw_stream(out or sys.stderr)
        self.terminal = self.out.isatty()
        self.pace, self.name, self.text = Pace(0), "", ""
        self.last = time.monotonic()

    def note(self, line: str) -> None:
        """Print a line that stays."""
        if not self.quiet or line.startswith("warning"):
            self._print(f"axonnx {self.verb}: {escaped_lines(line)}")

    def figures(self, line: str, last: bool = False) -> None:
        """Print figures: all of them on a terminal, those of every minute and the last ones in a log."""
        if not self.quiet and (self.terminal or last or self._due(MINUTE)):
            self._print(self._cut(line))

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """Start to count."""
        self.pace, self.name, self.text = Pace(total), name, ""
        for _ in range(done):
            self.pace.step(fresh=False)

    def step(self, text: str = "", fresh: bool = True) -> None:
        """Count one more."""
        self.pace.step(fresh)
        self.text = text
        if self.quiet or not self._due(MOMENT if self.terminal else MINUTE):
            return
        if self.terminal:
            print(f"{CLEAR}{self._cut(self.line())}", end="", file=self.out, flush=True)
        else:
            self._print(escaped(self.line()))

    def end(self) -> None:
        """Leave the terminal clean."""
        if self.terminal and not self.quiet:
            print(CLEAR, end="", file=self.out, flush=True)

    def line(self) -> str:
        """Return how much is done, and the time that is left by the pace so far."""
        text = f", {self.text}" if self.text else ""
        return f"{self.name}: {self.pace.done:,} of {self.pace.total:,}{text}{self.pace.left()}"

    def _due(self, seconds: float) -> bool:
        now = time.monotonic()
        if now - self.last < seconds:
            return False
        self.last = now
        return True

    def _cut(self, line: str) -> str:
        """Cut a line so that it does not wrap."""
        line, width = escaped(line), shutil.get_terminal_size().columns - 1
        return line if not self.terminal or len(line) <= width else f"{line[: width - 1]}…"

    def _print(self, line: str) -> None:
        print(f"{CLEAR if self.terminal else ''}{line}", file=self.out, flush=True)
