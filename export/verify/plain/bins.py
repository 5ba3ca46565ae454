"""Events where bins could go wrong, on the borders of bins and counts: by training, by a stream, and plainly."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.binning.stream import Binner
from axonnx.runtime.events.arrays import make_events

LONGEST = 64  # bins that get events, the last one among them
CLOCK = 1_000_003  # where a clock that began before the recording stands


def check_borders(trained: Binning, deployed: Binning, seed: int) -> str | None:
    """What is wrong with the bins of training or of the file; None where both are those of a plain loop."""
    events = border_events(trained, seed)
    expected = plainly(events, trained)
    found = [
        ("training bins", bin_events(events, trained).frames),
        ("a session bins", _streamed(events, deployed, seed)),
    ]
    for who, frames in found:
        if frames.shape != expected.shape or not np.array_equal(frames, expected):
            return f"{who} events on the borders of bins otherwise than a plain count does"
    return None


def border_events(binning: Binning, seed: int) -> NDArray[np.void]:
    """The first and the last microsecond of bins, every corner of the sensor, one pixel beyond the clip."""
    random = np.random.default_rng(seed)
    sensor, start = binning.sensor, CLOCK if binning.origin == "first" else 0
    bins = np.unique(np.linspace(0, binning.bins - 1, LONGEST).astype(np.int64))
    edges = np.concatenate([bins * binning.bin_us, (bins + 1) * binning.bin_us - 1])
    crowded = edges[len(bins) // 2]
    times = np.sort(np.concatenate([[0], edges, np.repeat(crowded, binning.limit + 3)]))
    x, y, p = (random.choice([0, most - 1], len(times)) for most in (sensor.width, sensor.height, sensor.polarities))
    for axis in (x, y, p):
        axis[times == crowded] = 0
    return make_events(start + times, x, y, p)


def plainly(events: NDArray[np.void], binning: Binning) -> NDArray[np.uint8]:
    """One event at a time, all of them on the sensor and in the window."""
    counts: Counter[tuple[int, ...]] = Counter()
    origin = int(events["t"][0]) if binning.origin == "first" else 0
    merged, rows = binning.polarity == "merge", 1 if binning.sensor.height == 1 else binning.downsample
    for t, x, y, p in events.tolist():
        counts[(t - origin) // binning.bin_us, 0 if merged else p, y // rows, x // binning.downsample] += 1
    frames, most = np.zeros(binning.shape, np.uint8), 1 if binning.values == "binary" else binning.clip
    for cell, count in counts.items():
        frames[cell] = min(count, most)
    return frames


def _streamed(events: NDArray[np.void], binning: Binning, seed: int) -> NDArray[np.uint8]:
    """The bins of a session, its events pushed in pieces."""
    binner, frames = Binner(binning), np.zeros(binning.shape, np.uint8)
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(events), 9))
    ended = [*(binner.push(piece) for piece in np.split(events, cuts)), binner.flush(binning.bins)]
    for first, block in (block for completed in ended for block in completed):
        inside = block[: max(0, binning.bins - first)]
        frames[first : first + len(inside)] = inside
    return frames
