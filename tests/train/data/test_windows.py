"""Windows of time and of events, pieces of label files, and what they are cut from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from axonnx.train.data.windows import Window, Windows, windows_of


def whole(times):
    return Window(0, len(times), int(times[0]), int(times[-1]) + 1)


def cut(times, **how):
    times = np.asarray(times, np.int64)
    return list(windows_of(times, whole(times), Windows(**how)))


def test_windows_of_time_begin_with_the_first_event_and_stand_side_by_side():
    found = cut([5000, 5999, 6000, 7500, 8999], ms=1, least=1.0)
    assert found == [
        Window(0, 2, 5000, 6000),
        Window(2, 3, 6000, 7000),
        Window(3, 4, 7000, 8000),
        Window(4, 5, 8000, 9000),
    ]


def test_a_window_without_events_is_left_out():
    assert cut([0, 10, 2500], ms=1, least=0.4) == [Window(0, 2, 0, 1000), Window(2, 3, 2000, 2501)]


@pytest.mark.parametrize(("least", "windows"), [(0.5, 2), (0.51, 1), (1.0, 1)])
def test_what_the_end_cuts_off_is_kept_from_a_share_on(least, windows):
    assert len(cut([0, 1000, 1499], ms=1, least=least)) == windows
    assert len(cut(np.arange(15), events=10, least=least)) == windows


def test_events_of_one_microsecond_stay_together():
    assert [window[:2] for window in cut([0, 1, 2, 2, 2, 3, 4], events=3, least=0.3)] == [(0, 2), (2, 6), (6, 7)]


def test_windows_overlap_by_a_share():
    assert [window.start for window in cut([0, 3999], ms=2, overlap=0.5, least=1.0)] == [0, 2000]
    assert [window.start for window in cut(range(0, 4000, 100), ms=2, overlap=0.5, least=0.9)] == [0, 1000, 2000]
    assert [window[:2] for window in cut(range(10), events=4, overlap=0.25, least=1.0)] == [(0, 4), (3, 7), (6, 10)]


def test_a_silence_of_ages_costs_no_time():
    found = cut([0, 2**62, 2**62 + 5], ms=0.004, least=0.25)
    assert [window[:3] for window in found] == [(0, 1, 0), (1, 2, 2**62), (2, 3, 2**62 + 4)]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(1, 10**5), st.integers(1, 20))
def test_side_by_side_every_event_is_in_one_window_at_most_and_in_its_time(times, length, count):
    times = np.sort(np.array(times, np.int64))
    for how in (Windows(ms=length / 1000, least=1e-9), Windows(events=count, least=1e-9)):
        found = list(windows_of(times, whole(times), how))
        assert [i for window in found for i in range(window.first, window.last)] == list(range(len(times)))
        for window in found:
            inside = times[window.first : window.last]
            assert window.start <= inside[0] <= inside[-1] < window.stop


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValidationError, match="give one of the two"):
        Windows(ms=1, events=2)
    with pytest.raises(ValidationError, match="overlap is of windows"):
        Windows(overlap=0.5)
    assert Windows().is_off
    assert not Windows(labels="labels.csv").is_off
