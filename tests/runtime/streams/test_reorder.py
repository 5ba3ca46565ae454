"""Events out of order: sorted within the tolerance, refused or counted beyond, whatever the chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import is_sorted, make_events
from axonnx.runtime.streams import reorder as reorder_module
from axonnx.runtime.streams.reorder import Reorder, count_late

from .event_strategies import cuts

ENDS = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 2**63 - 2, 2**63 - 1])
TIMES = st.lists(st.one_of(st.integers(0, 60), st.integers(-(2**63), 2**63 - 1), ENDS), max_size=30)


def numbered(times):
    """Events that carry their place in x."""
    return make_events(np.array(times, np.int64), np.arange(len(times)))


def naive(times, tolerance):
    """Places in the order in which they should come out, and how many are dropped."""
    latest, kept, late = None, [], 0
    for place, t in enumerate(times):
        latest = t if latest is None else max(latest, t)
        if latest - t > tolerance:
            late += 1
        else:
            kept.append((t, place))
    return [place for _, place in sorted(kept)], late


def run(buffer, chunks):
    return np.concatenate([*(buffer.push(chunk) for chunk in chunks), buffer.flush()])


@settings(deadline=None)
@given(times=TIMES, tolerance=st.one_of(st.integers(0, 60), st.sampled_from([2**63, 2**65])), data=st.data())
def test_reordering_is_that_of_its_slow_twin_in_any_chunks(times, tolerance, data):
    events = numbered(times)
    buffer = Reorder(min(tolerance, 2**64 - 1), "drop")
    out = run(buffer, data.draw(cuts(events)))
    places, dropped = naive(times, tolerance)
    assert out["x"].tolist() == places
    assert buffer.dropped == dropped
    assert is_sorted(out)
    assert len(out) + buffer.dropped == len(events)


def test_what_is_in_order_passes_at_once_without_a_tolerance():
    events = numbered([1, 2, 2, 5])
    assert Reorder().push(events) is events


def test_events_wait_until_their_order_is_settled():
    buffer = Reorder(tolerance_us=10)
    assert buffer.push(numbered([100, 104]))["t"].tolist() == []
    assert buffer.push(numbered([110]))["t"].tolist() == [100]
    assert buffer.push(numbered([101, 130]))["t"].tolist() == [101, 104, 110]
    assert buffer.sorted == 1
    assert buffer.flush()["t"].tolist() == [130]


def test_beyond_the_tolerance_is_refused_with_place_and_remedy():
    buffer = Reorder(tolerance_us=10)
    buffer.push(numbered([100, 200]))
    with pytest.raises(AxonnxError, match=r"event 3 \(t = 150 µs\) is 60 µs late; .* Raise the tolerance, or drop"):
        buffer.push(numbered([210, 150]))


def test_too_many_events_within_the_tolerance_are_refused(monkeypatch):
    monkeypatch.setattr(reorder_module, "MOST_HELD", 10)
    buffer = Reorder(tolerance_us=1_000)
    buffer.push(numbered(range(10)))
    with pytest.raises(AxonnxError, match="more than 10 events are within the tolerance of 1000 µs"):
        buffer.push(numbered([11]))


def test_late_events_are_counted():
    assert count_late(numbered([5, 4, 6, 5, 5, 7])) == 3
    assert count_late(numbered([])) == 0


def test_a_negative_tolerance_is_refused():
    with pytest.raises(AxonnxError, match="tolerance_us is -1"):
        Reorder(-1)
