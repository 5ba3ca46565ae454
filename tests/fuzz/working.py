"""How long a process has worked, and whether it waits: a machine that is busy with others is no hang."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PARENT, TIMES = 1, slice(11, 15)  # in /proc/PID/stat after the name; user and system time, own and of ended children
ASLEEP = frozenset("StZX")  # R runs or would if it were let; D is served by a disk; T was stopped by somebody


@dataclass(frozen=True)
class Work:
    """Of a process and all below it: seconds of processor time, and whether every thread waits for something.

    User and system time of each process are rounded down to ticks of 10 ms: a process that just started may show none.
    """

    seconds: float
    asleep: bool


def work(pid: int) -> Work:
    """What the tree of ``pid`` has done so far."""
    stats = {int(path.name): stat for path in Path("/proc").iterdir() if path.name.isdigit() and (stat := _stat(path))}
    tree, more = set[int](), {pid}
    while more:
        tree |= more
        more = {found for found, stat in stats.items() if int(stat[PARENT]) in more}
    ticks = sum(int(number) for found in tree & stats.keys() for number in stats[found][TIMES])
    threads = [_stat(path) for found in tree for path in _threads(found)]
    return Work(ticks / TICKS, all(stat[0] in ASLEEP for stat in threads if stat))


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _stat(folder: Path) -> list[str]:
    """State and numbers; nothing of a process that has ended."""
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
