"""How far many jobs are, and how long the rest will take: one line that changes on a terminal, few lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO

from axonnx.jobs.running import Pace, Watch
from axonnx.jobs.work import Outcome, named_fault

SECONDS = 10.0  # between two lines where nobody watches
MOMENT = 0.2  # and on a terminal


class Counting:
    """Progress on stderr; ``through`` hands on what it counts."""

    def __init__(self, name: str, total: int, before: int = 0, out: TextIO | None = None) -> None:
        self.name, self.pace, self.before = name, Pace(total), before
        self.out = out or sys.stderr
        self.failed = 0
        self.last = time.monotonic()

    def through(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """The same outcomes; failures are told with their names as they come."""
        for outcome in outcomes:
            self.pace.step(fresh=self.pace.done >= self.before)
            if outcome.fault is not None:
                self.failed += 1
                self._say(f"{self.name}: failed: {named_fault(outcome.name, outcome.fault)}")
            self._show()
            yield outcome
        if self.out.isatty():
            print("\r\x1b[K", end="", file=self.out, flush=True)

    def line(self) -> str:
        """Done, failed, and the time that is left by the pace so far (of what was not done before)."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.name}: {self.pace.done:,} of {self.pace.total:,}{failed}{self.pace.left()}"

    def _show(self) -> None:
        now = time.monotonic()
        if now - self.last >= (MOMENT if self.out.isatty() else SECONDS):
            self.last = now
            if self.out.isatty():
                print(f"\r\x1b[K{self.line()}", end="", file=self.out, flush=True)
            else:
                self._say(self.line())

    def _say(self, line: str) -> None:
        start = "\r\x1b[K" if self.out.isatty() else ""
        print(f"{start}{line}", file=self.out, flush=True)


def watching(name: str) -> Watch:
    """Progress for whoever knows how many jobs there are."""
    return lambda total, outcomes: Counting(name, total).through(outcomes)
