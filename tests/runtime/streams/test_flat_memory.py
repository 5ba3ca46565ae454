"""An hour of events, and memory that does not grow."""

import gc
import tracemalloc

import numpy as np

from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.streams.reorder import Reorder
from axonnx.runtime.streams.session import Session

MINUTE = 60_000_000


def minute(number, generator):
    """Some 600 events, slightly out of order."""
    times = np.sort(generator.integers(0, MINUTE, 600)) + generator.integers(0, 2_000, 600)
    return make_events(times + number * MINUTE, generator.integers(0, 8, 600), generator.integers(0, 6, 600))


def test_an_hour_of_events_leaves_memory_as_it_was(engines):
    generator = np.random.default_rng(0)
    session = Session(engines("slow"))
    reorder = Reorder(tolerance_us=2_000)
    sizes = []
    tracemalloc.start()
    for number in range(60):
        for _ in session.stream(reorder.push(minute(number, generator))):
            pass
        if number % 10 == 9:
            gc.collect()  # the interpreter's own lists of free tuples count as allocated until then
            sizes.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.reset_peak()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    session.push(reorder.flush())
    session.flush()
    assert session.progress.events == session.progress.binned == 60 * 600
    assert session.progress.bins == session.progress.decisions == 3_600
    assert max(sizes) - sizes[0] < 20_000
    assert peak - sizes[0] < 1_000_000
