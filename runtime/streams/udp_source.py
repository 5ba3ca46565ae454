"""Events in UDP datagrams of whole 16-byte records, with what was lost or was no event counted.

Anyone who can reach the port can send. A datagram that is no events is counted and passed over, and so is one whose
time lies far ahead while the next one does not go on from there: it would make all that follow late.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, Events, concatenate_events
from axonnx.runtime.events.records import RECORD, from_records
from axonnx.runtime.streams.live_sources import PATIENCE, READ, LiveSource

BUFFER = 2**24  # bytes that the system is asked to hold for us
BATCH = 2**20  # bytes that are handed on together, where so many are there
AHEAD = 10_000_000  # µs: a step in time that a second datagram has to confirm
INT64_MAX = 2**63 - 1
SO_RCVBUFFORCE, SO_MEMINFO = 33, 55  # of Linux, without a name in Python
MEMINFO = struct.Struct("9I")  # whose last number counts datagrams that found no room


class Ahead:
    """Holds events back that lie more than ``AHEAD`` after all before them, until the next datagram confirms them."""

    def __init__(self) -> None:
        self.latest: int | None = None
        self.strays = 0  # events that were not confirmed
        self._held: Events = np.empty(0, EVENT)

    def push(self, events: Events) -> Events:
        """The events, of those held and of these, that may be believed."""
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
        """What is held, where there was nothing else; no more is to come."""
        held, self._held = self._held, np.empty(0, EVENT)
        if self.latest is None:
            return held
        self.strays += len(held)
        return held[:0]

    def _near(self, events: Events) -> Events:
        """The events up to the first that jumps ahead; it and those after it are held."""
        reach = np.maximum.accumulate(np.concatenate([[self.latest], events["t"]]))
        jumps = events["t"] > np.minimum(reach[:-1], INT64_MAX - AHEAD) + AHEAD
        at = int(np.argmax(jumps)) if jumps.any() else len(events)
        self.latest, self._held = int(reach[at]), events[at:]
        return events[:at]

    def _confirmed(self, events: Events) -> Events:
        """What is held, where these events have jumped as well."""
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
    """Datagrams of whole records on a local port; what else arrives, and what did not fit, is counted in ``skipped``.

    Datagrams that the network lost or swapped cannot be told from events that never were, or came late.
    """

    def __init__(self, host: str, port: int, seconds: float | None = None) -> None:
        super().__init__(f"udp:{host}:{port}")
        if seconds is not None and not seconds > 0:
            raise AxonnxError(f"{self.name}: seconds is {seconds}; expected more than 0")
        self._address, self._seconds = (host, port), seconds
        self._ahead = Ahead()

    def _arriving(self) -> Iterator[Events]:
        end = None if self._seconds is None else time.monotonic() + self._seconds
        with self._listening() as port:
            while end is None or time.monotonic() < end:
                believed = [self._ahead.push(events) for events in self._waiting(port)]
                self._count_lost(port)
                if sum(map(len, believed)):
                    yield concatenate_events(believed)
        if len(left := self._ahead.flush()):
            yield left
        self._count_strays()

    def _waiting(self, port: socket.socket) -> list[Events]:
        """All datagrams that are there, up to a bound: waits for the first of them only."""
        found, size = [], 0
        with suppress(TimeoutError, BlockingIOError):
            while size < BATCH:
                datagram = port.recv(READ, 0 if size == 0 else socket.MSG_DONTWAIT)
                size += max(1, len(datagram))
                if (events := self._events(datagram)) is not None:
                    found.append(events)
        self._count_strays()
        return found

    def _listening(self) -> socket.socket:
        port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            for option in (socket.SO_RCVBUF, SO_RCVBUFFORCE):  # the second exceeds the system's bound, where it may
                with suppress(OSError):
                    port.setsockopt(socket.SOL_SOCKET, option, BUFFER)
            port.settimeout(PATIENCE)
            port.bind(self._address)
        except (OSError, ValueError, TypeError) as fault:  # the last two: a host name that can be none
            port.close()
            reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else fault
            raise AxonnxError(f"{self.name}: cannot listen there ({reason})") from None
        return port

    def _count_lost(self, port: socket.socket) -> None:
        """What the system dropped so far, as it knows at any time; SO_RXQ_OVFL would not tell of the last ones."""
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
