"""Streams for property tests: bursts, gaps of many windows, events off the sensor, polarities that are none."""

import numpy as np
from hypothesis import strategies as st

from axonnx.runtime.events.arrays import make_events

BIN_US, WINDOW_US = 1000, 5000

STEPS = st.one_of(
    st.integers(0, 30),
    st.integers(0, 3 * BIN_US),
    st.sampled_from([BIN_US - 1, BIN_US, WINDOW_US, WINDOW_US - 1, 2 * WINDOW_US, 7 * WINDOW_US + 1]),
)


@st.composite
def streams(draw, most=40, strays=False):
    """Events in order of time, from zero on; with strays, some beyond the sensor."""
    gaps = draw(st.lists(STEPS, min_size=1, max_size=most))
    count = len(gaps)
    widest = 10 if strays else 7

    def column(largest):
        return draw(st.lists(st.integers(0, largest), min_size=count, max_size=count))

    return make_events(np.cumsum(gaps), column(widest), column(5), column(2 if strays else 1))


@st.composite
def cuts(draw, events):
    """The same events in chunks, empty ones among them."""
    edges = sorted(draw(st.lists(st.integers(0, len(events)), max_size=8)))
    return np.split(events, edges)
