"""What all connections share: the network, worker threads, streams under way, limits and counters.

Engines work in threads, outside the event loop; the compiled engine and onnxruntime let go of the interpreter's lock
while they do. All other state is changed by the event loop alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeVar, TypeVarTuple

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.format.network_input import window_length
from axonnx.runtime.model import Model
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.live_sources import LiveSource
from axonnx.runtime.streams.session import Session
from axonnx.serve.client_stream import Stream
from axonnx.serve.counters import Metrics
from axonnx.serve.limits import Limits, resident_bytes
from axonnx.serve.messages import LATER, NOT_ALLOWED, STOPPING, RefusedError
from axonnx.serve.saved import SavedSessions

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

HANDOVER_POLL_S = 0.01
ASKED = ("every_bin", "session", "token")  # what an address may ask for


@dataclass(frozen=True)
class Rules:
    """How every stream is run; see ``Session``."""

    seed: int = 0
    continuous: bool = False
    stop_at: float | None = None
    origin: int | Literal["first"] | None = None
    fit: Fit = field(default_factory=Fit)


class Service:
    """One network and its streams."""

    def __init__(
        self,
        model: Model,
        rules: Rules | None = None,
        limits: Limits | None = None,
        sessions: Path | None = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.rules, self.limits = model, rules or Rules(), limits or Limits()
        self.metrics, self.streams, self.watchers = Metrics(), dict[int, Stream](), 0
        self.saved = SavedSessions(sessions, self.limits.saved)
        self.threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="axonnx-serve")
        self._tasks: dict[int, asyncio.Task[object] | None] = {}  # of each stream
        self._waiting: set[int] = set()  # streams that may be interrupted: they wait for a message
        self.stopping = False
        window_length(model.contract, model.program.name)
        self._make(0, "", False).session.warm_up()  # compiles; what is wrong with rules or file is said now

    @property
    def binning(self) -> Binning:
        """How events become frames."""
        binning = self.model.contract.input.binning
        assert binning is not None  # a session has refused such files
        return binning

    async def work(self, function: Callable[[*Arguments], Result], *words: *Arguments) -> Result:
        """Return the result of a function that runs in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *words)

    async def open(self, asked: Mapping[str, str]) -> Stream:
        """Start a stream, or resume one, as an address asks; raise ``RefusedError`` if there is no room."""
        every_bin, key = _every_bin(asked), asked.get("session")
        if key is not None:
            await self._handed_over(key)
        self._check_room()
        number, resumed = self.metrics.streams + 1, key is not None
        key = key or self.saved.new_key()
        stream = self._make(number, key, every_bin)
        self.streams[number], self.metrics.streams = stream, number  # its place is taken before we wait
        self._tasks[number] = asyncio.current_task()
        try:
            if resumed:
                await self.work(self._restore, stream)
        except BaseException:
            self.close(stream)
            raise
        self.metrics.resumed += resumed
        return stream

    def close(self, stream: Stream) -> None:
        """Its place is free."""
        self.streams.pop(stream.number, None)
        self._tasks.pop(stream.number, None)

    @contextmanager
    def waiting(self, stream: Stream) -> Iterator[None]:
        """While a stream waits for a message, ``stop`` may interrupt it."""
        self._waiting.add(stream.number)
        try:
            yield
        finally:
            self._waiting.discard(stream.number)

    async def save(self, stream: Stream) -> None:
        """Write a stream's session to disk."""
        await self.work(lambda: self.saved.write(stream.key, stream.save()))
        self.metrics.saved += 1

    async def stop(self) -> None:
        """No new streams; those under way finish their message, are saved and told so."""
        self.stopping = True
        tasks = {number: task for number, task in self._tasks.items() if task is not None}
        for number in self._waiting & set(tasks):
            tasks[number].cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self.limits.grace_s)

    def release(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _handed_over(self, key: str) -> None:
        """Wait until no other connection has that session: a client may be back before its broken one is noticed."""
        until = perf_counter() + self.limits.handover_s
        while any(stream.key == key for stream in self.streams.values()):
            if perf_counter() >= until:
                raise RefusedError(NOT_ALLOWED, "session", "this session is under way in another connection")
            await asyncio.sleep(HANDOVER_POLL_S)

    def _check_room(self) -> None:
        if self.stopping:
            raise RefusedError(STOPPING, "stopping", "the server is stopping")
        if len(self.streams) >= self.limits.clients:
            raise RefusedError(
                LATER, "clients", f"{self.limits.clients} streams are under way, the most; come back later"
            )
        held = resident_bytes()
        if held > self.limits.memory_bytes:
            room = f"{held >> 20} MiB, more than its limit of {self.limits.memory_bytes >> 20} MiB"
            raise RefusedError(LATER, "memory", f"the server holds {room}; come back later")

    def _make(self, number: int, key: str, every_bin: bool) -> Stream:
        rules = self.rules
        session = Session(
            self.model.engine,
            seed=rules.seed,
            continuous=rules.continuous,
            stop_at=rules.stop_at,
            every_bin=every_bin,
            origin=rules.origin,
        )
        contract = self.model.contract.input
        adapter = rules.fit.adapter(LiveSource("stream"), self.binning.sensor, contract.fit)
        return Stream(number, key, session, adapter)

    def _restore(self, stream: Stream) -> None:
        state = self.saved.read(stream.key)
        try:
            stream.restore(state)
        except AxonnxError as fault:
            raise RefusedError(NOT_ALLOWED, "session", str(fault)) from None


def _every_bin(asked: Mapping[str, str]) -> bool:
    unknown = [name for name in asked if name not in ASKED]
    if unknown:
        raise RefusedError(
            NOT_ALLOWED, "address", f"the address asks for {unknown[0][:40]!r}; known are {', '.join(ASKED)}"
        )
    value = asked.get("every_bin", "0")
    if value not in ("0", "1"):
        raise RefusedError(NOT_ALLOWED, "address", f"every_bin is {value[:40]!r}; expected 0 or 1")
    return value == "1"
