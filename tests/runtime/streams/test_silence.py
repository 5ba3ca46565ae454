"""Silences of any length: exact, at no cost in memory, and in no time where the network allows it."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.streams import windows
from axonnx.runtime.streams.session import Session

from .naive_session import said
from .stub_engine import CircleEngine

HOUR = 3_600_000_000


def through(session, events):
    return session.push(events) + session.flush()


def quiet_events(gap_us):
    return make_events([1_200, 2_300, 2_400 + gap_us], [3, 4, 5], [1, 2, 3])


def test_hours_of_silence_are_one_decision_with_the_bits_of_one_silent_window(engines):
    engine = engines("plain")
    begun = time.process_time()
    found = through(Session(engine), quiet_events(10 * HOUR))
    assert time.process_time() - begun < 2
    (long,) = [decision for decision in found if decision.windows > 1]
    assert (long.windows, long.bin) == (7_199_999, 35_999_999_999 // 1000)
    short = through(Session(engine), quiet_events(10_000))
    (silent,) = [decision for decision in short if decision.window == 1]
    assert long.member_logits.tobytes() == silent.member_logits.tobytes()


def test_spikes_of_silent_windows_are_counted_for_all_of_them(engines):
    def spikes(gap_us):
        session = Session(engines("plain"))
        through(session, quiet_events(gap_us))
        return session.progress.tally.spikes["hidden.0.neuron"]

    none, one, many = spikes(5_000), spikes(10_000), spikes(5_005_000)
    assert one > none
    assert many - none == 1_000 * (one - none)


def test_early_exit_in_silence_skips_the_rest_of_every_silent_window(engines):
    session = Session(engines("plain"), stop_at=0.3)
    through(session, quiet_events(5_005_000))
    tally = session.progress.tally
    assert tally.computed + tally.skipped == session.progress.bins
    assert tally.skipped >= 1_000


def test_noisy_files_pass_over_silent_windows_but_the_last(engines):
    session = Session(engines("noisy"), seed=7)
    found = through(session, quiet_events(5_005_000))
    (silent,) = [decision for decision in found if decision.windows > 1]
    assert session.progress.tally.skipped == (silent.windows - 1) * 5
    alone = Session(engines("noisy"), seed=7, origin=-(silent.window * 5_000))
    assert said(alone.advance(5_000))[-1].bits == said([silent])[0].bits


@pytest.mark.parametrize("period", [1, 2, 3, 4, 5, 6, 7, 10, 13])
@pytest.mark.parametrize("lead", [1, 4, 23])
def test_a_continuous_network_that_goes_in_circles_is_followed_exactly(engines, lead, period):
    program = engines("plain").program
    for count in (1, 2, 3, 7, 50, 333):
        fast = CircleEngine(program, lead, period)
        session = Session(fast, continuous=True)
        (silent,) = session.advance(5_000 * count)
        slow = CircleEngine(program, lead, period)
        session_slow = Session(slow, continuous=True)
        for window in range(1, count + 1):
            (last,) = session_slow.advance(5_000 * window)
        assert silent.member_logits.tobytes() == last.member_logits.tobytes()
        assert session.progress.tally == session_slow.progress.tally
        assert (silent.windows, slow.steps) == (count, 5 * count)
        assert count < 300 or fast.steps < 5 * 150
        events = make_events([5_000 * count + 10], 3)
        assert said(session.push(events) + session.flush()) == said(session_slow.push(events) + session_slow.flush())


def test_hours_of_silence_in_a_continuous_network_that_comes_to_rest(engines):
    session = Session(engines("plain"), continuous=True)
    begun = time.process_time()
    found = through(session, quiet_events(10 * HOUR))
    assert time.process_time() - begun < 10
    assert [decision.windows for decision in found if decision.windows > 1] == [7_199_999]
    assert session.progress.tally.computed == session.progress.bins


def test_a_continuous_network_that_never_comes_to_rest_is_refused_a_silence_without_end(engines, monkeypatch):
    monkeypatch.setattr(windows, "MOST_SILENT_BINS", 1_000)
    endless = CircleEngine(engines("plain").program, 0, 0)
    session = Session(endless, continuous=True)
    assert len(session.advance(900_000)) == 1
    with pytest.raises(AxonnxError, match="does not come to rest in a silence of 400000 bins"):
        session.advance(900_000 + 400_000_000)
    assert endless.steps < 3_000


@pytest.mark.parametrize("rules", [{}, {"continuous": True}])
def test_times_at_both_ends_of_int64(engines, rules):
    engine = engines("first")
    session = Session(engine, **rules)
    found = through(session, make_events(np.array([-(2**63), 2**63 - 1], np.int64), 3))
    assert found[0].t_us == -(2**63) + 1000
    assert found[-1].final
    assert found[-1].t_us >= 2**63 - 1
    assert session.progress.binned == session.progress.events == 2
    assert sum(decision.windows for decision in found if decision.final) == found[-1].window + 1


def test_an_event_at_the_end_of_int64_after_the_origin_zero(engines):
    session = Session(engines("plain"))
    found = through(session, make_events(np.array([2**63 - 1], np.int64), 3))
    assert found[0].windows == (2**63 - 1) // 5_000
    assert found[-1].final


def test_the_last_microsecond_of_int64_ends_a_window_that_has_no_end(engines):
    program = engines("first").program
    entering = program.contract.input
    binning = entering.binning.model_copy(update={"bin_us": 1})
    contract = program.contract.model_copy(update={"input": entering.model_copy(update={"binning": binning})})
    session = Session(NumpyEngine(replace(program, contract=contract)))
    found = through(session, make_events(np.array([-(2**63), 2**63 - 1], np.int64), 3))
    assert (found[-1].t_us, found[-1].steps, found[-1].final) == (2**63, 1, False)
    with pytest.raises(AxonnxError, match="the last bin of int64 time is already complete"):
        session.push(make_events([0], 3))


def test_a_sparse_stream_in_one_chunk_is_decided_in_little_memory(engines):
    times = np.arange(400, dtype=np.int64) * 1_000_000
    session = Session(engines("plain"))
    tracemalloc.start()
    count = sum(1 for _ in session.stream(make_events(times, 3)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 399 * 6
    assert peak < 500_000
