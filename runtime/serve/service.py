"""The state that all connections share: the network, worker threads, open streams, limits and counters.

Engines run in threads, outside the event loop; the native engine and onnxruntime release Python's global lock while
they run. Only the event loop changes all other state.
"""

from __future__ import annotations

import asyncio
import logging
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
from axonnx.runtime.serve.admission import Door
from axonnx.runtime.serve.client_stream import Stream
from axonnx.runtime.serve.limits import Limits, Metrics, resident_bytes
from axonnx.runtime.serve.messages import LATER, NOT_ALLOWED, STOPPING, NotSavedError, RefusedError
from axonnx.runtime.serve.saved import SavedSessions
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.live_sources import LiveSource
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.session_state import SessionState

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

log = logging.getLogger("axonnx.runtime.serve")

HANDOVER_POLL_S = 0.01
DISK_THREADS = 16  # a save waits for the disk twenty times as long as it computes
PARAMETERS = ("every_bin", "session", "decisions", "token")  # parameters that an address may have


@dataclass(frozen=True)
class Rules:
    """How every stream is run; see ``Session``."""

    seed: int = 0
    continuous: bool = False
    stop_at: float | None = None
    origin: int | Literal["first"] | None = None
    fit: Fit = field(default_factory=Fit)


class Service:
    """One network and its streams.

    Args:
        model: The network.
        rules: How every stream is run.
        limits: Limits of the server.
        sessions: Folder for saved sessions. Default: sessions are not saved.
        threads: Number of worker threads. Default: one per processor.

    Raises:
        AxonnxError: If the network takes no events, or the rules do not fit it.
    """

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
        self.door = Door(self.limits, self.metrics)
        self.saved = SavedSessions(sessions, self.limits.saved)
        self.threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="axonnx-serve")
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="axonnx-serve-disk")
        self._tasks: dict[int, asyncio.Task[object] | None] = {}  # of each stream
        self._waiting: set[int] = set()  # streams that wait for a message and may be interrupted
        self._sending: set[int] = set()  # streams whose client has to read
        self.stopping = False
        window_length(model.contract, model.program.name)
        self._make(
            0, "", False
        ).session.warm_up()  # runs once, so that faults of the rules or the file are reported now

    @property
    def binning(self) -> Binning:
        """How events become frames."""
        binning = self.model.contract.input.binning
        assert binning is not None  # a session has refused such files
        return binning

    async def work(self, function: Callable[[*Arguments], Result], *words: *Arguments) -> Result:
        """Run a function in a worker thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *words)

    async def wait_for_disk(self, function: Callable[[*Arguments], Result], *words: *Arguments) -> Result:
        """Run a function that mostly waits for the disk, so that no engine waits for it, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, function, *words)

    async def open(self, asked: Mapping[str, str]) -> Stream:
        """Open a new stream, or resume one, as the address requests.

        Raises:
            RefusedError: If there is no room, or the session cannot be resumed.
        """
        every_bin, key, has = _every_bin(asked), asked.get("session"), _decisions(asked)
        if key is not None:
            await self._handed_over(key)
        self._check_room()
        number, resumed = self.metrics.streams + 1, key is not None
        key = key or self.saved.new_key()
        stream = self._make(number, key, every_bin)
        self.streams[number], self.metrics.streams = stream, number  # the place is taken before we wait
        self._tasks[number] = asyncio.current_task()
        try:
            if resumed:
                await self.wait_for_disk(self._restore, stream, has)
            elif has is not None:
                stream.outbox.resume(has)
        except BaseException:
            self.close(stream)
            raise
        self.metrics.resumed += resumed
        return stream

    def close(self, stream: Stream) -> None:
        """Free the place of a stream."""
        self.streams.pop(stream.number, None)
        self._tasks.pop(stream.number, None)

    @contextmanager
    def waiting(self, stream: Stream, sending: bool = False) -> Iterator[None]:
        """Allow ``stop`` to interrupt a stream while it waits for a message, or (later) for its client to read."""
        waiting = self._sending if sending else self._waiting
        waiting.add(stream.number)
        try:
            yield
        finally:
            waiting.discard(stream.number)

    async def save(self, stream: Stream) -> None:
        """Write a stream's session to disk."""
        await self.wait_for_disk(lambda: self.saved.write(stream.key, stream.save(), stream.generation))
        self.metrics.saved += 1

    async def keep(self, stream: Stream) -> None:
        """Save a stream whose client cannot be told, if that is possible."""
        if self.saved.folder is not None:
            try:
                await self.work(stream.finish_message)
                await self.save(stream)
            except (NotSavedError, RefusedError) as fault:  # the state that was saved last remains
                log.warning("stream %d is not saved: %s", stream.number, fault)

    async def stop(self) -> None:
        """Accept no new streams; let open ones finish their message, save them and tell their clients."""
        self.stopping = True
        tasks = {number: task for number, task in self._tasks.items() if task is not None}
        for waiting in (self._waiting, self._sending):  # those that their clients do not read have half of the time
            for number in waiting & set(tasks):
                tasks[number].cancel()
            if tasks:
                await asyncio.wait(tasks.values(), timeout=self.limits.grace_s / 2)

    def release(self) -> None:
        """Stop the worker threads."""
        for pool in (self._pool, self._disk):
            pool.shutdown(wait=True, cancel_futures=True)

    async def _handed_over(self, key: str) -> None:
        """Wait until no other connection uses the session, because a broken connection may be noticed late."""
        until = perf_counter() + self.limits.handover_s
        while any(stream.key == key for stream in self.streams.values()):
            if perf_counter() >= until:
                raise RefusedError(NOT_ALLOWED, "session", "another connection uses this session; close it first")
            await asyncio.sleep(HANDOVER_POLL_S)

    def _check_room(self) -> None:
        if self.stopping:
            raise RefusedError(STOPPING, "stopping", "the server is stopping")
        if len(self.streams) >= self.limits.clients:
            raise RefusedError(
                LATER, "clients", f"{self.limits.clients} streams are open, the most that are allowed; try again later"
            )
        held = resident_bytes()
        if held > self.limits.memory_bytes:
            room = f"{held >> 20} MiB, more than its limit of {self.limits.memory_bytes >> 20} MiB"
            raise RefusedError(LATER, "memory", f"the server uses {room}; try again later")

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
        return Stream(number, key, session, adapter, self.saved.folder is not None, every_bin)

    def _restore(self, stream: Stream, has: int | None) -> None:
        def use(state: SessionState) -> None:
            try:
                stream.restore(state)
            except AxonnxError as fault:
                raise RefusedError(NOT_ALLOWED, "session", str(fault)) from None
            if has is not None:
                stream.again = stream.outbox.resume(has)

        stream.generation = self.saved.take_over(stream.key, use)


def _decisions(asked: Mapping[str, str]) -> int | None:
    """Return how many decisions the client has; None if it does not acknowledge decisions."""
    text = asked.get("decisions")
    if text is None:
        return None
    if not (text.isdecimal() and len(text) < 19) or ("session" not in asked and int(text) > 0):
        raise RefusedError(
            NOT_ALLOWED, "address", f"decisions is {text[:40]!r}; expected how many the client has: 0 of a new session"
        )
    return int(text)


def _every_bin(asked: Mapping[str, str]) -> bool:
    unknown = [name for name in asked if name not in PARAMETERS]
    if unknown:
        raise RefusedError(
            NOT_ALLOWED,
            "address",
            f"the address has the unknown parameter {unknown[0][:40]!r}; known are {', '.join(PARAMETERS)}",
        )
    value = asked.get("every_bin", "0")
    if value not in ("0", "1"):
        raise RefusedError(NOT_ALLOWED, "address", f"every_bin is {value[:40]!r}; expected 0 or 1")
    return value == "1"
