"""Count a stream's events with numpy, as `axonnx_push` in native/events.c does; used when there is no core."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.completed import NOTHING, BinContents, CellList
from axonnx.runtime.binning.open_bin import FULL, OpenBin
from axonnx.runtime.binning.rules import bin_index, cells_of, clip_counts
from axonnx.runtime.events.arrays import Events

Cells = NDArray[np.int64]
Bins = NDArray[np.uint64]


def push(events: Events, at: OpenBin) -> BinContents:
    """Count events, and return the bins that they complete."""
    at.events += len(events)
    times, cell = _on_sensor(events, at)
    if len(times) == 0:
        return BinContents()
    if not at.known:
        at.origin, at.known = int(times[0]), 1
        at.anchor = at.origin
    if at.most:
        return _push_one_by_one(times, cell, at)
    index, cell, clock, touched = _place(times, cell, at)
    first_open = int(np.searchsorted(index, np.uint64(clock)))
    ended = BinContents() if clock == at.bin else _complete(clock, index[:first_open], cell[:first_open], at)
    _add(cell[first_open:], at)
    at.touched |= touched
    return ended


def close(stop: int, at: OpenBin) -> BinContents:
    """Complete the open bin, and make bin `stop` the open one."""
    return _complete(stop, np.empty(0, np.uint64), np.empty(0, np.int64), at)


def _push_one_by_one(times: NDArray[np.int64], cell: Cells, at: OpenBin) -> BinContents:
    """Count events where a number of them ends a bin, so that each one may move the bins of all later ones."""
    counted, bins, ends = list[int](), list[int](), dict[int, int]()
    index, begin, count, anchor, base = at.bin, at.begin, at.in_bin, at.anchor, at.base
    for number, t in enumerate(times.tolist()):
        if t < at.origin:
            at.before += 1
            continue
        if t < begin:
            at.late += 1
            continue
        passed = (t - begin) // at.bin_us
        if at.last >= 0:
            passed = min(passed, at.last - index)
        if passed:
            ends[index] = begin + at.bin_us
            index, begin, count = index + passed, begin + passed * at.bin_us, 0
        if index == at.last:
            at.after += 1
            continue
        counted.append(number)
        bins.append(index)
        count += 1
        if count == at.most:
            ends[index] = t
            index, begin, count = index + 1, t, 0
            anchor, base = begin, index
    found, which = np.array(bins, np.uint64), cell[counted]
    first_open = int(np.searchsorted(found, np.uint64(index)))
    ended = BinContents()
    if index != at.bin:
        ended = _complete(index, found[:first_open], which[:first_open], at, ends)
    _add(which[first_open:], at)
    at.anchor, at.base, at.in_bin, at.touched = anchor, base, count, count > 0
    return ended


def _on_sensor(events: Events, at: OpenBin) -> tuple[NDArray[np.int64], Cells]:
    """Return time and cell of the events on the sensor."""
    cell, off_sensor, bad_polarity = cells_of(events, at.binning)
    strange = off_sensor | bad_polarity
    at.off_sensor += np.count_nonzero(off_sensor)
    at.bad_polarity += np.count_nonzero(bad_polarity)
    return (events["t"][~strange], cell[~strange]) if strange.any() else (events["t"], cell)


def _place(times: NDArray[np.int64], cell: Cells, at: OpenBin) -> tuple[Bins, Cells, int, bool]:
    """Return bin (never decreasing) and cell of the valid events, the open bin, and whether it was touched."""
    index, before = bin_index(times, np.array([at.origin], np.int64), at.binning.bin_us)
    index[before] = 0
    after = np.zeros(len(times), np.bool_)
    if at.last >= 0:
        index = np.minimum(index, np.uint64(at.last))
        after = index == np.uint64(at.last)
    clock = np.maximum(np.maximum.accumulate(index), np.uint64(at.bin))
    late = (index < clock) & ~before
    wrong = before | after | late
    now = int(clock[-1])
    touched = now != at.last and (now > at.bin or bool(np.any((index == clock) & ~before)))
    at.before += np.count_nonzero(before)
    at.after += np.count_nonzero(after)
    at.late += np.count_nonzero(late)
    return (index[~wrong], cell[~wrong], now, touched) if wrong.any() else (index, cell, now, touched)


def _add(cell: Cells, at: OpenBin) -> None:
    """Count events into the open bin; add what a full cell cannot hold to the surplus."""
    found, more = np.unique(cell, return_counts=True)
    counts = at.counts[found].astype(np.int64) + more
    at.counts[found] = np.minimum(counts, FULL)
    at.surplus += int(np.maximum(counts - FULL, 0).sum())


def _complete(
    stop: int, index: Bins, cell: Cells, at: OpenBin, ends: Mapping[int, int] = MappingProxyType({})
) -> BinContents:
    """Complete all bins before `stop`; the events not yet counted come in ascending order of bins.

    `ends` says where bins ended if events can end them.
    """
    frame_end = ends.get(at.bin, at.begin + at.bin_us) if at.most else 0
    in_open = int(np.searchsorted(index, np.uint64(at.bin), side="right"))
    _add(cell[:in_open], at)
    frame, cut = clip_counts(at.counts.astype(np.int64), at.binning.limit)
    listed, lost = _listed(index[in_open:], cell[in_open:], at) if in_open < len(index) else (NOTHING, 0)
    if ends:
        listed = listed._replace(ends=np.array([ends[each] for each in listed.busy.tolist()], np.int64))
    at.clipped += cut + lost + at.surplus
    at.counts[:], at.surplus, at.in_bin = 0, 0, 0
    at.open(stop)
    in_frame, in_list = int(frame.sum(dtype=np.int64)), int(listed.value.sum(dtype=np.int64))
    return BinContents(frame if in_frame else None, listed, in_frame + in_list, frame_end)


def _listed(index: Bins, cell: Cells, at: OpenBin) -> tuple[CellList, int]:
    """Return the cells of bins, and the number of events that clipping removed."""
    bins, cell, count = _nonzero(index, cell, at.binning.cells)
    value, lost = clip_counts(count, at.binning.limit)
    starts = np.flatnonzero(np.diff(bins, prepend=~bins[:1]))
    return CellList(bins[starts], starts, cell.astype(np.uint32), value), lost


def _nonzero(index: Bins, cell: Cells, cells: int) -> tuple[Bins, Cells, NDArray[np.int64]]:
    """Return bin, cell and count of each non-zero cell, for events in ascending order of bins."""
    # Ranks replace the bins, whose product with `cells` could overflow int64.
    starts = np.flatnonzero(np.diff(index, prepend=~index[:1]))
    rank = np.zeros(len(index), np.int64)
    rank[starts[1:]] = 1
    key, count = np.unique(np.cumsum(rank) * cells + cell, return_counts=True)
    return index[starts][key // cells], key % cells, count
