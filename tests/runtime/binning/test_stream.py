"""Streams: any chunking gives the frames of the whole recording; silence is free; state is a value."""

import tracemalloc
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binner, Binning, Outside, Sensor, bin_events
from axonnx.runtime.events.arrays import make_events, sort_events

from ..no_core import without_core
from .binning_strategies import binned_recordings
from .naive_binning import slow_bins

LINE = Binning(sensor=Sensor(width=4, polarities=1), bins=3, bin_us=10)
HOUR = 3_600_000_000


def chunks_of(data, events):
    """The events cut at random borders, empty chunks among them."""
    borders = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=8)))
    return np.split(events, borders)


def run(binner, chunks):
    """All runs of a stream in order; a silent run stays one item, so that the ends of int64 can be tested too."""
    return [r for chunk in chunks for r in binner.push(chunk).stretches()] + list(binner.flush().stretches())


def busy_frames(runs):
    """Frame by bin index, of the bins that are not silent."""
    dense = [(r.first + i, f) for r in runs if r.frames is not None for i, f in enumerate(r.frames)]
    return {index: frame for index, frame in dense if frame.any()}


def same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[k], right[k]) for k in left)


@settings(deadline=None, max_examples=150)
@given(st.data(), binned_recordings())
def test_any_chunking_gives_the_frames_of_the_whole(data, recording):
    binning, events = recording
    events = sort_events(events)
    whole = bin_events(events, binning)
    binner = Binner(binning)
    found = busy_frames(run(binner, chunks_of(data, events)))
    expected = {i: frame for i, frame in enumerate(whole.frames) if frame.any()}
    assert same({i: f for i, f in found.items() if i < binning.bins}, expected)
    beyond = sum(int(f.sum()) for i, f in found.items() if i >= binning.bins)
    assert beyond + binner.clipped == whole.outside.after + whole.clipped
    assert binner.outside == replace(whole.outside, after=0)


@settings(deadline=None, max_examples=70)
@given(st.data(), binned_recordings())
def test_chunking_changes_nothing_even_out_of_order(data, recording):
    binning, events = recording
    whole, cut = Binner(binning), Binner(binning)
    assert same(busy_frames(run(whole, [events])), busy_frames(run(cut, chunks_of(data, events))))
    assert (whole.outside, whole.clipped, whole.events) == (cut.outside, cut.clipped, cut.events)


@settings(deadline=None, max_examples=70)
@given(st.data(), binned_recordings())
def test_events_in_are_events_binned_and_events_outside(data, recording):
    binning, events = recording
    binner = Binner(binning)
    found = busy_frames(run(binner, chunks_of(data, events)))
    in_frames = sum(int(frame.sum()) for frame in found.values())
    assert binner.events == len(events) == in_frames + binner.clipped + binner.outside.total


@settings(deadline=None, max_examples=70)
@given(st.data(), binned_recordings())
def test_bins_come_out_once_and_in_order(data, recording):
    binning, events = recording
    at = 0
    for item in run(Binner(binning), chunks_of(data, events)):
        assert item.first == at
        assert item.frames is None or item.frames.shape == (item.count, *binning.frame_shape)
        at += item.count


@settings(deadline=None, max_examples=70)
@given(st.data(), binned_recordings())
def test_a_saved_stream_goes_on_where_it_stood(data, recording):
    binning, events = recording
    binner, straight = Binner(binning), Binner(binning)
    runs = []
    for chunk in chunks_of(data, events):
        saved = binner.save()
        binner.push(events)  # what happens after saving must not reach into the saved value
        binner = Binner(binning, saved)
        runs += binner.push(chunk).stretches()
    runs += binner.flush().stretches()
    assert same(busy_frames(runs), busy_frames(run(straight, [events])))
    assert (binner.outside, binner.clipped, binner.events) == (straight.outside, straight.clipped, straight.events)


PAIRS = LINE.model_copy(update={"most_events": 2})


