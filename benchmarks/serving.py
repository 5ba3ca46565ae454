"""``axonnx serve`` under load: 1 to 1,000 live streams on loopback, every decision compared with a session's.

python -m benchmarks.serving            prints the tables
python -m benchmarks.serving --write    puts them into docs/serving.md as well
python -m benchmarks.serving --quick    fewer windows
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import websockets

from axonnx.base.files import write_text
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.model import load
from benchmarks.networks import digits
from benchmarks.timing import table

PAGE = Path(__file__).parents[1] / "docs" / "serving.md"
BEGIN, END = "<!-- python -m benchmarks.serving --write: begin -->", "<!-- end -->"
STREAMS = (1, 10, 100, 1000)
WINDOW_US, EVENTS = 300_000, 1_263  # of one window, as a recording of the README has
AT_ONCE = 50  # connections that are being opened


@dataclass
class Load:
    """What the streams of one row saw."""

    streams: int
    sent: int = 0
    counted: int = 0  # events that summaries account for
    decisions: int = 0
    wrong: int = 0  # decisions with other bits than a session's
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0  # seconds of the server
    memory: tuple[int, ...] = ()  # with all streams open, after half of the decisions, after the last


class Recording:
    """Windows of events as messages, and what a session decides on them."""

    def __init__(self, path: Path, windows: int) -> None:
        generator = np.random.default_rng(7)
        model = load(path)
        self.messages, self.logits = [], []
        session = model.session(every_bin=False)
        for window in range(windows):
            t = np.sort(generator.integers(0, WINDOW_US, EVENTS)) + window * WINDOW_US
            x, y, p = (generator.integers(0, most, EVENTS) for most in (16, 16, 2))
            events = make_events(t, x, y, p)
            self.messages.append(to_records(events))
            self.logits += [decision.as_dict()["logits"] for decision in session.push(events)]
        self.logits += [decision.as_dict()["logits"] for decision in session.flush()]
        assert len(self.logits) == windows


class Served:
    """The command in a process of its own."""

    def __init__(self, path: Path) -> None:
        words = [sys.executable, "-m", "axonnx.cli", "serve", str(path), "--port", "0", "--clients", "1100"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split(" at ")[1].split()[0]

    def resident(self) -> int:
        return int(self.metric("resident_bytes"))

    def metric(self, name: str) -> float:
        lines = urlopen(self.address + "metrics").read().decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"axonnx_{name} ")).split()[1])

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0


async def stream(address: str, recording: Recording, load: Load, pause: float, start: asyncio.Event, door) -> None:
    """One client: a window goes out when the decision of the last one has come, ``pause`` seconds apart or at once."""
    async with door:
        socket = await websockets.connect(address, proxy=None, compression=None, ping_interval=None, open_timeout=120)
    await socket.recv()
    load.streams += 1
    number = load.streams
    await start.wait()
    await asyncio.sleep(pause * np.random.default_rng(number).random())
    for window, data in enumerate(recording.messages):
        began = time.perf_counter()
        await socket.send(data)
        load.sent += EVENTS
        if window:  # the first events of a window show that the last one is over
            _decided(json.loads(await socket.recv()), recording.logits[window - 1], load)
            load.latencies.append(time.perf_counter() - began)
        await asyncio.sleep(max(0.0, pause - (time.perf_counter() - began)))
    await socket.send('{"type": "end"}')
    _decided(json.loads(await socket.recv()), recording.logits[-1], load)
    summary = json.loads(await socket.recv())
    load.counted += summary["binned"]
    await socket.close()


def _decided(told: dict, logits: list[float], load: Load) -> None:
    load.decisions += 1
    load.wrong += told["type"] != "decision" or told["logits"] != logits


async def row(path: Path, recording: Recording, count: int, pause: float) -> Load:
    """So many streams at once through a fresh server."""
    server, load = Served(path), Load(0)
    start, door = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
    address = server.address.replace("http", "ws") + "stream"
    tasks = [asyncio.create_task(stream(address, recording, load, pause, start, door)) for _ in range(count)]
    await _until(lambda: load.streams == count, tasks)
    opened, busy = await asyncio.to_thread(server.resident), server.metric("cpu_seconds_total")
    began = time.perf_counter()
    start.set()
    await _until(lambda: 2 * load.decisions >= count * len(recording.messages), tasks)
    half = await asyncio.to_thread(server.resident)
    await asyncio.gather(*tasks)
    load.seconds = time.perf_counter() - began
    load.memory = opened, half, server.resident()
    load.processor = server.metric("cpu_seconds_total") - busy
    server.stop()
    return load


async def _until(reached: Callable[[], bool], tasks: list[asyncio.Task]) -> None:
    while not reached():
        await asyncio.sleep(0.01)
        failed = [task.exception() for task in tasks if task.done() and task.exception()]
        if failed:
            raise failed[0]


def cells(load: Load, windows: int) -> list[str]:
    p50, p99 = (1e3 * np.quantile(load.latencies, q) for q in (0.5, 0.99))
    lost = load.sent - load.counted, load.streams * windows - load.decisions
    memory = " → ".join(f"{held / 2**20:.0f}" for held in load.memory)
    return [
        *(f"{load.streams:,}", f"{load.sent / load.seconds:,.0f}", f"{load.decisions / load.seconds:,.0f}"),
        *(f"{1e3 * load.processor / load.decisions:.2f}", f"{p50:.1f}", f"{p99:.1f}"),
        *(f"{lost[0]} / {lost[1]}", str(load.wrong), memory),
    ]


HEAD = ["streams", "events/s", "decisions/s", "server's processor, ms a decision", "p50 ms", "p99 ms"]
HEAD += ["lost events / decisions", "wrong bits", "MiB"]


def tables(quick: bool) -> str:
    made = []
    with tempfile.TemporaryDirectory() as folder:
        path = digits(Path(folder))
        for title, pause, most in (
            ("As fast as it goes", 0.0, {1: 300, 10: 60, 100: 20, 1000: 6}),
            ("A window a second and stream", 1.0, {1: 8, 10: 8, 100: 8, 1000: 6}),
        ):
            rows = []
            for count in STREAMS:
                windows = 4 if quick else most[count]
                rows.append(cells(asyncio.run(row(path, Recording(path, windows), count, pause)), windows))
                print(title, rows[-1], file=sys.stderr, flush=True)
            made.append(table(title, HEAD, rows))
    return "\n".join(made)


def about() -> str:
    return (
        f"512-128-128-10, windows of 300 ms with {EVENTS:,} events each, one message and one decision a window; server "
        f"and clients are one process each and share {os.cpu_count()} processors of one machine ({platform.machine()}, "
        f"Python {platform.python_version()}), with what else ran there: a load of {os.getloadavg()[0]:.0f} before the "
        f"first row. The processor's time is the server's alone, and does not depend on the others. Latency is what a "
        f"client sees: from sending the message to having the decision. MiB is the server's memory with all streams "
        f"open, after half of the decisions, and after the last.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    text = f"{about()}\n{tables(options.quick)}"
    print(text)
    if options.write:
        page = PAGE.read_text("utf-8")
        head, tail = page.split(BEGIN)[0], page.split(END)[1]
        write_text(PAGE, f"{head}{BEGIN}\n\n{text}\n{END}{tail}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
