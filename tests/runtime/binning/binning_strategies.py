"""Random binnings, and events that lie in them, at their edges and beyond."""

import numpy as np
from hypothesis import strategies as st

from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.events.arrays import make_events

ENDS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1]


@st.composite
def binnings(draw, origins=("zero", "first")):
    step = draw(st.integers(1, 3))
    width, height = (step * draw(st.integers(1, 3)) for _ in range(2))
    bin_us = draw(st.sampled_from([1, 2, 7, 1000, 2**60]))
    return Binning(
        most_events=None if bin_us == 1 else draw(st.sampled_from([None, None, 1, 2, 3])),
        sensor=Sensor(width=width, height=draw(st.sampled_from([1, height])), polarities=draw(st.sampled_from([1, 2]))),
        bins=draw(st.integers(1, 6)),
        bin_us=bin_us,
        origin=draw(st.sampled_from(origins)),
        values=draw(st.sampled_from(["count", "binary"])),
        clip=draw(st.sampled_from([1, 2, 255])),
        downsample=step,
        polarity=draw(st.sampled_from(["keep", "merge"])),
    )


@st.composite
def events_for(draw, binning, max_size=30):
    edges = [k * binning.bin_us + d for k in range(binning.bins + 2) for d in (-1, 0, 1)]
    times = st.one_of(
        st.sampled_from([t for t in edges if t < 2**63]),
        st.integers(-3, min(binning.duration_us + 3, 2**63 - 1)),
        st.sampled_from(ENDS),
    )
    pixels = st.tuples(
        times, st.integers(0, binning.sensor.width), st.integers(0, binning.sensor.height), st.integers(0, 2)
    )
    rows = draw(st.lists(pixels, max_size=max_size))
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    t, x, y, p = (np.array(column, np.int64) for column in columns)
    return make_events(t, x, y, p)


@st.composite
def binned_recordings(draw, origins=("zero", "first")):
    binning = draw(binnings(origins))
    return binning, draw(events_for(binning))