@settings(deadline=None, max_examples=150)
@given(st.data(), binned_recordings())
def test_bins_end_where_a_plain_clock_says_in_any_chunks(data, recording):
    binning, events = recording
    events = sort_events(events)
    events = events[(events["x"] < binning.sensor.width) & (events["y"] < binning.sensor.height)]
    events = events[(events["p"] < binning.sensor.polarities) & (events["t"] >= 0)]
    origin = 0 if binning.origin == "zero" or not len(events) else int(events["t"][0])
    numbers, ends = slow_bins(events["t"].tolist(), binning, origin)
    for without in (False, True):
        with without_core() if without else nullcontext():
            binner, found = Binner(binning), {}
            for chunk in chunks_of(data, events):
                completed = binner.push(chunk)
                for number in set(numbers):
                    if completed.first <= number < completed.stop:
                        found[number] = binner.end_us(completed, number)
        assert found == ends
        assert binner.bin == (max([number + 1 for number in ends] + numbers[-1:]) if numbers else 0)


def test_bins_that_end_with_their_events_by_hand():
    binner = Binner(PAIRS)
    first = binner.push(make_events([3, 4], [1, 1]))  # the second event ends the bin, at once
    assert (first.count, binner.end_us(first, 0), binner.reached_us) == (1, 4, 4)
    assert not binner.push(make_events([4], [2]))  # equal times: the third event is in the next bin, which begins at 4
    assert not binner.advance(13)
    second = binner.advance(14)
    assert (second.count, binner.end_us(second, 1)) == (1, 14)
    rest = binner.push(make_events([40, 41, 41, 50], [0, 0, 3, 3]))
    assert [(run.first, run.count) for run in rest.stretches()] == [(2, 4)]
    assert [binner.end_us(rest, number) for number in (2, 3, 4, 5)] == [24, 34, 41, 50]
    last = binner.push(make_events([51, 49], [3, 3]))
    assert binner.outside == Outside(late=1)
    frames = [frame[0, 0].tolist() for _, block in [*rest, *last, *binner.flush()] for frame in block]
    assert frames == [[0, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 1]]


def test_one_event_at_a_time_by_hand():
    binner = Binner(LINE)
    assert not binner.push(make_events([3], [1]))
    assert not binner.push(make_events([9], [1]))
    (block,) = binner.push(make_events([25], [2]))
    assert block.first == 0
    assert block.frames[:, 0, 0].tolist() == [[0, 2, 0, 0], [0, 0, 0, 0]]
    ((first, frames),) = binner.flush()
    assert (first, frames[:, 0, 0].tolist()) == (2, [[0, 0, 1, 0]])
    assert not binner.flush()


def test_indices_grow_past_the_bins_of_a_recording():
    binner = Binner(LINE)
    blocks = [*binner.push(make_events([5, 1005], [0, 3])), *binner.flush()]
    assert sum(len(block.frames) for block in blocks) == 101
    assert blocks[-1].frames[-1, 0, 0, 3] == 1


def test_late_events_are_counted_and_those_of_the_open_bin_are_not_late():
    binner = Binner(LINE)
    binner.push(make_events([15, 11, 9], [0, 0, 0]))
    assert binner.outside == Outside(late=1)
    ((_, frames),) = binner.flush()
    assert frames[0, 0, 0, 0] == 2


def test_events_for_a_flushed_bin_are_late():
    binner = Binner(LINE)
    binner.push(make_events([5], [0]))
    assert binner.flush().count == 1
    binner.push(make_events([6], [0]))
    assert binner.outside == Outside(late=1)
    assert binner.flush().count == 0


def test_events_before_the_origin_open_no_bin():
    binner = Binner(LINE)
    binner.push(make_events([-6], [0]))
    assert binner.outside == Outside(before=1)
    assert binner.flush().count == 0


def test_an_event_off_the_sensor_is_counted_and_otherwise_as_if_it_had_not_been():
    binner = Binner(LINE.model_copy(update={"origin": "first"}))
    assert binner.push(make_events([0, 10, 30, 12], [4, 0, 4, 1])).count == 0
    assert (binner.origin, binner.outside) == (10, Outside(off_sensor=2))
    ((_, frames),) = binner.flush()
    assert frames[0, 0, 0].tolist() == [1, 1, 0, 0]


