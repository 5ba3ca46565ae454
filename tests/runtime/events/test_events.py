"""The event type: what fits is kept to the bit, what does not is refused with a text that helps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, check_events, is_sorted, make_events, sort_events

INT64 = st.integers(-(2**63), 2**63 - 1)


def test_layout_is_thirteen_bytes_little_endian():
    events = make_events([1], [2], [3], [1])
    assert EVENT.itemsize == 13
    assert events.tobytes() == bytes([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1])


def test_single_numbers_stand_for_all_events():
    events = make_events([5, 6, 7], 4, p=1)
    assert events["x"].tolist() == [4, 4, 4]
    assert events["y"].tolist() == [0, 0, 0]
    assert events["p"].tolist() == [1, 1, 1]


def test_no_events():
    assert len(make_events([], [])) == 0
    assert is_sorted(make_events([], []))


@settings(deadline=None)
@given(st.lists(st.tuples(INT64, st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 255)), min_size=1))
def test_every_value_of_the_fields_is_kept(rows):
    t, x, y, p = zip(*rows, strict=True)
    events = make_events(np.array(t, np.int64), x, y, p)
    assert events.tolist() == rows


def test_whole_floats_and_booleans_are_exact():
    events = make_events(np.array([0.0, 2.0**53]), np.array([1.0, 2.0]), 0, np.array([True, False]))
    assert events["t"].tolist() == [0, 2**53]
    assert events["p"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"t": [0, 1.5]}, [r"t\[1\] is 1.5", "whole number", "microseconds"]),
        ({"t": [0, np.nan]}, [r"t\[1\] is nan", "finite"]),
        ({"t": [np.inf, 0]}, [r"t\[0\] is inf", "finite"]),
        ({"t": np.array([0, 2**63], np.uint64)}, [r"t\[1\] is 9223372036854775808", "9223372036854775807"]),
        ({"t": np.array([0, 2.0**63])}, [r"t\[1\]", "9223372036854775807"]),
        ({"t": [0, 2**70]}, ["t is of type object"]),
        ({"t": ["0", "1"]}, ["t is of type <U1", "int64"]),
        ({"x": [0, -1]}, [r"x\[1\] is -1", "0 to 65535", "1 of 2"]),
        ({"x": [65536, 0]}, [r"x\[0\] is 65536", "0 to 65535"]),
        ({"x": [0.5, 0.0]}, [r"x\[0\] is 0.5", "whole number"]),
        ({"y": 70000}, [r"y\[0\] is 70000", "0 to 65535"]),
        ({"p": [256, -3]}, [r"p\[0\] is 256", "0 to 255", "2 of 2"]),
        ({"x": [1, 2, 3]}, [r"x has shape \(3,\)", "2 times", r"\(2,\)"]),
        ({"t": 5}, ["t has shape", "one time for each event"]),
    ],
)
def test_what_does_not_fit_is_refused(fields, words):
    with pytest.raises(AxonnxError) as error:
        make_events(**({"t": [0, 1], "x": [0, 0]} | fields))
    for word in words:
        assert error.match(word)


def test_negative_times_are_times():
    assert make_events([-5], [0])["t"].tolist() == [-5]


@settings(deadline=None)
@given(st.lists(INT64))
def test_sorting_is_stable(times):
    events = make_events(np.array(times, np.int64), np.arange(len(times)))
    expected = sorted(range(len(times)), key=times.__getitem__)
    assert sort_events(events)["x"].tolist() == expected
    assert is_sorted(events) == (times == sorted(times))
    assert is_sorted(sort_events(events))


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 2), EVENT), [1, 2]])
def test_other_arrays_are_not_events(wrong):
    with pytest.raises(AxonnxError, match="make_events"):
        check_events(wrong)
