"""``axonnx serve`` beside 1,400 silent and 200 ping-only connections: are 50 streams served and saved?

python -m benchmarks.hostile
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import websockets

from benchmarks.networks import digits
from benchmarks.serving import Recording

BARE, PINGING, HONEST, WINDOWS, MEMORY_MIB = 1_400, 200, 50, 12, 400
TOKEN = "a token of this run"
UPGRADE = (
    "GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {}\r\n\r\n"
)
PINGS = (b"\x89\xfd" + bytes(4) + b"p" * 125) * 100


async def honest(address: str, recording: Recording, found: dict[str, list]) -> None:
    """Send window after window, compare each decision, and wait for the end of the server."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    options = {"proxy": None, "compression": None, "open_timeout": 60, "additional_headers": headers}
    client, attempts = None, 0
    while client is None:  # a connection may have to make room for newer ones before its request is read
        try:
            client = await websockets.connect(f"{address}stream?decisions=0", **options)
        except (OSError, websockets.InvalidHandshake, EOFError):
            attempts += 1
            await asyncio.sleep(0.1)
    found["attempts"].append(attempts)
    async with client:
        await client.recv()
        for window, data in enumerate(recording.messages):
            began = time.perf_counter()
            await client.send(data)
            if window:
                told = json.loads(await client.recv())
                found["right"].append(told["logits"] == recording.logits[window - 1] and told["number"] == window - 1)
                found["latency"].append(time.perf_counter() - began)
            await asyncio.sleep(0.3)
        found["done"].append(True)
        async for text in client:
            found["saved"] += [True] if json.loads(text)["type"] == "saved" else []


async def hostile(port: int, greeting: bytes, flood: bytes) -> None:
    """Hold a connection, never read, and come back whenever it is cut."""
    while True:
        writer = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(greeting)
            while not reader.at_eof():
                writer.write(flood)
                await asyncio.wait_for(writer.drain(), 1) if flood else None
                await asyncio.sleep(0.2)
        except (OSError, TimeoutError):
            pass
        finally:
            if writer is not None:
                writer.close()
        await asyncio.sleep(2)


async def attack(address: str, recording: Recording, process: subprocess.Popen) -> dict[str, list]:
    """Let all at the server at once, and stop it while they are there."""
    found: dict[str, list] = {"right": [], "latency": [], "done": [], "saved": [], "attempts": []}
    port = int(address.rsplit(":", 1)[1].strip("/"))
    half = PINGING // 2  # of those that ping, half have the token, as a user of the server may
    greetings = [(b"", b"")] * BARE + [(UPGRADE.format("wrong").encode(), PINGS)] * half
    greetings += [(UPGRADE.format(TOKEN).encode(), PINGS)] * half
    enemies = [asyncio.create_task(hostile(port, *each)) for each in greetings]
    await asyncio.sleep(3)
    streams = [asyncio.create_task(honest(address.replace("http", "ws"), recording, found)) for _ in range(HONEST)]
    await _until(lambda: len(found["done"]) == HONEST, streams)
    found["MiB"] = [resident(process.pid) >> 20]
    process.terminate()
    await asyncio.gather(*streams)
    for enemy in enemies:
        enemy.cancel()
    await asyncio.gather(*enemies, return_exceptions=True)
    return found


async def _until(reached: Callable[[], bool], tasks: list[asyncio.Task]) -> Awaitable[None] | None:
    while not reached():
        await asyncio.sleep(0.05)
        failed = [task.exception() for task in tasks if task.done() and task.exception()]
        if failed:
            raise failed[0]
    return None


def resident(pid: int) -> int:
    """Return the memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path, sessions = digits(Path(folder)), Path(folder) / "sessions"
        words = ["serve", str(path), "--port", "0", "--sessions", str(sessions), "--memory-mib", str(MEMORY_MIB)]
        environment = {**os.environ, "AXONNX_TOKEN": TOKEN}
        command = [sys.executable, "-m", "axonnx.cli", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
        with subprocess.Popen(command, **pipes) as process:
            address = process.stdout.readline().split(" at ")[1].split()[0]
            urlopen(address + "health").read()
            try:
                found = asyncio.run(attack(address, Recording(path, WINDOWS), process))
            except BaseException:
                process.kill()
                raise
            said, logged = process.communicate(timeout=60)
    expected = HONEST * (WINDOWS - 1)
    p50, p99 = (1e3 * np.quantile(found["latency"], q) for q in (0.5, 0.99))
    print(f"{BARE:,} silent and {PINGING} ping-only connections beside {HONEST} streams:")
    print(f"decisions  {sum(found['right'])} of {expected} with the right bits; p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    print(f"connecting took {max(found['attempts']) + 1} attempts at most")
    print(f"sessions   {len(found['saved'])} of {HONEST} saved at SIGTERM; exit code {process.returncode}")
    print(f"memory     {found['MiB'][0]} MiB of {MEMORY_MIB}; {len(logged):,} bytes logged")
    print(said.strip())
    return int(sum(found["right"]) != expected or len(found["saved"]) != HONEST or found["MiB"][0] > MEMORY_MIB)


if __name__ == "__main__":
    socket.setdefaulttimeout(30)
    raise SystemExit(main())
