"""Medians side by side: candidates take turns, so that what else the machine does hits them alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

SHORT, SETTLE = 2e-3, 0.05  # seconds

Clock = Callable[[], float]
PROCESSOR: Clock = time.process_time  # what one thread took, whatever else the machine did meanwhile
WALL: Clock = time.perf_counter  # for several threads


@dataclass(frozen=True)
class Times:
    """Milliseconds of one candidate: the median and the best of its turns."""

    median: float
    best: float


def side_by_side(
    candidates: dict[str, Callable[[], object]], turns: int, seconds: float = 6.0, clock: Clock = PROCESSOR
) -> dict[str, Times]:
    """Each candidate's times over ``turns`` rounds, or as many as ``seconds`` allow (three at least)."""
    for call in candidates.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    began = time.perf_counter()
    for turn in range(turns):
        if turn >= 3 and time.perf_counter() - began > seconds:
            break
        for name, call in candidates.items():
            time.sleep(SETTLE)  # onnxruntime's threads go on spinning for a while after a call
            _milliseconds(call, clock)  # brings its data back into the caches that the others used meanwhile
            taken[name].append(_milliseconds(call, clock))
    return {name: Times(median(values), min(values)) for name, values in taken.items()}


def _milliseconds(call: Callable[[], object], clock: Clock) -> float:
    """Of one call; the mean of several where they are too short to be timed alone."""
    calls, start = 0, clock()
    while calls == 0 or (calls < 50 and clock() - start < SHORT):
        call()
        calls += 1
    return (clock() - start) * 1e3 / calls


def table(title: str, head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [f"### {title}", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])
