"""AEDAT 3.1: round trips through packets, other packets counted, damage named by its byte."""

import pytest
from hypothesis import HealthCheck, given, settings

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.readers import read_events

from .event_files import AEDAT31_HEADER, aedat31_bytes, aedat31_packet, event_arrays, polarity_record

START = len(AEDAT31_HEADER)
EVENT = polarity_record(5, 6, 7, 1)


def read(tmp_path, data, **options):
    (tmp_path / "a.aedat").write_bytes(data)
    return read_events(tmp_path / "a.aedat", **options)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(event_arrays(1 << 15, 1 << 15, 1 << 33))
def test_round_trip(tmp_path, events):
    recording = read(tmp_path, aedat31_bytes(events))
    assert recording.events.tolist() == events.tolist()
    assert recording.format == "aedat3.1"
    assert recording.skipped == {}


def test_the_sensor_is_that_of_the_source(tmp_path):
    assert read(tmp_path, AEDAT31_HEADER + aedat31_packet([EVENT])).sensor == Sensor(width=128, height=128)
    assert read(tmp_path, AEDAT31_HEADER + aedat31_packet([EVENT], source=3)).sensor is None


def test_other_packets_and_invalid_events_are_counted(tmp_path):
    data = AEDAT31_HEADER + b"".join(
        [
            aedat31_packet([bytes(8)] * 3, kind=0),
            aedat31_packet([EVENT, polarity_record(6, 1, 1, 0, valid=0)]),
            aedat31_packet([EVENT], source=2),
            aedat31_packet([bytes(36)], kind=3, size=36, offset=4),
            aedat31_packet([bytes(12)], kind=77, size=12),
        ]
    )
    recording = read(tmp_path, data)
    assert recording.events.tolist() == [(5, 6, 7, 1)]
    assert recording.skipped == {
        "special": 3,
        "polarity of source 2": 1,
        "inertial": 1,
        "type 77": 1,
        "not valid": 1,
    }


def test_room_that_a_packet_does_not_use_is_passed_over(tmp_path):
    data = AEDAT31_HEADER + aedat31_packet([EVENT, bytes(8)], number=1) + aedat31_packet([EVENT])
    assert len(read(tmp_path, data).events) == 2


def test_no_packets(tmp_path):
    assert len(read(tmp_path, AEDAT31_HEADER).events) == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (AEDAT31_HEADER[:-8], ["header ends without #!END-HEADER", "cut off"]),
        (AEDAT31_HEADER + bytes(10), [f"byte {START}", "28 bytes begins, but only 10 bytes follow"]),
        (
            AEDAT31_HEADER + aedat31_packet([EVENT] * 2)[:-3],
            [f"byte {START}", "44 bytes begins, but only 41 bytes follow"],
        ),
        (AEDAT31_HEADER + aedat31_packet([EVENT], number=2), ["'number': 2", "number ≤ capacity"]),
        (AEDAT31_HEADER + aedat31_packet([EVENT], size=0), ["'size': 0", "damaged"]),
        (AEDAT31_HEADER + aedat31_packet([bytes(16)], size=16), ["'size': 16", "size 8"]),
        (AEDAT31_HEADER + aedat31_packet([EVENT], offset=0), ["'time_offset': 0"]),
        (AEDAT31_HEADER + aedat31_packet([EVENT], overflow=-1), ["'overflow': -1"]),
        (AEDAT31_HEADER + aedat31_packet([polarity_record(-1, 0, 0, 0)]), [f"byte {START}", "time is negative"]),
    ],
)
def test_damage_is_named_by_its_byte(tmp_path, data, words):
    with pytest.raises(AxonnxError, match=r"a.aedat: ") as error:
        read(tmp_path, data)
    for word in words:
        assert error.match(word)


def test_other_versions_are_refused(tmp_path):
    data = AEDAT31_HEADER.replace(b"3.1", b"3.0")
    with pytest.raises(AxonnxError, match=r"found b'#!AER-DAT3.0'; expected b'#!AER-DAT3.1'"):
        read(tmp_path, data, format="aedat3.1")
    with pytest.raises(AxonnxError, match=r"unknown format: .* expected one of npz \(.npz\)"):
        read(tmp_path, data)
