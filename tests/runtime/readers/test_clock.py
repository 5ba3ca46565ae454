"""Counters that start again at zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.runtime.readers.clock import unwrap


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([], []),
        ([5], [5]),
        ([0, 200, 255, 3], [0, 200, 255, 259]),
        ([250, 1, 250, 2], [250, 257, 506, 514]),  # a rise by 249 of 256 is a silence
        ([250, 1, 255, 2], [250, 257, 255, 258]),  # one by 254 is an event from before the wrap
        ([0, 255, 6], [0, 255, 262]),  # but not where no wrap was seen
        ([100, 90, 110], [100, 90, 110]),  # events out of order, no wrap
    ],
)
def test_eight_bits_by_hand(raw, expected):
    assert unwrap(np.array(raw, np.int64), 8).tolist() == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, (1 << 22) - 1), min_size=1), st.integers(0, (1 << 23) - 1))
def test_steps_below_half_the_range_are_recovered(steps, start):
    times = start + np.cumsum([0, *steps])
    assert unwrap(times % (1 << 23), 23).tolist() == times.tolist()
