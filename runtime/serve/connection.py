"""A stream over a WebSocket, one message at a time, so that a client that sends too fast has to wait.

The next message is read only after all decisions of the previous one were sent. Meanwhile the client's data fills the
buffers of its own connection, and then the client is blocked: nothing is lost, and the server's memory does not grow. A
client that does not read its decisions is blocked in the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from time import perf_counter

from starlette.websockets import WebSocket, WebSocketDisconnect

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.network_input import describe_device, device_sensor, window_length
from axonnx.runtime.serve.client_stream import Block, Stream
from axonnx.runtime.serve.messages import (
    DONE,
    MALFORMED,
    NOT_UNDERSTOOD,
    OUR_FAULT,
    STOPPING,
    TOO_BIG,
    NotSavedError,
    Order,
    RefusedError,
    message,
    read_order,
)
from axonnx.runtime.serve.service import Service

log = logging.getLogger("axonnx.runtime.serve")


async def follow(socket: WebSocket, service: Service) -> None:
    """Serve one client until its stream ends for any reason. The socket must be accepted already."""
    try:
        stream = await service.open(socket.query_params)
    except RefusedError as refusal:
        return await refuse(socket, service, refusal)
    try:
        await Connection(socket, service, stream).run()
    except RefusedError as refusal:
        await refuse(socket, service, refusal)
    except AxonnxError as fault:
        await refuse(socket, service, RefusedError(MALFORMED, "records", str(fault)))
    except WebSocketDisconnect:
        pass
    except Exception:
        service.metrics.faults += 1
        log.exception("stream %d", stream.number)
        await refuse(
            socket, service, RefusedError(OUR_FAULT, "fault", "an internal error of the server ended this stream")
        )
    finally:
        service.close(stream)
    return None


async def refuse(socket: WebSocket, service: Service, refusal: RefusedError) -> None:
    """Send the full reason, then close; a close frame has room for a short text only."""
    service.metrics.refused[refusal.kind] += 1
    try:
        await socket.send_text(message("error", code=refusal.code, text=refusal.text))
        await socket.close(refusal.code, refusal.reason)
    except (WebSocketDisconnect, RuntimeError):  # the client is already gone
        pass


class _UnreadError(Exception):
    """The server stops while a client does not read."""


class Connection:
    """A client's socket and its stream."""

    def __init__(self, socket: WebSocket, service: Service, stream: Stream) -> None:
        self.socket, self.service, self.stream = socket, service, stream
        self._dropped: Counter[str] = Counter(stream.dropped())

    async def run(self) -> None:
        """Run until the client ends the stream, its connection breaks, or the server stops.

        Of a client that acknowledges decisions, a broken connection is saved, too: the client knows what it has.
        """
        try:
            await self._run()
        except WebSocketDisconnect:
            if self.stream.outbox.acknowledges or self.service.stopping:
                await self.service.keep(self.stream)
            raise
        except _UnreadError:
            await self.service.keep(self.stream)

    async def _run(self) -> None:
        for text in (self._hello(), *self.stream.again):
            await self._tell(text)
        self.stream.again = []
        while not self.service.stopping:
            received = await self._receive()
            if received is None:
                break
            arrived = perf_counter()
            if isinstance(received, bytes):
                await self._events(received, arrived)
            elif await self._order(received, arrived):
                return
        await self._leave()

    async def _receive(self) -> bytes | Order | None:
        """Return the next message; None if the server stops meanwhile."""
        try:
            with self.service.waiting(self.stream):
                received = await self.socket.receive()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not self.service.stopping:
                raise
            task.uncancel()
            return None
        if received["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(received.get("code", 1006))
        content = received.get("bytes")
        content = received["text"] if content is None else content
        if len(content) > self.service.limits.message_bytes:
            most = self.service.limits.message_bytes
            raise RefusedError(TOO_BIG, "size", f"the message has {len(content)} bytes; expected at most {most}")
        return content if isinstance(content, bytes) else read_order(content)

    async def _events(self, data: bytes, arrived: float) -> None:
        before, metrics = self.stream.events, self.service.metrics
        block = await self.service.work(self.stream.take, data)
        metrics.events += self.stream.events - before
        metrics.bytes += len(data)
        await self._send(block, arrived)

    async def _order(self, order: Order, arrived: float) -> bool:
        """Do what the client requests, and return whether the stream has ended."""
        if order.type == "save":
            await self._save()
            return False
        if order.type == "ack":
            self.stream.outbox.acknowledge(order.decisions)
            return False
        if order.type == "advance":
            await self._send(await self.service.work(self.stream.advance, order.t_us), arrived)
            return False
        await self._send(await self.service.work(self.stream.end), arrived)
        await self._tell(message("summary", **self.stream.summary()))
        if not await self._all_acknowledged():
            return False
        try:
            await self.service.wait_for_disk(self.service.saved.remove, self.stream.key, self.stream.generation)
        except NotSavedError as fault:  # the client has all; the session stays on disk
            log.warning("stream %d: its session is not removed: %s", self.stream.number, fault)
        with suppress(WebSocketDisconnect, RuntimeError):  # a client that has all may be gone already
            await self.socket.close(DONE)
        return True

    async def _all_acknowledged(self) -> bool:
        """Wait until a client that acknowledges has all decisions; return False if the server stops meanwhile.

        If the connection breaks, the session is saved with what the client does not have, and can be resumed.
        """
        outbox = self.stream.outbox
        while outbox.acknowledges and outbox.has < outbox.next:
            order = await self._receive()
            if order is None:
                return False
            if isinstance(order, bytes) or order.type != "ack":
                raise RefusedError(NOT_UNDERSTOOD, "message", "the stream has ended; only ack may follow end")
            outbox.acknowledge(order.decisions)
        return True

    async def _send(self, block: Block, arrived: float) -> None:
        """Send all decisions of a message in blocks; each block waits until the client has room for it."""
        while True:
            for text in block.texts:
                await self._tell(text)
            self.service.metrics.count_decisions(block.decisions, perf_counter() - arrived)
            if not block.more:
                break
            block = await self.service.work(self.stream.more)
        for text in self.stream.told():
            await self.socket.send_text(text)
        dropped = Counter(self.stream.dropped())
        self.service.metrics.dropped += dropped - self._dropped
        self._dropped = dropped

    async def _tell(self, text: str) -> None:
        """Send, and wait until the client has room; the server's end interrupts that."""
        try:
            with self.service.waiting(self.stream, sending=True):
                await self.socket.send_text(text)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not self.service.stopping:
                raise
            task.uncancel()
            raise _UnreadError from None

    async def _save(self) -> None:
        told = {"session": self.stream.key, "events": self.stream.events}
        try:
            await self.service.save(self.stream)
        except NotSavedError as fault:
            self.service.metrics.refused["save"] += 1
            await self.socket.send_text(message("not_saved", session=self.stream.key, text=str(fault)))
            return
        await self.socket.send_text(message("saved", **told, decisions=self.stream.session.progress.decisions))

    async def _leave(self) -> None:
        if self.service.saved.folder is not None:
            await self._save()
        await self.socket.close(STOPPING, "the server is stopping")

    def _hello(self) -> str:
        contract, binning = self.service.model.contract, self.service.binning
        sensor = device_sensor(contract.input)
        assert sensor is not None  # the service has refused networks of frames
        return message(
            "hello",
            stream=self.stream.number,
            session=self.stream.key,
            saves=self.service.saved.folder is not None,
            events=self.stream.events,
            decisions=self.stream.session.progress.decisions,
            model=self.service.model.program.name,
            classes=contract.classes,
            **({} if contract.units is None else {"units": contract.units}),
            sensor=sensor.model_dump(),
            input=describe_device(contract.input),
            bin_us=binning.bin_us,
            bins=window_length(contract, self.service.model.program.name),
            message_bytes=self.service.limits.message_bytes,
        )
