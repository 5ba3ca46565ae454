"""csv: columns by name, integers to the last bit, and errors that name line and column."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import read_events

from .event_files import csv_bytes, event_arrays


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(event_arrays(65536, 65536, 2**63), st.permutations(["t", "x", "y", "p"]))
def test_columns_in_any_order(tmp_path, events, columns):
    path = tmp_path / "a.csv"
    path.write_bytes(csv_bytes(events, ",".join(columns)))
    recording = read_events(path)
    assert recording.events.tolist() == events.tolist()
    assert (recording.format, recording.notes) == ("csv", ())


@pytest.mark.parametrize(
    "text",
    ["t,x\n5,7\n", "x , T\r\n7, 5\r\n\r\n", '\ufeff"t","x"\n+5,007\n', "t,x\n5,7"],
)
def test_spellings_of_one_event(tmp_path, text):
    (tmp_path / "a.csv").write_bytes(text.encode())
    recording = read_events(tmp_path / "a.csv")
    assert recording.events.tolist() == [(5, 7, 0, 0)]
    assert recording.notes == ("no column y and p: taken as 0",)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("t,x@346,y@260,on\n5,7,8,1\n6,1,2,0\n", (346, 260)),  # as faery writes it
        ("timestamp,x,y,polarity\n5,7,8,1\n6,1,2,-1\n", None),
        ("Polarity , y@260, x@346, Time\n1,8,7,5\n-1,2,1,6\n", (346, 260)),
        ("ts,x@346,y,pol\n5,7,8,1\n6,1,2,-1\n", None),
        ("t,x@0,y@260,p\n5,7,8,1\n6,1,2,-1\n", None),
    ],
)
def test_common_names_of_columns_and_polarities(text, size, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    recording = read_events(tmp_path / "a.csv")
    assert recording.events.tolist() == [(5, 7, 8, 1), (6, 1, 2, 0)]
    sensor = recording.sensor
    assert (None if sensor is None else (sensor.width, sensor.height)) == size


def test_a_name_and_its_other_name_are_one_column_twice(tmp_path):
    (tmp_path / "a.csv").write_text("t,time,x\n1,2,3\n")
    with pytest.raises(AxonnxError, match="each once"):
        read_events(tmp_path / "a.csv")


def test_what_faery_writes_is_read(tmp_path):
    faery = pytest.importorskip("faery")
    array = np.zeros(3, faery.EVENTS_DTYPE)
    array["t"], array["x"], array["on"] = (1, 2, 3), (4, 5, 6), (1, 0, 1)
    faery.events_stream_from_array(array, (8, 9)).to_file(tmp_path / "a.csv")
    recording = read_events(tmp_path / "a.csv")
    assert recording.events.tolist() == [(1, 4, 0, 1), (2, 5, 0, 0), (3, 6, 0, 1)]
    assert (recording.sensor.width, recording.sensor.height) == (8, 9)


def test_a_header_alone_is_a_recording_without_events(tmp_path):
    (tmp_path / "a.csv").write_text("t,x,y,p\n")
    assert len(read_events(tmp_path / "a.csv").events) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2,3,0\n", ["line 1", "found numbers, '1,2,3,0'", "Add such a line at the top", "t,x,y,p in any order"]),
        ("t,x,y,charge\n", ["line 1", "charge", "remove all others"]),
        ("x,y,p\n1,2,0\n", ["line 1", "t and x are required"]),
        ("t,x,x\n", ["line 1", "each once"]),
        ("\n", ["line 1"]),
        ("t,x\n1,2\n3\n", ["line 3: found 1 values; expected 2 values: t,x"]),
        ("t,x\n1,2,3\n", ["line 2: found 3 values"]),
        ("t,x,y,p\n1,2\n3,4\n", ["line 2: found 2 values; expected 4"]),
        ("t,x\n1,2\n\n3,4\n", ["line 3: found an empty line"]),
        ("t,x\n0.5,2\n", ["line 2, column t: found '0.5'; expected a whole number", "microseconds"]),
        ("t,x\n1,2\n1,abc\n", ["line 3, column x: found 'abc'"]),
        ("t,x\n1,\n", ["line 2, column x: found ''"]),
        ("t,x\n1,7\x1f\n", ["line 2, column x: found '7"]),
        ("t,x\n10000000000000000000,1\n", ["line 2, column t: found '10000000000000000000'", "64 bits"]),
        ("t,x\n1,1-2\n", ["line 2, column x: found '1-2'"]),
        ("t,x\n1,2 3\n", ["line 2, column x: found '2 3'"]),
        ("t,x\n1,#2\n", ["line 2, column x: found '#2'"]),
        ("t,x\n1,1_000\n", ["line 2, column x: found '1_000'"]),
        ("t,x\n1,٣\n", ["line 2, column x: found '٣'"]),
        ("t,x\n9223372036854775808,1\n", ["line 2, column t: found '9223372036854775808'", "64 bits"]),
        (f"t,x\n-9223372036854775808,1\n1,{'9' * 5000}\n", ["line 3, column x"]),
        ("t,x\n1,2\n1,70000\n", ["line 3, column x: found 70000; expected 0 to 65535"]),
        ("t,x,p\n1,2,-2\n", ["line 2, column p: found -2; expected 0 to 255"]),
    ],
)
def test_wrong_text_is_refused_with_line_and_column(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(AxonnxError, match=r"a.csv: ") as error:
        read_events(tmp_path / "a.csv")
    for word in words:
        assert error.match(word)


def test_other_encodings_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"t,x\n\xff\xfe,1\n")
    with pytest.raises(AxonnxError, match="byte 4: is not UTF-8 text"):
        read_events(tmp_path / "a.csv")
