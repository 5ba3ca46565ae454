from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import EVENT, make_events
from axonnx.train.data import recordings as module
from axonnx.train.data.recordings import Recordings, join_events

SENSOR = Sensor(width=10, height=5)


def valid(**changes):
    events = make_events([0, 5, 9, 3, 3], [1, 2, 9, 0, 4], [0, 1, 4, 0, 0], [0, 1, 1, 0, 1])
    fields = {
        "events": events,
        "offsets": np.array([0, 3, 3, 5]),
        "labels": np.array([1, 0, 1]),
        "classes": ("no", "yes"),
        "sensor": SENSOR,
    }
    return Recordings(**fields | changes)


def changed(field, place, value):
    events = valid().events.copy()
    events[field][place] = value
    return events


def test_recordings_are_found_by_index():
    data = valid()
    assert len(data) == 3
    assert [data[index]["t"].tolist() for index in range(3)] == [[0, 5, 9], [], [3, 3]]
    assert data[-1]["x"].tolist() == [0, 4]
    with pytest.raises(IndexError):
        data[3]


def test_a_subset_keeps_order_labels_and_groups():
    part = valid(groups=np.array([7, 8, 9])).subset([2, 0])
    assert part.offsets.tolist() == [0, 2, 5]
    assert part.events["t"].tolist() == [3, 3, 0, 5, 9]
    assert (part.labels.tolist(), part.groups.tolist()) == ([1, 1], [9, 7])
    assert len(valid().subset([])) == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"events": changed("t", 2, 4)}, "event 2 of recording 0 is earlier"),
        ({"events": changed("t", 4, 2)}, "event 1 of recording 2 is earlier"),
        ({"events": changed("t", 0, -1)}, "event 0 of recording 0 has a negative time"),
        ({"events": changed("x", 3, 10)}, "event 0 of recording 2 lies outside the sensor's width 10"),
        ({"events": changed("y", 1, 5)}, "outside the sensor's height 5"),
        ({"events": changed("p", 1, 2)}, "none of the sensor's 2 polarities"),
        ({"sensor": Sensor(width=10, height=5, polarities=1)}, "none of the sensor's 1 polarities"),
        ({"events": np.zeros(5)}, "events are float64"),
        ({"events": np.zeros((5, 1), EVENT)}, "2-d"),
        ({"offsets": np.array([0, 3, 5])}, r"shape \(4,\)"),
        ({"offsets": np.array([0, 3, 3, 5], np.int32)}, "int32"),
        ({"offsets": np.array([0, 3, 2, 5])}, "smallest step -1"),
        ({"offsets": np.array([0, 3, 3, 4])}, "from 0 to 4"),
        ({"offsets": np.array([1, 3, 3, 5])}, "from 1 to 5"),
        ({"labels": np.array([0, 2, 1])}, "label 2 of sample 1 has no class"),
        ({"labels": np.array([0, -1, 1])}, "label -1 of sample 1"),
        ({"labels": np.array([0.0, 1, 1])}, "float64"),
        ({"classes": ("yes", "yes")}, "different names"),
        ({"classes": ()}, "different names"),
        ({"groups": np.array([1, 2])}, r"int64 \(3,\)"),
    ],
)
def test_what_is_no_data_set_is_refused(changes, says):
    with pytest.raises(AxonnxError, match=says):
        valid(**changes)


def test_faults_beyond_the_first_block_are_found(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 2)
    valid()
    for place, time in ((1, 20), (2, 4), (4, 2)):
        with pytest.raises(AxonnxError, match="earlier"):
            valid(events=changed("t", place, time))


@given(st.lists(st.lists(st.integers(0, 2**62), max_size=5), max_size=6))
def test_joining_and_indexing_undo_each_other(times):
    parts = [make_events(sorted(each), np.arange(len(each))) for each in times]
    events, offsets = join_events(parts)
    labels = np.zeros(len(parts), np.int64)
    data = Recordings(events, offsets, labels, ("all",), SENSOR)
    assert all(np.array_equal(data[index], part) for index, part in enumerate(parts))


def test_the_digest_tells_contents_apart():
    data = valid()
    others = [
        replace(data, events=changed("t", 4, 4)),
        replace(data, offsets=np.array([0, 3, 4, 5])),
        replace(data, labels=np.array([0, 0, 1])),
        replace(data, classes=("nein", "ja")),
        replace(data, sensor=Sensor(width=11, height=5)),
        replace(data, groups=np.array([0, 0, 1])),
    ]
    assert data.digest == valid().digest
    assert len({each.digest for each in [data, *others]}) == 7


def test_frames_for_a_loop_of_ones_own_count_the_events_of_each_recording():
    frames = valid().to_frames(bins=2, duration_ms=0.01)
    assert (frames.shape, frames.dtype) == ((3, 2, 2, 5, 10), np.uint8)
    assert [frames[number].sum() for number in range(3)] == [3, 0, 2]
    assert frames[0, 0, 0, 0, 1] == frames[0, 1, 1, 1, 2] == frames[0, 1, 1, 4, 9] == 1
