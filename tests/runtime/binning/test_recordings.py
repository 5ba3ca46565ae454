"""Whole recordings: equal to a binning in plain Python integers, and every event accounted for."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axonnx.runtime.binning.recordings as bin_recordings
from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Outside, Sensor, bin_batch, bin_events
from axonnx.runtime.events.arrays import EVENT, make_events

from ..no_core import without_core
from .binning_strategies import binned_recordings, binnings, events_for
from .naive_binning import bin_slowly

LINE = Binning(sensor=Sensor(width=4, polarities=1), bins=3, bin_us=10)


def assert_equals_slow(binned, events, binning):
    frames, outside, clipped = bin_slowly(events, binning)
    assert binned.frames.dtype == np.uint8
    np.testing.assert_array_equal(binned.frames, frames)
    assert (binned.outside, binned.clipped) == (outside, clipped)


@settings(deadline=None, max_examples=200)
@given(binned_recordings())
def test_equals_plain_python(recording):
    binning, events = recording
    assert_equals_slow(bin_events(events, binning), events, binning)
    with without_core():
        assert_equals_slow(bin_events(events, binning), events, binning)


@settings(deadline=None, max_examples=100)
@given(binned_recordings())
def test_events_in_are_events_binned_and_events_outside(recording):
    binning, events = recording
    binned = bin_events(events, binning)
    assert len(events) == int(binned.frames.sum()) + binned.clipped + binned.outside.total


@settings(deadline=None, max_examples=100)
@given(binned_recordings())
def test_counting_by_sorting_gives_the_same(recording):
    binning, events = recording
    with without_core(), pytest.MonkeyPatch.context() as patch:
        dense = bin_events(events, binning)
        patch.setattr(bin_recordings, "DENSE_CELLS", 0)
        sparse = bin_events(events, binning)
    np.testing.assert_array_equal(dense.frames, sparse.frames)
    assert (dense.outside, dense.clipped) == (sparse.outside, sparse.clipped)


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_a_batch_is_its_recordings_one_by_one(data):
    binning = data.draw(binnings())
    recordings = data.draw(st.lists(events_for(binning, max_size=8), max_size=5))
    offsets = np.cumsum([0, *map(len, recordings)])
    batch = bin_batch(np.concatenate([np.empty(0, EVENT), *recordings]), offsets, binning)
    assert batch.frames.shape == (len(recordings), *binning.shape)
    for i, events in enumerate(recordings):
        alone = bin_events(events, binning)
        np.testing.assert_array_equal(batch.frames[i], alone.frames)
        assert (batch.outside[i], int(batch.clipped[i])) == (alone.outside, alone.clipped)


def test_bin_borders_by_hand():
    events = make_events([-1, 0, 9, 10, 29, 30], [0, 1, 1, 2, 3, 0])
    binned = bin_events(events, LINE)
    expected = np.array([[0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.uint8)
    np.testing.assert_array_equal(binned.frames, expected[:, None, None, :])
    assert binned.outside == Outside(before=1, after=1)
    assert binned.clipped == 0


def test_the_first_event_on_the_sensor_is_the_origin():
    binning = LINE.model_copy(update={"origin": "first"})
    events = make_events([100, 104, 109, 114, 103], [4, 0, 0, 0, 0])
    binned = bin_events(events, binning)
    assert binned.frames[:, 0, 0, 0].tolist() == [2, 1, 0]
    assert binned.outside == Outside(off_sensor=1, before=1)


def test_a_recording_of_strange_events_alone_takes_no_origin_from_its_neighbour():
    binning = LINE.model_copy(update={"origin": "first"})
    events = make_events([5, 900, 901, 2000, 2011], [0, 4, 5, 0, 1])
    batch = bin_batch(events, [0, 1, 3, 3, 5], binning)
    assert batch.frames.sum((2, 3, 4)).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert [each.total for each in batch.outside] == [0, 2, 0, 0]


def test_an_event_with_two_faults_is_counted_once():
    assert bin_events(make_events([-5], [9], 0, 7), LINE).outside == Outside(off_sensor=1)


def test_clip_and_binary_report_what_they_cut():
    events = make_events(np.zeros(300, np.int64), 1)
    full = bin_events(events, LINE)
    assert (full.frames[0, 0, 0, 1], full.clipped) == (255, 45)
    cut = bin_events(events, LINE.model_copy(update={"clip": 254}))
    assert (cut.frames[0, 0, 0, 1], cut.clipped) == (254, 46)
    binary = bin_events(events, LINE.model_copy(update={"values": "binary"}))
    assert (binary.frames[0, 0, 0, 1], binary.clipped) == (1, 299)


def test_down_sampling_sums_pixels_and_merging_sums_polarities():
    binning = Binning(sensor=Sensor(width=4, height=4), bins=1, bin_us=10, downsample=2, polarity="merge")
    events = make_events([0] * 5, [0, 1, 0, 1, 2], [0, 0, 1, 1, 3], [0, 1, 0, 1, 1])
    assert bin_events(events, binning).frames.tolist() == [[[[4, 0], [0, 1]]]]


def test_a_line_of_channels_is_down_sampled_along_its_width():
    binning = Binning(sensor=Sensor(width=700, polarities=1), bins=1, bin_us=10, downsample=5)
    assert binning.shape == (1, 1, 1, 140)
    assert bin_events(make_events([0, 0], [699, 694]), binning).frames[0, 0, 0, 139] == 1


def test_nothing_gives_silent_frames():
    binned = bin_events(make_events([], []), LINE)
    assert binned.frames.shape == LINE.shape
    assert not binned.frames.any()
    assert bin_batch(make_events([], []), [0], LINE).frames.shape == (0, *LINE.shape)


def test_both_ends_of_int64():
    binning = Binning(sensor=Sensor(width=1, polarities=1), bins=2, bin_us=2**61, origin="first")
    events = make_events(np.array([-(2**63), -(2**63) + 2**61, 2**63 - 1], np.int64), 0)
    binned = bin_events(events, binning)
    assert binned.frames.ravel().tolist() == [1, 1]
    assert binned.outside == Outside(after=1)


@pytest.mark.parametrize("offsets", [[], [0], [0, 3], [1, 2], [0, 2, 1, 2], [0.0, 2.0], [[0, 2]]])
def test_wrong_offsets_are_refused(offsets):
    with pytest.raises(AxonnxError, match="end at 2"):
        bin_batch(make_events([0, 0], 0), offsets, LINE)


def test_other_arrays_are_refused():
    with pytest.raises(AxonnxError, match="make_events"):
        bin_events(np.zeros(3), LINE)


def calls_of_binning(events: int) -> int:
    """Python's calls while a batch of 32 recordings is binned."""
    rng, found = np.random.default_rng(0), []
    binning = Binning.over(1_000_000, 100, Sensor(width=700, polarities=1))
    stream = make_events(rng.integers(0, 10**6, events), rng.integers(0, 700, events))
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: found.append(event))
    try:
        batch = bin_batch(stream, np.arange(33) * (events // 32), binning)
    finally:
        sys.setprofile(before)
    assert int(batch.frames.sum()) == events
    return sum(event in ("call", "c_call") for event in found)


def test_binning_does_not_loop_over_events():
    calls_of_binning(3_200)  # what happens once, happens here
    assert 32 < calls_of_binning(320_000) < 2 * calls_of_binning(3_200)  # the interpreter adds a few of its own
