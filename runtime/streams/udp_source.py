"""Receive events as UDP datagrams of whole 16-byte records, and count lost and malformed datagrams.

Anyone who can reach the port can send. A malformed datagram is counted and ignored. A datagram whose time is far ahead
is ignored too, unless the next one confirms it: otherwise it would make all later events late.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.base.progress import requested
from axonnx.runtime.events.arrays import EVENT, RECORD, Events, concatenate_events, from_records
from axonnx.runtime.streams.live_sources import PATIENCE, READ, LiveSource

BUFFER = 2**24  # receive buffer requested from the system, in bytes
BATCH = 2**20  # most bytes handed on together
AHEAD = 10_000_000  # µs: a larger step in time must be confirmed by a second datagram
INT64_MAX = 2**63 - 1
SO_RCVBUFFORCE, SO_MEMINFO = 33, 55  # Linux constants that Python does not name
MEMINFO = struct.Struct("9I")  # the last number counts datagrams that did not fit into the buffer


class JumpFilter:
    """Hold events that are more than ``AHEAD`` later than all before them until the next datagram confirms them."""

    def __init__(self) -> None:
        self.latest: int | None = None
        self.strays = 0  # events that were not confirmed
        self._held: Events = np.empty(0, EVENT)

    def push(self, events: Events) -> Events:
        """Return the events, held and new, that are confirmed."""
        begun = events[:0]
        if self.latest is None:  # the first datagram needs a second one as well
            first, self._held = self._held, events[:0]
            if not len(first) or int(events["t"][0]) < int(first["t"][0]) - AHEAD:
                self.strays += len(first)
                self._held = events
                return begun
            self.latest = int(first["t"][0])
            begun = self._near(first)
        return concatenate_events([begun, self._confirmed(events), self._near(events)])

    def flush(self) -> Events:
        """Return the held events if they are the only ones; no more events may follow."""
        held, self._held = self._held, np.empty(0, EVENT)
        if self.latest is None:
            return held
        self.strays += len(held)
        return held[:0]

    def _near(self, events: Events) -> Events:
        """Return the events before the first jump ahead, and hold the others."""
        reach = np.maximum.accumulate(np.concatenate([[self.latest], events["t"]]))
        jumps = events["t"] > np.minimum(reach[:-1], INT64_MAX - AHEAD) + AHEAD
        at = int(np.argmax(jumps)) if jumps.any() else len(events)
        self.latest, self._held = int(reach[at]), events[at:]
        return events[:at]

    def _confirmed(self, events: Events) -> Events:
        """Return the held events if these events confirm their jump."""
        held, self._held = self._held, events[:0]
        assert self.latest is not None
        if not len(held):
            return held
        if int(events["t"][0]) <= self.latest + AHEAD:
            self.strays += len(held)
            return held[:0]
        self.latest = max(self.latest, int(held["t"].max()))
        return held


class UdpSource(LiveSource):
    """Datagrams of whole records on a local port.

    Malformed datagrams, and datagrams that did not fit into the buffer, are counted in ``skipped``. Datagrams that the
    network lost or reordered cannot be recognised.

    Args:
        host: Address to listen on.
        port: UDP port to listen on.
        seconds: How long to listen. Default: until Ctrl-C.

    Raises:
        AxonnxError: If ``seconds`` is not positive, or (while listening) if the port cannot be opened.
    """

    def __init__(self, host: str, port: int, seconds: float | None = None) -> None:
        super().__init__(f"udp:{host}:{port}")
        if seconds is not None and not seconds > 0:
            raise AxonnxError(f"{self.name}: seconds is {seconds}; expected more than 0")
        self._address, self._seconds = (host, port), seconds
        self._ahead = JumpFilter()

    def restarted(self, t_us: int) -> None:
        """Judge from now on what is far ahead by the clock that began again."""
        self._ahead.latest = t_us

    def _arriving(self) -> Iterator[Events]:
        end = None if self._seconds is None else time.monotonic() + self._seconds
        with self._listening() as port:
            while not requested() and (end is None or time.monotonic() < end):
                believed = [self._ahead.push(events) for events in self._waiting(port)]
                self._count_lost(port)
                yield concatenate_events(
                    [np.empty(0, EVENT), *believed]
                )  # also without events, so that losses are reported in time
        if len(left := self._ahead.flush()):
            yield left
        self._count_strays()

    def _waiting(self, port: socket.socket) -> list[Events]:
        """Wait for one datagram, then return it with all others that have arrived, up to a limit."""
        found, size = [], 0
        port.settimeout(PATIENCE)
        with suppress(TimeoutError, BlockingIOError):
            while size < BATCH:
                datagram = port.recv(READ)
                if not size:  # with a timeout, recv would wait for each of the others, whatever its flags say
                    port.settimeout(0.0)
                size += max(1, len(datagram))
                if (events := self._events(datagram)) is not None:
                    found.append(events)
        self._count_strays()
        return found

    def _listening(self) -> socket.socket:
        port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            for option in (socket.SO_RCVBUF, SO_RCVBUFFORCE):  # the second one exceeds the system's limit, if permitted
                with suppress(OSError):
                    port.setsockopt(socket.SOL_SOCKET, option, BUFFER)
            port.bind(self._address)
        except (OSError, ValueError, TypeError) as fault:  # the last two: an invalid host name
            port.close()
            reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else fault
            raise AxonnxError(f"{self.name}: cannot listen on this address ({reason}); choose another one") from None
        return port

    def _count_lost(self, port: socket.socket) -> None:
        """Count the datagrams that the system dropped; SO_RXQ_OVFL would miss the last ones."""
        with suppress(OSError, struct.error):
            lost = MEMINFO.unpack(port.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size))[-1]
            if lost:
                self.skipped["lost_datagram"] = lost

    def _count_strays(self) -> None:
        if self._ahead.strays:
            self.skipped["far_future_event"] = self._ahead.strays

    def _events(self, datagram: bytes) -> Events | None:
        if not datagram:
            self._skip("empty_datagram")
            return None
        try:
            if len(datagram) % RECORD.itemsize == 0:
                return from_records(datagram, self.name)
        except AxonnxError:
            pass
        self._skip("malformed_datagram")
        return None