@settings(deadline=None, max_examples=150)
@given(st.data(), binned_recordings())
def test_a_stream_of_one_window_is_the_recording_to_the_last_count(data, recording):
    binning, events = recording
    events = sort_events(events)
    whole, binner = bin_events(events, binning), Binner(binning, last=binning.bins)
    pushed = [r for chunk in chunks_of(data, events) for r in binner.push(chunk).stretches()]
    found = busy_frames([*pushed, *binner.flush(binning.bins).stretches()])
    assert same(found, {i: frame for i, frame in enumerate(whole.frames) if frame.any()})
    assert (binner.outside, binner.clipped, binner.events) == (whole.outside, whole.clipped, len(events))
    assert binner.bin == binning.bins
    assert binner.advance(2**62).count == binner.flush().count == 0


def test_flush_fills_up_a_window_with_silence():
    binner = Binner(LINE.model_copy(update={"origin": "first"}))
    binner.push(make_events([500], [1]))
    ((first, frames),) = binner.flush(bins=LINE.bins)
    assert (first, frames.shape) == (0, LINE.shape)
    np.testing.assert_array_equal(frames, bin_events(make_events([0], [1]), LINE).frames)


def test_flush_of_nothing():
    assert Binner(LINE).flush().count == 0
    assert [block.frames.shape for block in Binner(LINE).flush(bins=3)] == [LINE.shape]


def test_the_clock_completes_bins_without_events():
    binner = Binner(LINE)
    binner.push(make_events([5], [0]))
    assert binner.advance(9).count == 0
    assert binner.advance(10).count == 1
    assert binner.advance(35).count == 2
    assert binner.advance(-5).count == 0
    assert binner.flush().count == 0
    assert Binner(LINE.model_copy(update={"origin": "first"})).advance(10**6).count == 0


def test_hours_of_silence_cost_no_memory():
    binning = Binning(sensor=Sensor(width=128, height=128), bins=10, bin_us=1000)
    binner = Binner(binning)
    tracemalloc.start()
    completed = binner.push(make_events([0, 5 * HOUR, 6 * HOUR], [1, 2, 3]))
    runs = list(completed.stretches())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert completed.count == 6 * 3_600_000
    assert [run.frames is None for run in runs] == [False, True, False, True]
    assert runs[2].first == 5 * 3_600_000
    assert runs[2].frames[0, 0, 0, 2] == 1
    assert peak < 3 * 256 * binning.cells


def test_blocks_are_bounded_in_bins_and_in_bytes():
    small = Binner(LINE).push(make_events([0, 10 * 1000], [0, 0]))
    assert [len(frames) for _, frames in small] == [256, 256, 256, 232]
    large = Binning(sensor=Sensor(width=1280, height=720), bins=1, bin_us=1)
    completed = Binner(large).push(make_events([0, 5, 12], [0, 0, 0]))
    assert max(frames.nbytes for _, frames in completed) <= 2**24


def test_long_streams_keep_memory_flat():
    binner = Binner(LINE)
    tracemalloc.start()
    for second in range(0, 400, 2):
        times = second * 10**6 + np.arange(0, 10**6, 2000)
        binner.push(make_events(times, np.arange(500) % 4))
        if second == 100:
            tracemalloc.reset_peak()
            early = tracemalloc.get_traced_memory()[0]
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 10_000


def test_both_ends_of_int64():
    binning = Binning(sensor=Sensor(width=1, polarities=1), bins=1, bin_us=1, origin="first")
    binner = Binner(binning)
    ends = make_events(np.array([-(2**63), 2**63 - 1], np.int64), 0)
    runs = [*binner.push(ends).stretches(), *binner.flush().stretches()]
    assert [(run.first, run.frames is None) for run in runs] == [(0, False), (256, True), (2**64 - 1, False)]
    with pytest.raises(AxonnxError, match="start a new Binner"):
        binner.push(make_events([0], 0))
    with pytest.raises(AxonnxError, match="beyond the int64 times"):
        Binner(LINE).flush(bins=2**64 + 1)


def test_a_state_of_another_binning_is_refused():
    other = Binning(sensor=Sensor(width=5, polarities=1), bins=3, bin_us=10)
    with pytest.raises(AxonnxError, match=r"shape \(4,\); expected \(5,\)"):
        Binner(other, Binner(LINE).save())
