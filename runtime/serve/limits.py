"""The limits of a server: streams, message size, memory and saved sessions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import process_time
from types import ModuleType

import numpy as np

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


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUANTILES = (0.5, 0.9, 0.99)
KEPT = 8192  # number of most recent latencies for the percentiles


class Metrics:
    """The counters. Only the event loop changes them, so no lock is needed."""

    def __init__(self) -> None:
        self.streams = self.events = self.bytes = self.decisions = self.saved = self.resumed = self.faults = 0
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.latency_s = 0.0
        self._latencies = np.zeros(KEPT)

    def count_decisions(self, count: int, seconds: float) -> None:
        """Count decisions that were sent ``seconds`` after their message arrived."""
        fill = np.arange(self.decisions, self.decisions + min(count, KEPT)) % KEPT
        self._latencies[fill] = seconds
        self.decisions += count
        self.latency_s += count * seconds

    def percentiles(self) -> dict[float, float]:
        """Return percentiles of the most recent latencies in seconds; NaN if there are none."""
        known = self._latencies[: min(self.decisions, KEPT)]
        values = np.quantile(known, QUANTILES) if len(known) else np.full(len(QUANTILES), np.nan)
        return dict(zip(QUANTILES, map(float, values), strict=True))

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all counters as text, with the current gauges as name → (help, value)."""
        lines: list[str] = []
        for name, (about, value) in gauges.items():
            lines += _family(name, "gauge", about, [("", value)])
        for name, about, count in (
            ("streams_total", "Streams started", self.streams),
            ("events_total", "Events received", self.events),
            ("received_bytes_total", "Bytes of event records received", self.bytes),
            ("decisions_total", "Decisions sent", self.decisions),
            ("sessions_saved_total", "Sessions written to disk", self.saved),
            ("sessions_resumed_total", "Streams resumed from a saved session", self.resumed),
            ("faults_total", "Streams ended by an internal error of the server", self.faults),
            ("cpu_seconds_total", "Processor time of the process", process_time()),
        ):
            lines += _family(name, "counter", about, [("", count)])
        lines += _family("events_dropped_total", "counter", "Events in no bin, by reason", _by("reason", self.dropped))
        lines += _family("streams_refused_total", "counter", "Streams refused, by reason", _by("reason", self.refused))
        quantiles = [(f'{{quantile="{at}"}}', value) for at, value in self.percentiles().items()]
        name, about = "decision_latency_seconds", "Time from the arrival of a message to the sending of its decision"
        lines += _family(name, "summary", about, quantiles)
        lines += [f"axonnx_{name}_sum {self.latency_s!r}", f"axonnx_{name}_count {self.decisions}"]
        return "\n".join(lines) + "\n"


def _by(label: str, counts: Counter[str]) -> list[tuple[str, float]]:
    return [(f'{{{label}="{key}"}}', count) for key, count in sorted(counts.items())]


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    full = f"axonnx_{name}"
    shown = [f"{full}{labels} {'NaN' if value != value else repr(value)}" for labels, value in samples]
    return [f"# HELP {full} {about}", f"# TYPE {full} {kind}", *shown]
