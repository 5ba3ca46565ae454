"""N-MNIST and gesture files: five bytes, a clock that wraps, overflow marks."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import read_events

from .event_files import event_arrays, nmnist_bytes, random_events


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(event_arrays(256, 240, 1 << 23))
def test_round_trip(tmp_path, events):
    if len(events):
        (tmp_path / "a.bin").write_bytes(nmnist_bytes(events))
        assert read_events(tmp_path / "a.bin").events.tolist() == events.tolist()


def test_one_event_by_hand(tmp_path):
    (tmp_path / "a.bs2").write_bytes(bytes([7, 15, 0x80 | 0x01, 0x02, 0x8E]))
    assert read_events(tmp_path / "a.bs2").events.tolist() == [(0x01028E, 7, 15, 1)]


def test_recordings_longer_than_the_clock(tmp_path):
    events = random_events(2000, span=30_000_000)
    (tmp_path / "a.bs2").write_bytes(nmnist_bytes(events))
    assert read_events(tmp_path / "a.bs2").events.tolist() == events.tolist()


def test_overflow_marks_move_the_clock_and_are_no_events(tmp_path):
    raw = make_events(np.array([8000, 8191, 5]), [1, 0, 2], [1, 240, 2])
    (tmp_path / "a.bin").write_bytes(nmnist_bytes(raw))
    recording = read_events(tmp_path / "a.bin")
    assert recording.events["t"].tolist() == [8000, 8192 + 5]
    assert recording.skipped == {"clock overflow": 1}


def test_a_file_that_was_cut_off_is_refused(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(13))
    with pytest.raises(AxonnxError, match=r"a.bin: byte 10: the last record has 3 of its 5 bytes.*cut it to 10 bytes"):
        read_events(tmp_path / "a.bin")
