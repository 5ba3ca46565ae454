"""The native pass over a stream and its numpy twin: the same bins, counters and saved states, bit for bit."""

import ctypes
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.native import FOLDER
from axonnx.runtime.binning import Binner, Binning, Sensor
from axonnx.runtime.binning.open_bin import OpenBin
from axonnx.runtime.events.arrays import EVENT, make_events

from ..no_core import needs_core, without_core
from .binning_strategies import ENDS, binned_recordings

pytestmark = needs_core
LINE = Binning(sensor=Sensor(width=4, polarities=1), bins=3, bin_us=10)


def pair(binning, last=None):
    """The same binner twice: in numpy, and by the native core."""
    with without_core():
        plain = Binner(binning, last=last)
    fast = Binner(binning, last=last)
    assert plain._native is None
    assert fast._native is not None
    return plain, fast


def facts(binner, completed):
    """All that one step shows: complete bins, frames of those that are not silent, and the state after it."""
    frames = [
        (run.first, run.count, None if run.frames is None else run.frames.tobytes()) for run in completed.stretches()
    ]
    state = binner.save()
    counters = (state.origin, state.bin, state.touched, state.events, state.outside, state.clipped, state.anchor)
    some = {completed.first, completed.stop - 1, (completed.first + completed.stop) // 2} if completed else ()
    ends = [binner.end_us(completed, number) for number in sorted(some)]
    return completed.first, completed.stop, completed.counted, frames, counters, state.counts.tobytes(), ends


def told(binner, act):
    """What a step shows, or why it is refused: after the last bin of int64 time nothing more is taken."""
    try:
        return facts(binner, act(binner))
    except AxonnxError as fault:
        return str(fault)


def assert_same(steps, plain, fast):
    for act in steps:
        assert told(plain, act) == told(fast, act)


@settings(deadline=None, max_examples=150)
@given(st.data(), binned_recordings())
def test_the_same_bits_whatever_comes(data, recording):
    """Unsorted, off the sensor, of no polarity, early, late, twice, at both ends of int64, in any chunks."""
    binning, events = recording
    borders = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=5)))
    steps = [lambda b, chunk=chunk: b.push(chunk) for chunk in np.split(events, borders)]
    if data.draw(st.booleans()):
        at, time = data.draw(st.integers(0, len(steps))), data.draw(st.sampled_from([*ENDS, 5, 25, 2**64]))
        steps.insert(at, lambda b: b.advance(time))
    last = data.draw(st.sampled_from([None, binning.bins]))
    assert_same([*steps, lambda b: b.flush(binning.bins)], *pair(binning, last))


@pytest.mark.parametrize(
    ("sensor", "sizes"), [(Sensor(width=3, polarities=1), (7, 400, 4000)), (Sensor(width=640, height=48), (400, 4000))]
)
@pytest.mark.parametrize("clip", [200, 255])
def test_full_cells_in_bins_of_a_few_and_of_many_events(sensor, sizes, clip):
    """More than 255 events in a cell, found by a look at all cells and by one at the bin's events."""
    binning = Binning(sensor=sensor, bins=4, bin_us=1000, clip=clip)
    generator = np.random.default_rng(0)
    t = np.sort(np.concatenate([generator.integers(0, 4000, 3000), np.full(700, 1500), np.full(300, 2500)]))
    x = np.where((t == 1500) | (t == 2500), 2, generator.integers(0, sensor.width + 1, len(t)))
    events = make_events(t, x)
    for size in sizes:
        chunks = [events[at : at + size] for at in range(0, len(events), size)]
        plain, fast = pair(binning)
        assert_same([*(lambda b, chunk=chunk: b.push(chunk) for chunk in chunks), lambda b: b.flush()], plain, fast)
        assert fast.clipped >= 700 - clip + 300 - clip
        assert fast.outside.off_sensor > 0


@pytest.mark.parametrize("bin_us", [1, 7, 2**40, 2**63 - 1])
def test_after_a_move_beyond_all_times_every_event_is_late(bin_us):
    """The open bin begins at 2^64 µs after the origin or later: modulo 2^64 it would begin among the times of int64."""
    binning = LINE.model_copy(update={"origin": "first", "bin_us": bin_us})
    rest = make_events(np.array([-(2**63), -1, 0, 1, 5, 2**63 - 1]), 0)
    begin, move = (lambda b: b.push(make_events([-(2**63)], 0))), (lambda b: b.advance(2**64))
    plain, fast = pair(binning)
    assert_same([begin, move, lambda b: b.push(rest), lambda b: b.flush()], plain, fast)
    assert fast.outside.late == (0 if bin_us == 1 else len(rest))


def test_an_event_after_the_last_bin_touches_no_bin():
    plain, fast = pair(LINE, last=3)
    assert_same([lambda b: b.push(make_events([25, 99], 0)), lambda b: b.push(make_events([0], 0))], plain, fast)
    assert (fast.bin, fast.save().touched, fast.outside.after, fast.outside.late) == (3, False, 1, 1)
    assert fast.flush().count == 0


def test_events_that_lie_apart_in_memory_or_must_not_be_written():
    events = make_events(np.arange(0, 400, 7), np.arange(58) % 5)
    locked = events.copy()
    locked.flags.writeable = False
    for given_events in (events[::3], locked, np.frombuffer(events.tobytes(), EVENT)):
        assert_same([lambda b, e=given_events: b.push(e), lambda b: b.flush()], *pair(LINE))


def test_a_saved_stream_goes_on_in_the_other_way():
    events = make_events(np.arange(0, 4000, 3), np.arange(1334) % 5)
    straight, plain = pair(LINE)[0], pair(LINE)
    for number, part in enumerate(np.array_split(events, 7)):
        binner, other = plain[number % 2], plain[1 - number % 2]
        assert facts(binner, binner.push(part)) == facts(straight, straight.push(part))
        other.restore(binner.save())


def test_python_and_c_have_the_same_fields():
    source = (FOLDER / "events.c").read_text("utf-8").split("} open_bin;")[0].rpartition("typedef struct {")[2]
    declared = []
    for line in re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL).split(";")[:-1]:
        kind, names = re.fullmatch(r"\s*(?:const )?(\w+) (.*?)\s*", line, re.DOTALL).groups()
        declared += [(name.strip("* "), "void_p" if "*" in name else kind) for name in names.split(",")]
    sizes = {"void_p": ctypes.c_void_p, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64}
    assert [(name, sizes[kind]) for name, kind in declared] == list(OpenBin._fields_)


def test_what_was_given_out_is_not_written_again():
    _, fast = pair(LINE)
    first = fast.push(make_events([0, 1, 12], [0, 1, 2])).frames(0, 1)
    kept = first.copy()
    for time in range(20, 200, 5):
        fast.push(make_events([time], [3]))
    assert (first == kept).all()
    assert kept.ravel().tolist() == [1, 1, 0, 0]


def test_a_part_of_many_bins_has_no_cell_of_others():
    completed = pair(LINE)[1].push(make_events(np.arange(0, 100, 5), np.arange(20) % 4))
    whole = completed.frames(0, 9)
    for first in range(9):
        for count in range(1, 10 - first):
            assert (completed.frames(first, count) == whole[first : first + count]).all()
