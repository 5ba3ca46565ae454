"""Events on the borders of bins, binned in a plain loop; and the noise of stochastic files, one number at a time."""

from __future__ import annotations

from binascii import crc32
from collections import Counter
from fractions import Fraction
from math import floor
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.binning.stream import Binner
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.contract import InputContract

MOST_CROWDED = 20_000  # events in one microsecond, so that their number ends a bin
LONGEST = 64  # bins that get events, the last one among them
CLOCK = 1_000_003  # where a clock that began before the recording stands


def check_borders(trained: Binning, deployed: Binning, seed: int) -> str | None:
    """Return what is wrong with the bins of training or of the file; None where both are those of a plain loop."""
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
    """Return the first and the last microsecond of bins, every corner of the sensor, one pixel beyond the clip."""
    random = np.random.default_rng(seed)
    sensor, start = binning.sensor, CLOCK if binning.origin == "first" else 0
    bins = np.unique(np.linspace(0, binning.bins - 1, LONGEST).astype(np.int64))
    edges = np.concatenate([bins * binning.bin_us, (bins + 1) * binning.bin_us - 1])
    crowded = edges[len(bins) // 2]
    crowd = max(binning.limit + 3, 1 + min(binning.most_events or 0, MOST_CROWDED))
    times = np.sort(np.concatenate([[0], edges, np.repeat(crowded, crowd)]))
    x, y, p = (random.choice([0, most - 1], len(times)) for most in (sensor.width, sensor.height, sensor.polarities))
    for axis in (x, y, p):
        axis[times == crowded] = 0
    return make_events(start + times, x, y, p)


def plainly(events: NDArray[np.void], binning: Binning, *, whole: bool = False) -> NDArray[np.uint8]:
    """One event at a time, all of them on the sensor and in the order of time.

    The frames are those of the first window, or with ``whole`` of all windows up to the last event.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    begin = int(events["t"][0]) if binning.origin == "first" else 0
    merged, rows = binning.polarity == "merge", 1 if binning.sensor.height == 1 else binning.downsample
    number, inside = 0, 0  # of the open bin; events in it, if they can end it
    for t, x, y, p in events.tolist():
        while t >= begin + binning.bin_us:
            number, begin, inside = number + 1, begin + binning.bin_us, 0
        counts[number, 0 if merged else p, y // rows, x // binning.downsample] += 1
        inside += 1
        if inside == binning.most_events:
            number, begin, inside = number + 1, t, 0
    last = max(cell[0] for cell in counts) + 1 if counts else 0
    bins = -(-last // binning.bins) * binning.bins if whole else binning.bins
    frames = np.zeros((bins, *binning.shape[1:]), np.uint8)
    most = 1 if binning.values == "binary" else binning.clip
    for cell, count in counts.items():
        if cell[0] < bins:
            frames[cell] = min(count, most)
    return frames


def entering_plainly(frames: NDArray[np.uint8], entering: InputContract) -> NDArray[np.float32]:
    """Frames [T, C, H, W] as the network's input [T, 1, *shape], one number at a time."""
    rows = []
    for frame in frames.reshape(len(frames), -1).tolist():
        total = sum(frame)
        if entering.scaled_to is not None and total:
            # c·S/n to the nearest whole number, halves up
            frame = [min(255, floor(Fraction(c * entering.scaled_to, total) + Fraction(1, 2))) for c in frame]
        rows.append([(c - entering.centre) * entering.unit for c in frame])
    return np.array(rows, np.float32).reshape(len(frames), 1, *entering.shape)


def _streamed(events: NDArray[np.void], binning: Binning, seed: int) -> NDArray[np.uint8]:
    """Return the bins of a session, its events pushed in pieces."""
    binner, frames = Binner(binning), np.zeros(binning.shape, np.uint8)
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(events), 9))
    ended = [*(binner.push(piece) for piece in np.split(events, cuts)), binner.flush(binning.bins)]
    for first, block in (block for completed in ended for block in completed):
        inside = block[: max(0, binning.bins - first)]
        frames[first : first + len(inside)] = inside
    return frames


WORD = 32
MASK = (1 << WORD) - 1
QUANTILES = 2e-6  # by which the shipped quantiles may differ from those of N(0, 1), rounded to float32


def plain_normal(seed: int, sample: int, step: int, layer: str, number: int) -> float:
    """Return ε of one neuron of a layer at one step of one sample.

    Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) turns a counter of four words of 32 bits
    and a key of two into four random words. Here the counter is (number // 4, layer, step, sample), the key is the
    seed; a word's top bit is the sign, its other bits m the tail probability (2m + 1) / 2³³. The quantile is Python's
    own.
    """
    counter = number // 4, crc32(layer.encode()), step, sample
    word = philox_words(counter, (seed & MASK, seed >> WORD))[number % 4]
    tail = (2 * (word & (MASK >> 1)) + 1) / 2**33
    size = -NormalDist().inv_cdf(tail)
    return -size if word >> (WORD - 1) else size


def philox_words(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the four words of Philox-4x32 after ten rounds."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> WORD) ^ b ^ low, right & MASK, (left >> WORD) ^ d ^ high, left & MASK
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return a, b, c, d
