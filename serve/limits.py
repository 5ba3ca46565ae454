"""How much a server takes on: streams, the size of a message, memory, saved sessions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from axonnx.base.errors import AxonnxError

resource: ModuleType | None
try:
    resource = import_module("resource")
except ImportError:  # systems without it have no such limits either
    resource = None

STATM = Path("/proc/self/statm")
FILES_BESIDE = 128  # open files that are no streams: the model, watchers, requests


@dataclass(frozen=True)
class Limits:
    """What is beyond them is refused or waits; it never costs a stream that is under way."""

    clients: int = 1024  # streams at once
    message_bytes: int = 2**18  # of one message: 16,384 events
    memory_bytes: int = 2**31  # of the process: no new stream begins above it
    saved: int = 4096  # sessions in the folder
    watchers: int = 16  # pages that look on
    grace_s: float = 10.0  # for streams to finish their message when the server stops
    handover_s: float = 5.0  # for a broken connection to be noticed when its client is back already

    def __post_init__(self) -> None:
        for name, least in (("clients", 1), ("message_bytes", 16), ("memory_bytes", 1), ("saved", 1), ("watchers", 0)):
            if getattr(self, name) < least:
                raise AxonnxError(f"serve: {name} is {getattr(self, name)}; expected {least} or more")
        for name in ("grace_s", "handover_s"):
            if not getattr(self, name) >= 0:
                raise AxonnxError(f"serve: {name} is {getattr(self, name)}; expected seconds from 0 on")


def resident_bytes() -> int:
    """Memory that the process holds now; its peak where the system does not say."""
    if resource is None:
        return 0
    if STATM.exists():
        return int(STATM.read_text("ascii").split()[1]) * int(resource.getpagesize())
    peak: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def make_room_for_files(clients: int) -> None:
    """Raise the limit of open files to the number of streams, as far as the system allows."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = clients + FILES_BESIDE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise AxonnxError(
            f"serve: {clients} clients need {wanted} open files and the system allows {hard} (ulimit -Hn); serve "
            f"fewer, or raise the limit",
            options=("clients",),
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
