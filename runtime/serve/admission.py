"""Decide who may hold a connection, and how much of the server's memory and time one connection can take.

A connection is *pending* until its WebSocket is accepted. Pending connections are few, live for seconds, and the oldest
makes room for the newest, so that connections that say nothing cannot keep others out. An accepted connection has a
budget: what it sent and nobody has processed yet, its control frames, and what it does not read. Beyond the budget the
server stops reading, and TCP makes the client wait.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from ipaddress import ip_address
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from axonnx.runtime.serve.limits import Limits, Metrics

PIECE = 2**13  # bytes that are parsed in one turn of the event loop: at most 4,096 frames
MESSAGES = 64  # messages that wait for the stream, however small they are
CONTROL_FRAMES, CONTROL_FRAMES_PER_S = 64, 20  # pings and fragments of one connection: at once, and on average
FRAGMENTS = 1024
LOG_LINES, LOG_S = 20, 60.0


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the address of the client without its port."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if peer else "unknown"


def is_loopback(address: str) -> bool:
    """Return whether the address is of this machine."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


class Door:
    """All connections, by address: those that are pending, and those that are accepted."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.accepted: Counter[str] = Counter()
        self._pending: dict[asyncio.Transport, tuple[str, asyncio.TimerHandle]] = {}  # the oldest comes first

    def enter(self, transport: asyncio.Transport) -> None:
        """Take up a new connection; the oldest pending one of this address, or of all, may have to go."""
        address = address_of(transport)
        same = [each for each, (other, _) in self._pending.items() if other == address]
        if len(same) >= self.limits.pending_per_address:
            self._cut(same[0], "pending")
        elif len(self._pending) >= self.limits.pending:
            self._cut(next(iter(self._pending)), "pending")
        deadline = asyncio.get_running_loop().call_later(self.limits.header_s, self._cut, transport, "deadline")
        self._pending[transport] = address, deadline

    def accept(self, transport: asyncio.Transport) -> None:
        """Count a connection as accepted; the deadline no longer holds."""
        if self._forget(transport):
            self.accepted[address_of(transport)] += 1

    def leave(self, transport: asyncio.Transport, accepted: bool) -> None:
        """Forget a connection that has ended."""
        if not self._forget(transport) and accepted:
            self.accepted[address_of(transport)] -= 1

    def is_full_for(self, address: str) -> bool:
        """Return whether an address has as many accepted connections as one may have; this machine may have all."""
        return not is_loopback(address) and self.accepted[address] >= self.limits.per_address

    def _forget(self, transport: asyncio.Transport) -> bool:
        found = self._pending.pop(transport, None)
        if found is not None:
            found[1].cancel()
        return found is not None

    def _cut(self, transport: asyncio.Transport, reason: str) -> None:
        self._forget(transport)
        self.metrics.refused[reason] += 1
        transport.abort()


class DoorConfig(uvicorn.Config):
    """A configuration that brings the door to the protocols, which uvicorn makes itself."""

    door: Door


class HttpProtocol(H11Protocol):
    """HTTP with a deadline for everything that does not become a WebSocket."""

    config: DoorConfig

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take up the connection."""
        super().connection_made(transport)
        self.config.door.enter(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self.config.door.leave(self.transport, accepted=False)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket that reads ahead within its budget, so that pings are answered while a stream is busy."""

    config: DoorConfig

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.door, self.limits = self.config.door, self.config.door.limits
        self._accepted = False
        self._unparsed = bytearray()
        self._sizes: deque[int] = deque()  # of the messages that wait
        self._turn: asyncio.Handle | None = None
        self._allowance, self._counted_at = float(CONTROL_FRAMES), time.monotonic()
        self._heard, self._drained, self._missed = True, True, 0
        self._watch: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, a piece in each turn of the event loop, so that one client cannot stop the others."""
        self._unparsed += data
        self._heard = True
        if self._turn is None:
            self._parse()

    def _parse(self) -> None:
        self._turn = None
        if self.transport.is_closing():
            self._unparsed.clear()
            return
        if self._unparsed and self._has_room():
            piece = bytes(self._unparsed[:PIECE])
            del self._unparsed[:PIECE]
            super().data_received(piece)
        if self._unparsed and self._has_room():
            self._turn = self.loop.call_soon(self._parse)
        if self._unparsed or not self._has_room():
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _has_room(self) -> bool:
        """Return whether the connection is within its budget."""
        if self.close_sent:
            return True  # messages are discarded; the client's closing frame is awaited
        waiting = len(self._sizes) < MESSAGES and sum(self._sizes) < self.limits.message_bytes
        return waiting and self.writable.is_set() and self._allowance > 0

    def send_receive_event_to_app(self) -> None:
        """Queue a message for the stream."""
        if not self.close_sent:
            self._sizes.append(sum(map(len, self.frames)))
        self.read_paused = True  # ``_parse`` decides about reading
        super().send_receive_event_to_app()

    async def receive(self) -> Any:
        """Return the next message, and read on if there is room again."""
        message = await self.queue.get()
        if message["type"] == "websocket.receive":
            self._sizes.popleft()
            self._go_on()
        return message

    async def send(self, message: Any) -> None:
        """Send, and note that the connection is accepted when it is."""
        await super().send(message)
        if message["type"] == "websocket.accept" and not self.transport.is_closing():
            self._accepted = True
            self.door.accept(self.transport)
            self._watch = self.loop.call_later(self.limits.quiet_s, self._look)

    def resume_writing(self) -> None:
        """Read on after the client has read."""
        super().resume_writing()
        self._drained = True
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        for timer in (self._watch, self._turn):
            if timer is not None:
                timer.cancel()
        self._unparsed.clear()
        super().connection_lost(exc)
        self.door.leave(self.transport, self._accepted)

    def handle_ping(self) -> None:
        """Answer a ping, within the allowance."""
        super().handle_ping()
        self._spend()

    def handle_pong(self, event: Frame) -> None:
        """Take a pong, within the allowance."""
        super().handle_pong(event)
        self._spend()

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment, within the allowance; many empty ones take no memory."""
        super().handle_cont(event)
        if len(self.frames) > FRAGMENTS:
            self.frames = [b"".join(self.frames)]
        self._spend()

    def _spend(self) -> None:
        now = time.monotonic()
        refilled = self._allowance + CONTROL_FRAMES_PER_S * (now - self._counted_at)
        self._allowance, self._counted_at = min(refilled, CONTROL_FRAMES) - 1, now
        if self._allowance <= 0:
            self.loop.call_later((1 - self._allowance) / CONTROL_FRAMES_PER_S, self._refill)

    def _refill(self) -> None:
        now = time.monotonic()
        self._allowance += CONTROL_FRAMES_PER_S * (now - self._counted_at)
        self._counted_at = now
        self._go_on()

    def _go_on(self) -> None:
        if self._turn is None and not self.disconnected:
            self._turn = self.loop.call_soon(self._parse)

    def _look(self) -> None:
        """Cut a connection that neither sends nor answers a ping, or has read nothing for two periods."""
        if self.disconnected or self.transport.is_closing():
            return
        blocked = not self.writable.is_set()
        silent = not self._heard and not self._unparsed and self._has_room()
        self._missed = self._missed + 1 if silent or (blocked and not self._drained) else 0
        self._heard = self._drained = False
        if self._missed >= 2:
            self.door.metrics.refused["silent"] += 1
            self.transport.abort()
            return
        if silent and not self.close_sent:
            self.conn.send_ping(b"")
            self.transport.write(b"".join(self.conn.data_to_send()))
        self._watch = self.loop.call_later(self.limits.quiet_s, self._look)


class RateLimited(logging.Filter):
    """Let a number of lines a minute pass, and then one that states how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._since, self._count = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is logged."""
        now = time.monotonic()
        if now - self._since > LOG_S:
            left_out, self._since, self._count = self._count - LOG_LINES, now, 0
            if left_out > 0:
                record.msg = f"({left_out:,} lines were left out) {record.msg}"
        self._count += 1
        return self._count <= LOG_LINES


def limit_logs() -> None:
    """Limit the lines that clients can cause: of uvicorn, of asyncio, and our own."""
    for name in ("uvicorn.error", "asyncio", "axonnx.runtime.serve"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, RateLimited) for each in logger.filters):
            logger.addFilter(RateLimited())
