"""The way of events on one CPU: into a session, into a thousand sessions, and out of files beside other readers.

python -m benchmarks.events            prints the tables
python -m benchmarks.events --write    writes them to docs/benchmarks-events.md as well
python -m benchmarks.events --quick    fewer events
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from axonnx.runtime.events.arrays import Events, make_events
from axonnx.runtime.model import Model, load
from benchmarks import readers
from benchmarks.machine import machine
from benchmarks.networks import camera
from benchmarks.timing import table

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-events.md"
CHUNK = 1000
PER_BIN = (100, 1_000, 10_000)


def some_events(model: Model, count: int, per_bin: int, seed: int = 0) -> list[Events]:
    """Chunks of events at random pixels, so many in a bin on average."""
    binning, rng = model.contract.input.binning, np.random.default_rng(seed)
    assert binning is not None
    t = np.sort(rng.integers(0, max(1, count * binning.bin_us // per_bin), count))
    sensor = binning.sensor
    x, y, p = (rng.integers(0, most, count) for most in (sensor.width, sensor.height, sensor.polarities))
    events = make_events(t, x, y, p)
    return [events[at : at + CHUNK] for at in range(0, count, CHUNK)]


def seconds(model: Model, chunks: list[Events], every_bin: bool, sessions: int = 1) -> float:
    """The best processor time of three to push every chunk into each of many sessions, in turns."""
    best = np.inf
    for _ in range(3):
        made = [model.session(every_bin=every_bin) for _ in range(sessions)]
        for session in made:
            session.warm_up()
        began = time.process_time()
        for chunk in chunks:
            for session in made:
                session.push(chunk)
        best = min(best, time.process_time() - began)
    return float(best)


def engine_seconds(model: Model, chunks: list[Events]) -> float:
    """What the network alone takes for the same bins, in one call for each window."""
    binning = model.contract.input.binning
    assert binning is not None
    events = np.concatenate(chunks)
    bins = int(events["t"][-1]) // binning.bin_us + 1
    frames = np.zeros((bins, *binning.frame_shape), np.uint8)
    place = (
        events["t"] // binning.bin_us,
        events["p"],
        events["y"] // binning.row_step,
        events["x"] // binning.downsample,
    )
    np.add.at(frames, place, 1)
    windows = [model.prepare(frames[at : at + binning.bins, None]) for at in range(0, bins, binning.bins)]
    times = []
    for _ in range(4):
        began = time.process_time()
        for window in windows:
            model.run(window)
        times.append(time.process_time() - began)
    return min(times)


def pushing(model: Model, count: int) -> str:
    """One session."""
    rows = []
    for per_bin in PER_BIN:
        chunks = some_events(model, count, per_bin)
        alone = engine_seconds(model, chunks)
        for every_bin in (True, False):
            taken = seconds(model, chunks, every_bin)
            rows.append(
                [
                    f"{per_bin:,}",
                    "every bin" if every_bin else "every window",
                    f"{count / taken / 1e6:.1f}",
                    f"{1e6 * taken / len(chunks):.1f}",
                    f"{1e6 * alone / len(chunks):.1f}",
                ]
            )
    head = ["events a bin", "a decision for", "Mevents/s", "µs a push", "of these the network alone"]
    network = f"128 × 128 × 2 down-sampled by 4 → 64 → 11, engine {model.engine.name}"
    title = f"`session.push` of {CHUNK:,} events, one thread; {network}"
    return table(title, head, rows)


def many(model: Model, count: int) -> str:
    """A thousand sessions, which take turns."""
    rows = []
    for sessions in (1, 10, 100, 1000):
        chunks = some_events(model, max(20 * CHUNK, count // sessions), 1_000)
        taken = seconds(model, chunks, every_bin=True, sessions=sessions)
        rows.append([f"{sessions:,}", f"{sessions * sum(map(len, chunks)) / taken / 1e6:.1f}"])
    title = "Many sessions of one network in turns, a push of 1,000 events each; 1,000 events a bin"
    return table(title, ["sessions", "Mevents/s, all together"], rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="fewer events")
    chosen, _ = parser.parse_known_args(arguments)
    count, recorded = (200_000, 1_000_000) if chosen.quick else (2_000_000, 20_000_000)
    torch.set_num_threads(1)
    parts = [
        "# Event speed\n",
        "Made by `python -m benchmarks.events --write`. Times are the processor's, of one thread; the best of three.\n",
        machine("numpy", "faery", "expelliarmus"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = load(camera(Path(folder)))
        gc.collect()
        gc.freeze()  # what torch has made, which wrote the file, is no part of a runtime
        for make in (
            lambda: pushing(model, count),
            lambda: many(model, count),
            lambda: readers.compared(Path(folder), recorded),
        ):
            parts.append(make())
            print(parts[-1], flush=True)
    if chosen.write:
        PAGE.write_text("\n".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
