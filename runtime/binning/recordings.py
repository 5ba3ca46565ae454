"""Bin whole recordings, one or many at a time."""

import itertools
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.binning.open_bin import OpenBin
from axonnx.runtime.binning.rules import Outside, bin_index, cells_of, clip_counts, count_outside, true_before
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.binning.stream import Binner
from axonnx.runtime.events.arrays import Events, check_events, sort_events

# Above this many cells a dense int64 histogram takes more memory than the events, so counting sorts them instead.
DENSE_CELLS = 2**22


@dataclass(frozen=True)
class Binned:
    """One recording as frames, with the events that are not in them.

    Attributes:
        frames: Counts, [T, C, H, W].
        outside: Events that are in no frame, by reason.
        clipped: Number of events above the limit, removed by `clip` or `binary`.
    """

    frames: NDArray[np.uint8]  # [T, C, H, W]
    outside: Outside
    clipped: int  # events above the limit, removed by `clip` or `binary`


@dataclass(frozen=True)
class BatchBinned:
    """Several recordings as frames, and for each the events that are not in them."""

    frames: NDArray[np.uint8]  # [N, T, C, H, W]
    outside: tuple[Outside, ...]
    clipped: NDArray[np.int64]  # [N]


def bin_events(events: Events, binning: Binning) -> Binned:
    """Bin one recording, in any order of events.

    Args:
        events: Events of the recording.
        binning: How events become frames.

    Returns:
        The frames, and the counts of events that are not in them.
    """
    batch = bin_batch(events, [0, len(check_events(events))], binning)
    return Binned(batch.frames[0], batch.outside[0], int(batch.clipped[0]))


def bin_batch(events: Events, offsets: ArrayLike, binning: Binning) -> BatchBinned:
    """Bin several recordings at once.

    Args:
        events: Events of all recordings.
        offsets: N + 1 positions; recording i is events[offsets[i]:offsets[i + 1]].
        binning: How events become frames.

    Returns:
        The frames of each recording, and its counts of events that are not in them.

    Raises:
        AxonnxError: If the offsets do not cut the events into recordings.
    """
    edges = _check_offsets(np.asarray(offsets), len(check_events(events)))
    if binning.most_events is not None:
        return _one_by_one(events, edges, binning)
    native = find_function("bin", None, c_void_p, c_void_p, c_int64, c_void_p)
    return _plain(events, edges, binning) if native is None else _native(native, events, edges, binning)


def _one_by_one(events: Events, edges: NDArray[np.int64], binning: Binning) -> BatchBinned:
    """Bin each recording as a stream in the order of time, on which it depends where a bin ends."""
    frames, ended = np.zeros((len(edges) - 1, *binning.shape), np.uint8), []
    for number, (start, stop) in enumerate(itertools.pairwise(edges.tolist())):
        binner = Binner(binning, last=binning.bins)
        for completed in (binner.push(sort_events(events[start:stop])), binner.flush(binning.bins)):
            for first, block in completed:
                frames[number, first : first + len(block)] = block
        ended.append((binner.outside, binner.clipped))
    return BatchBinned(frames, tuple(out for out, _ in ended), np.array([lost for _, lost in ended], np.int64))


def _native(native: Any, events: Events, edges: NDArray[np.int64], binning: Binning) -> BatchBinned:
    """By the core, which leaves Python to other threads meanwhile."""
    frames, ended = np.zeros((len(edges) - 1, *binning.shape), np.uint8), []
    events = np.ascontiguousarray(events)
    source, target, size = address_of(events), address_of(frames), binning.bins * binning.cells
    for number, (start, stop) in enumerate(itertools.pairwise(edges.tolist())):
        at = OpenBin(binning, binning.bins)
        native(at.address, source + events.itemsize * start, stop - start, target + number * size)
        ended.append((at.outside, at.clipped))
    return BatchBinned(frames, tuple(out for out, _ in ended), np.array([lost for _, lost in ended], np.int64))


def _plain(events: Events, edges: NDArray[np.int64], binning: Binning) -> BatchBinned:
    """Bin with numpy."""
    cell, off_sensor, bad_polarity = cells_of(events, binning)
    origins = _origins(events, edges, off_sensor | bad_polarity, binning)
    index, before = bin_index(events["t"], origins, binning.bin_us)
    after = index >= np.uint64(binning.bins)
    wrong = off_sensor | bad_polarity | before | after
    reasons = {"off_sensor": off_sensor, "bad_polarity": bad_polarity, "before": before, "after": after}
    outside = count_outside(reasons, wrong, edges)
    key = index.view(np.int64) * binning.cells + cell
    if any(each.total for each in outside):
        edges = edges - true_before(wrong, edges)
        key = key[~wrong]
    frames, clipped = _histograms(key, edges, binning)
    return BatchBinned(frames.reshape(-1, *binning.shape), outside, clipped)


def _check_offsets(edges: NDArray, count: int) -> NDArray[np.int64]:
    whole = edges.ndim == 1 and edges.dtype.kind in "iu" and len(edges) > 0
    if not whole or edges[0] != 0 or edges[-1] != count or np.any(edges[1:] < edges[:-1]):
        raise AxonnxError(
            f"binning: offsets {np.array2string(edges, threshold=8)} do not cut {count} events into recordings;"
            f" expected integers that start at 0, never decrease, and end at {count}."
        )
    return edges.astype(np.int64)


def _origins(
    events: Events, edges: NDArray[np.int64], strange: NDArray[np.bool_], binning: Binning
) -> NDArray[np.int64]:
    """Return the time of each event's origin, or a single zero.

    The first event of a recording is its first event on the sensor with a known polarity. A recording without such an
    event needs no origin.
    """
    if binning.origin == "zero":
        return np.zeros(1, np.int64)
    known = np.append(np.flatnonzero(~strange), len(events))
    first = known[np.searchsorted(known, edges[:-1])]
    times = np.append(events["t"], 0)[np.where(first < edges[1:], first, len(events))]
    return np.repeat(times, np.diff(edges))


def _histograms(
    key: NDArray[np.int64], edges: NDArray[np.int64], binning: Binning
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return clipped counts [N, T·cells], and the number of events that each recording lost to the limit."""
    size = binning.bins * binning.cells
    frames = np.zeros((len(edges) - 1, size), np.uint8)
    lost = np.zeros(len(edges) - 1, np.int64)
    # Processing one recording at a time keeps the int64 histogram in the processor's cache.
    for i, (start, stop) in enumerate(itertools.pairwise(edges)):
        if size <= DENSE_CELLS:
            frames[i], lost[i] = clip_counts(np.bincount(key[start:stop], minlength=size), binning.limit)
        else:
            cells, counts = np.unique(key[start:stop], return_counts=True)
            frames[i, cells], lost[i] = clip_counts(counts, binning.limit)
    return frames, lost
