"""The limits of a server: streams, message size, memory and saved sessions."""

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
except ImportError:  # systems without this module have no such limits
    resource = None

STATM = Path("/proc/self/statm")
FILES_BESIDE = 128  # open files that are not streams: the model, watchers, requests


@dataclass(frozen=True)
class Limits:
    """The limits of a server. Whatever exceeds them is refused or waits, without affecting open streams."""

    clients: int = 1024  # open streams
    message_bytes: int = 2**18  # size of one message: 16,384 events
    memory_bytes: int = 2**31  # memory of the process, above which no new stream begins
    saved: int = 4096  # sessions in the folder
    watchers: int = 16  # pages that watch streams
    grace_s: float = 10.0  # time for streams to finish their message when the server stops
    handover_s: float = 5.0  # time to notice a broken connection after its client has come back

    def __post_init__(self) -> None:
        for name, least in (("clients", 1), ("message_bytes", 16), ("memory_bytes", 1), ("saved", 1), ("watchers", 0)):
            if getattr(self, name) < least:
                raise AxonnxError(f"serve: {name} is {getattr(self, name)}; expected {least} or more")
        for name in ("grace_s", "handover_s"):
            if not getattr(self, name) >= 0:
                raise AxonnxError(f"serve: {name} is {getattr(self, name)}; expected 0 or more seconds")


def resident_bytes() -> int:
    """Return the current memory of the process, or its peak if the system does not state the current value."""
    if resource is None:
        return 0
    if STATM.exists():
        return int(STATM.read_text("ascii").split()[1]) * int(resource.getpagesize())
    peak: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def make_room_for_files(clients: int) -> None:
    """Raise the system's limit of open files if there may be more streams, because each stream is an open file."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = clients + FILES_BESIDE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise AxonnxError(
            f"serve: {clients} clients need {wanted} open files, but the system allows {hard} (ulimit -Hn); allow "
            f"fewer clients, or raise the limit",
            options=("clients",),
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
