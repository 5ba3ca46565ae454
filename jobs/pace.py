"""How far many jobs are, and how long the rest will take by the pace so far."""

from __future__ import annotations

import time


class Pace:
    """Counts what is done; what was done before says nothing about the time that the rest takes."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.fresh = total, 0, 0
        self.began = time.monotonic()

    def step(self, fresh: bool = True) -> None:
        """One more is done."""
        self.done += 1
        self.fresh += fresh

    def left(self) -> str:
        """``, 1:02 left``; nothing where no pace is known yet, or nothing is left."""
        if not self.fresh or self.done >= self.total:
            return ""
        spent = time.monotonic() - self.began
        return f", {clock(spent / self.fresh * (self.total - self.done))} left"


def clock(seconds: float) -> str:
    """``1:02:03``, hours only where there are some."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
