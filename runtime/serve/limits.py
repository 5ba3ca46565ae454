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
RESERVED = 96  # open files that no client can take: the model, sessions that are written, the library's own


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
    pending: int = 256  # connections that are not accepted (yet)
    pending_per_address: int = 64
    per_address: int = 256  # accepted connections of one address of another machine
    header_s: float = 10.0  # time for a request; a connection that is no WebSocket ends after it
    quiet_s: float = 30.0  # a silent client is sent a ping after this time, and cut after twice of it

    def __post_init__(self) -> None:
        for name, least in (("clients", 1), ("message_bytes", 16), ("memory_bytes", 1), ("saved", 1), ("watchers", 0)):
            if getattr(self, name) < least:
                raise AxonnxError(f"serve: {name} is {getattr(self, name)}; expected {least} or more")
        for name in ("grace_s", "handover_s", "header_s", "quiet_s"):
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


def make_room_for_files(clients: int, pending: int = 0) -> int | None:
    """Raise the system's limit of open files if there may be more connections, because each is an open file.

    Returns:
        The least file number that no connection may have, so that the files above it are left to sessions; None if the
        system has no limit.
    """
    if resource is None:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = clients + pending + RESERVED
    if soft == resource.RLIM_INFINITY:
        return None
    if soft >= wanted:
        return int(soft) - RESERVED // 2
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise AxonnxError(
            f"serve: {clients} clients need {wanted} open files, but the system allows {hard} (ulimit -Hn); allow "
            f"fewer clients, or raise the limit",
            options=("clients",),
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted - RESERVED // 2
