"""1,000 streams beside 200 cut connections and 20 killed servers: does every decision arrive exactly once?

python -m benchmarks.exactly_once
python -m benchmarks.exactly_once --streams 50 --cuts 20 --kills 4 --pace 1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import websockets
from websockets.frames import CloseCode

from axonnx.runtime.events.arrays import RECORD, make_events, to_records
from axonnx.runtime.model import load
from benchmarks.networks import digits
from benchmarks.serving import EVENTS, WINDOW_US

WINDOWS, RECORDINGS, SERVERS = 12, 16, 2
SAVE, ACKNOWLEDGE = 0.3, 0.5  # how often a client does so after a decision
ANSWER_S, DEADLINE_S = 60, 230
LATE_S = 0.05  # beyond it a window waited for its connection
BROKEN = (OSError, EOFError, TimeoutError, websockets.ConnectionClosed, websockets.InvalidHandshake)


class Recording:
    """A recording as bytes, and what an undisturbed session decides on it."""

    def __init__(self, path: Path, seed: int) -> None:
        generator = np.random.default_rng(seed)
        count = WINDOWS * EVENTS
        t = np.sort(generator.integers(0, WINDOW_US, (WINDOWS, EVENTS))) + np.arange(WINDOWS)[:, None] * WINDOW_US
        events = make_events(t.ravel(), *(generator.integers(0, most, count) for most in (16, 16, 2)))
        session = load(path).session(every_bin=False)
        self.data = to_records(events)
        self.decisions = [each.as_dict() for each in session.push(events) + session.flush()]
        assert len(self.decisions) == WINDOWS


class Servers:
    """Processes of ``axonnx serve`` with one folder for sessions. A killed one is replaced at once."""

    def __init__(self, path: Path, sessions: Path, clients: int) -> None:
        words = ["serve", str(path), "--port", "0", "--sessions", str(sessions), "--clients", str(clients)]
        self._command = [sys.executable, "-m", "axonnx.cli", *words]
        self.addresses: list[str | None] = [None] * SERVERS
        self._processes = [self._start() for _ in range(SERVERS)]
        self.kills = 0

    def _start(self) -> subprocess.Popen:
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def listen(self, at: int) -> None:
        """Wait until a server accepts connections."""
        address = self._processes[at].stdout.readline().split(" at ")[1].split()[0]
        self.addresses[at] = address.replace("http", "ws") + "stream"

    async def kill(self, at: int) -> None:
        """Kill a server as the system would, and start another one in its place."""
        self.addresses[at] = None
        self._processes[at].send_signal(signal.SIGKILL)
        self._processes[at].wait()
        self.kills += 1
        self._processes[at] = self._start()
        await asyncio.to_thread(self.listen, at)

    def stop(self) -> list[int]:
        """Stop all servers; their exit codes."""
        for process in self._processes:
            process.terminate()
        return [process.wait(60) for process in self._processes]


class Client:
    """A stream that follows the rules of ``docs/serving.md``, and what was seen on the way."""

    def __init__(self, servers: Servers, recording: Recording, seed: int, cuts: set[int], seen: Seen) -> None:
        self.servers, self.recording, self.seen = servers, recording, seen
        self.random = random.Random(seed)
        self.cuts = cuts  # windows in which the client cuts its connection
        self.log: list[dict] = []  # decisions that were written down
        self.key: str | None = None
        self.connections, self.began, self.ended = 0, 0.0, False
        self.summary: dict | None = None

    async def follow(self, pace: float) -> None:
        """Send a window every ``pace`` seconds, until all is decided."""
        await asyncio.sleep(pace * self.random.random())
        self.began = time.perf_counter()
        attempts = 0
        while not self.ended:
            before = self.connections
            try:
                await self._connected(pace)
            except BROKEN as fault:
                self.seen.breaks[type(fault).__name__] += 1
                attempts = 0 if self.connections > before else attempts + 1
                await asyncio.sleep(min(4.0, 0.25 * 2**attempts) * self.random.random())

    async def _connected(self, pace: float) -> None:
        address = self.random.choice(self.servers.addresses)
        if address is None:
            raise ConnectionRefusedError
        resumed = f"&session={self.key}" if self.key else ""
        options = {"proxy": None, "compression": None, "ping_interval": None, "open_timeout": ANSWER_S}
        async with websockets.connect(f"{address}?decisions={len(self.log)}{resumed}", **options) as socket:
            hello = await self._told(socket)
            self.connections += 1
            if self.key is None:
                await self._save(socket)
                self.key = hello["session"]
            await self._go_on(socket, hello["events"], pace)

    async def _go_on(self, socket: websockets.ClientConnection, events: int, pace: float) -> None:
        for window in range(events // EVENTS, WINDOWS):
            due = self.began + pace * window  # the camera has the window at this time, connected or not
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            late = time.perf_counter() - due > LATE_S
            await socket.send(self.recording.data[events * RECORD.itemsize : (window + 1) * EVENTS * RECORD.itemsize])
            events = (window + 1) * EVENTS
            self._perhaps_cut(socket, window)
            if len(self.log) < window:  # the first events of a window show that the last one is over
                while len(self.log) < window:
                    self._note(await self._told(socket))
                (self.seen.late if late else self.seen.latencies).append(time.perf_counter() - due)
            if self.random.random() < ACKNOWLEDGE:
                await socket.send(json.dumps({"type": "ack", "decisions": len(self.log)}))
            if self.random.random() < SAVE:
                await self._save(socket)
        await socket.send('{"type": "end"}')
        while (message := await self._told(socket))["type"] != "summary":
            self._note(message)
        self.summary = message
        await socket.send(json.dumps({"type": "ack", "decisions": len(self.log)}))
        await asyncio.wait_for(socket.wait_closed(), ANSWER_S)
        self.ended = socket.close_code == CloseCode.NORMAL_CLOSURE  # otherwise the server may not have heard of it

    def _perhaps_cut(self, socket: websockets.ClientConnection, window: int) -> None:
        """Break the connection at once or a little later: before, while or after a decision comes."""
        if window in self.cuts:
            self.cuts.discard(window)
            self.seen.cuts += 1
            asyncio.get_running_loop().call_later(0.02 * self.random.random(), socket.transport.abort)

    async def _save(self, socket: websockets.ClientConnection) -> None:
        await socket.send('{"type": "save"}')
        while (message := await self._told(socket))["type"] != "saved":
            self._note(message)

    def _note(self, message: dict) -> None:
        assert message["type"] == "decision", message
        self.log.append(message)

    async def _told(self, socket: websockets.ClientConnection) -> dict:
        message = json.loads(await asyncio.wait_for(socket.recv(), ANSWER_S))
        if message["type"] == "error":  # such as: an attempt of this client that it gave up has the session now
            self.seen.refusals[message["text"]] += 1
            self.ended = "has ended" in message["text"]  # the connection broke before the summary came
            raise ConnectionRefusedError
        return message

    def wrong(self) -> Counter[str]:
        """What differs from an undisturbed run."""
        numbers = Counter(each["number"] for each in self.log)
        total = WINDOWS * EVENTS
        bits = [{key: each[key] for key in self.recording.decisions[0]} for each in self.log]
        return Counter(
            lost=sum(number not in numbers for number in range(WINDOWS)),
            doubled=sum(numbers.values()) - len(numbers),
            disordered=[each["number"] for each in self.log] != sorted(numbers.elements()),
            different=sum(one != other for one, other in zip(bits, self.recording.decisions, strict=False)),
            uncounted=self.summary is not None and (self.summary["events"], self.summary["binned"]) != (total, total),
        )


class Seen:
    """What all clients saw."""

    def __init__(self) -> None:
        self.cuts, self.breaks, self.refusals = 0, Counter(), Counter()
        self.latencies: list[float] = []  # from a window that the camera has to the decision that it completes
        self.late: list[float] = []  # the same, where the client could not send at once because it was resuming


async def run(asked: argparse.Namespace, servers: Servers, recordings: list[Recording]) -> tuple[list[Client], Seen]:
    """All streams at once; servers are killed after equal shares of the decisions."""
    generator, seen = random.Random(asked.seed), Seen()
    places = [(stream, window) for stream in range(asked.streams) for window in range(WINDOWS)]
    cuts: dict[int, set[int]] = {}
    for stream, window in generator.sample(places, asked.cuts):
        cuts.setdefault(stream, set()).add(window)
    clients = [
        Client(servers, recordings[n % RECORDINGS], 1_000 * asked.seed + n, cuts.get(n, set()), seen)
        for n in range(asked.streams)
    ]
    streams = [asyncio.create_task(client.follow(asked.pace)) for client in clients]
    share = asked.streams * WINDOWS / (asked.kills + 1)
    for number in range(asked.kills):
        while sum(len(client.log) for client in clients) < share * (number + 1) and not all(t.done() for t in streams):
            await asyncio.sleep(0.02)
        await servers.kill(number % SERVERS)
    await asyncio.gather(*streams)
    return clients, seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("streams", 1_000), ("cuts", 200), ("kills", 20), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pace", type=float, default=14.0, help="seconds between two windows of a stream")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = digits(Path(folder))
        recordings = [Recording(path, seed) for seed in range(RECORDINGS)]
        servers, began = Servers(path, Path(folder) / "sessions", asked.streams + 50), time.perf_counter()
        try:
            for at in range(SERVERS):
                servers.listen(at)
            clients, seen = asyncio.run(asyncio.wait_for(run(asked, servers, recordings), DEADLINE_S))
        finally:
            codes = servers.stop()
        left = len(list((Path(folder) / "sessions").glob("*.npz")))
    wrong = sum((client.wrong() for client in clients), Counter())
    report(clients, seen, servers.kills, wrong, time.perf_counter() - began)
    print(f"sessions   {left} left on disk; exit codes of the servers {codes}")
    return int(bool(wrong) or seen.cuts != asked.cuts or servers.kills != asked.kills or any(codes))


def report(clients: list[Client], seen: Seen, kills: int, wrong: Counter[str], seconds: float) -> None:
    """Print the figures."""
    decisions, resumes = sum(len(client.log) for client in clients), sum(client.connections - 1 for client in clients)
    print(f"{len(clients):,} streams, {seen.cuts} cuts, {kills} kills of one of {SERVERS} servers, in {seconds:.0f} s:")
    faults = ", ".join(f"{wrong[name]} {name}" for name in ("lost", "doubled", "disordered", "different", "uncounted"))
    print(f"decisions  {decisions:,} of {len(clients) * WINDOWS:,}; {faults}")
    print(f"summaries  {sum(client.summary is not None for client in clients):,}")
    print(f"resumed    {resumes:,} connections; {sum(seen.refusals.values())} attempts were refused and repeated")
    for name, found in (("connected", seen.latencies), ("resuming", seen.late), ("all", seen.latencies + seen.late)):
        p50, p99 = (1e3 * np.quantile(found, q) for q in (0.5, 0.99)) if found else (0.0, 0.0)
        print(f"latency    {name}: p50 {p50:,.1f} ms, p99 {p99:,.1f} ms of {len(found):,} windows")
    for text, count in seen.refusals.most_common(3):
        print(f"           {count} × {text}")
    print(f"           load {os.getloadavg()[0]:.0f}, {os.cpu_count()} processors", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
