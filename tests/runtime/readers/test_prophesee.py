"""EVT 2.0 and DAT: words by hand, clocks that wrap, headers, damage."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import read_events

from .event_files import dat_bytes, event_arrays, evt2_bytes, random_events

EVT2 = b"% evt 2.0\n% end\n"
OFTEN = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(tmp_path, data, name="a.raw", **options):
    (tmp_path / name).write_bytes(data)
    return read_events(tmp_path / name, **options)


def words(*values):
    return np.array(values, "<u4").tobytes()


def test_evt2_words_by_hand(tmp_path):
    recording = read(tmp_path, EVT2 + words(8 << 28 | 3, 1 << 28 | 5 << 22 | 6 << 11 | 7, 2047 << 11 | 2047))
    assert recording.events.tolist() == [(3 * 64 + 5, 6, 7, 1), (3 * 64, 2047, 2047, 0)]
    assert (recording.format, recording.sensor, recording.skipped) == ("evt2", None, {})


def test_evt2_words_that_are_no_events_are_counted(tmp_path):
    data = words(0, 1 << 28, 8 << 28, 0, 10 << 28, 14 << 28, 15 << 28, 15 << 28, 5 << 28)
    recording = read(tmp_path, EVT2 + data)
    assert len(recording.events) == 1
    assert recording.skipped == {
        "event before the first time word": 2,
        "external trigger": 1,
        "extension": 3,
        "reserved word 5": 1,
    }


def test_evt2_time_goes_on_after_five_hours(tmp_path):
    times = (1 << 34) + np.array([-200, -1, 0, 300, 1 << 20])
    recording = read(tmp_path, evt2_bytes(make_events(times, 1, 2)))
    assert recording.events["t"].tolist() == times.tolist()


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (b"% evt 2.0\n", None),
        (b"% format EVT2;height=480;width=640\n% end\n", (640, 480)),
        (b"% evt 2.0\n% geometry 1280x720\n% end\n", (1280, 720)),
        (b"% evt 2.0\n% width 10\n% height 20\n% end\n", (10, 20)),
        (b"% evt 2.0\n% geometry 0x0\n% end\n", None),
    ],
)
def test_headers_state_the_sensor_in_three_ways(tmp_path, header, size):
    recording = read(tmp_path, header + words(8 << 28, 0))
    assert len(recording.events) == 1
    assert recording.sensor == (None if size is None else Sensor(width=size[0], height=size[1]))


def test_a_first_word_that_begins_like_a_comment_is_no_header(tmp_path):
    data = words(0x2520 | 8 << 28 | 0x0A << 16)  # the bytes "% " are 25 20, here in the other order
    assert len(read(tmp_path, b"% evt 2.0\n% end\n" + b"% \x0a\x80" + data).events) == 0


@pytest.mark.parametrize(
    ("data", "name", "text"),
    [
        (EVT2 + bytes(6), "a.raw", "byte 20: the last record has 2 of its 4 bytes"),
        (b"% evt 2.0\n% endianness big\n% end\n", "a.raw", "endianness 'big'; expected little"),
        (b"% evt 9.9\n% end\n", "a.raw", "states EVT 9.9; expected '% evt' 2.0, 3.0"),
        (b"% format EVT21;height=1;width=1\n% end\n", "a.raw", "states EVT 2.1; expected '% evt' 2.0, 3.0"),
        (b"% Date 2020\n", "a.raw", "states no EVT version"),
        (dat_bytes(random_events(3))[:-3], "a.dat", "the last record has 5 of its 8 bytes"),
        (dat_bytes(random_events(3), kind=14), "a.dat", r"event type and size \(14, 8\); expected type 0"),
        (b"% Version 2\n", "a.dat", r"byte 12: found event type and size \(\)"),
        (b"% Version 3\n\x0c\x08", "a.dat", "states version 3; expected '% Version 1' or 2"),
        (b"% Height 3\n\x0c\x08", "a.dat", "states version none"),
    ],
)
def test_damage_is_named(tmp_path, data, name, text):
    with pytest.raises(AxonnxError, match=f"{name}: .*{text}"):
        read(tmp_path, data, name)


def test_a_forced_format_checks_the_header(tmp_path):
    with pytest.raises(AxonnxError, match=r"states EVT 3.0; expected '% evt 2.0'"):
        read(tmp_path, b"% evt 3.0\n", format="evt2")
    with pytest.raises(AxonnxError, match="states no EVT version"):
        read(tmp_path, b"\0\0\0\0", format="evt2")
    with pytest.raises(AxonnxError, match=r"found b'\\x00\\x00'; expected b'% '"):
        read(tmp_path, b"\0\0\0\0", format="dat")


@OFTEN
@given(event_arrays(304, 240, 1 << 32))
def test_dat_round_trip(tmp_path, events):
    for version in (1, 2):
        recording = read(tmp_path, dat_bytes(events, version), "a.dat")
        assert recording.events.tolist() == events.tolist()
        assert recording.sensor == Sensor(width=304, height=240)


def test_dat_time_goes_on_after_an_hour(tmp_path):
    times = (1 << 32) + np.array([-5, 0, 1000])
    assert read(tmp_path, dat_bytes(make_events(times, 1)), "a.dat").events["t"].tolist() == times.tolist()
