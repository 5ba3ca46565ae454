"""Datagrams: nothing that was lost, or was no event, goes unseen, and no single one spoils the rest."""

import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.streams import udp_source
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.pipeline import EventPipeline
from axonnx.runtime.streams.reorder import Reorder
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.sources import open_source
from axonnx.runtime.streams.udp_source import AHEAD, JumpFilter, UdpSource


def at(*times):
    return make_events(times, 1)


def times_of(parts):
    return [int(t) for part in parts for t in part["t"]]


def believed(*datagrams):
    """Times that come through, and how many events did not."""
    ahead = JumpFilter()
    found = [ahead.push(datagram) for datagram in datagrams]
    return times_of([*found, ahead.flush()]), ahead.strays


FAR = 10**15


@pytest.mark.parametrize(
    ("datagrams", "expected", "strays"),
    [
        ([at(1, FAR), at(FAR), at(FAR)], [1, FAR, FAR, FAR], 0),
        ([at(1, 2), at(FAR), at(3), at(4)], [1, 2, 3, 4], 1),  # one of them is wrong
        ([at(1, 2), at(FAR), at(FAR + 5), at(FAR + 9)], [1, 2, FAR, FAR + 5, FAR + 9], 0),  # time has moved on
        ([at(FAR), at(3), at(4)], [3, 4], 1),  # the first is wrong
        ([at(1, FAR), at(3)], [1, 3], 1),  # the end of the first is wrong
        ([at(1), at(2, 3, FAR, FAR), at(4)], [1, 2, 3, 4], 2),  # the end of one is wrong
        ([at(1), at(2), at(FAR)], [1, 2], 1),  # and none follows
        ([at(FAR)], [FAR], 0),  # nothing but one
        ([at(1), at(2 + AHEAD), at(3)], [1, 3], 1),
        ([at(1), at(1 + AHEAD), at(3)], [1, 1 + AHEAD, 3], 0),  # a step that needs nobody's word
        ([at(5), at(2**63 - 1), at(6)], [5, 6], 1),
        ([at(-(2**63)), at(2**63 - 1), at(2**63 - 1)], [-(2**63), 2**63 - 1, 2**63 - 1], 0),
    ],
)
def test_a_time_far_ahead_needs_a_second_datagram(datagrams, expected, strays):
    assert believed(*datagrams) == (expected, strays)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 99), min_size=1), max_size=9))
def test_every_event_comes_through_or_is_counted(datagrams):
    found, strays = believed(*(at(*times) for times in datagrams))
    assert len(found) + strays == sum(map(len, datagrams))


def test_one_wrong_datagram_does_not_spoil_a_run(engines):
    session, reorder = Session(engines("plain")), Reorder(0, "drop")
    binning = session.engine.program.contract.input.binning
    ahead = JumpFilter()
    source = udp_source.UdpSource("127.0.0.1", 1)
    source._arriving = lambda: map(ahead.push, [at(100), at(200), at(FAR), at(300), at(1_400)])
    run = EventPipeline(source, session, reorder, Adapter(binning.sensor))
    list(run.decisions())
    assert (run.dropped(), session.progress.binned) == ({}, 4)


def test_a_source_believes_no_single_datagram(monkeypatch):
    source = UdpSource("127.0.0.1", 0, seconds=30)
    arrived = iter([[at(100), at(200)], [at(FAR)], [at(300)], [at(400)]])
    monkeypatch.setattr(source, "_waiting", lambda port: next(arrived))
    chunks = source._arriving()
    assert [times_of([next(chunks)]) for _ in range(4)] == [[100, 200], [], [300], [400]]
    source._count_strays()
    assert source.skipped == {"far_future_event": 1}


@pytest.mark.skipif(not hasattr(socket, "SO_RCVBUF"), reason="no such buffer")
def test_datagrams_that_found_no_room_are_counted_to_the_last(monkeypatch):
    monkeypatch.setattr(udp_source, "BUFFER", 8192)
    source = UdpSource("127.0.0.1", 0)
    with source._listening() as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        datagram = to_records(at(*range(64)))
        for _ in range(100):
            out.sendto(datagram, port.getsockname())
        received = len(source._waiting(port))
        source._count_lost(port)
    assert 0 < received < 100
    assert source.skipped == {"lost_datagram": 100 - received}


def test_many_datagrams_are_handed_on_together():
    source = UdpSource("127.0.0.1", 0)
    with source._listening() as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for time in range(50):
            out.sendto(to_records(at(time)), port.getsockname())
        assert times_of(source._waiting(port)) == list(range(50))


@pytest.mark.parametrize("host", ["a\0b", "x" * 300, "no such host", "ä" * 70, "..", "1.2.3.4"])
def test_a_host_that_can_be_none_is_refused(host):
    with pytest.raises(AxonnxError, match="cannot listen on this address"):
        list(open_source(f"udp:{host}:3333", seconds=1).chunks())


def test_the_engine_is_warm_before_the_port_is_open(engines):
    engine, order = engines("plain"), []

    class Source:
        name, sensor, live, skipped, notes = "a stream", None, True, {}, ()

        def chunks(self):
            order.append("listen")
            return iter([at(100)])

    class Watched:
        program, name, initial_state = engine.program, engine.name, engine.initial_state

        def advance(self, *words):
            order.append("compute")
            return engine.advance(*words)

    session = Session(Watched())
    run = EventPipeline(Source(), session, Reorder(), Adapter(engine.program.contract.input.binning.sensor))
    cold = Session(engine)
    expected = cold.push(at(100)) + cold.flush()
    assert [np.array_equal(a.logits, b.logits) for a, b in zip(run.decisions(), expected, strict=True)]
    assert order[:2] == ["compute", "listen"]
    assert session.progress == cold.progress


@pytest.mark.parametrize("origin", [10**23, -(10**23)])
def test_an_origin_beyond_the_clock_is_refused(engines, origin):
    with pytest.raises(AxonnxError, match="expected a 64-bit number of microseconds"):
        Session(engines("plain"), origin=origin)
