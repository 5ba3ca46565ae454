"""Decisions over the wire have the bits of a session on the same events, in any chunking, from many clients at once."""

from concurrent.futures import ThreadPoolExecutor
from socket import SO_RCVBUF, SOL_SOCKET, socket

import numpy as np
import pytest

from axonnx.runtime.events.arrays import Sensor, make_events, to_records
from axonnx.runtime.serve.client_stream import BLOCK
from axonnx.runtime.serve.service import Rules
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.session import Session

from .live import HOST, everything, follow, serving, told


def busy(count=600, span=60_000, seed=1, width=8):
    """Events in order, some of them off the sensor or of no known polarity, with a silence of many windows."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, span, count))
    times[count // 2 :] += 400_000
    return make_events(times, generator.integers(0, width + 1, count), generator.integers(0, 6, count), times % 3)


def cut(events, seed):
    """The events in chunks of any length, empty ones among them."""
    generator = np.random.default_rng(seed)
    places = np.sort(generator.integers(0, len(events) + 1, 12))
    return np.split(events, places)


def expected(engine, events, **rules):
    """What a session says, as values that JSON keeps to the bit."""
    session = Session(engine, **rules)
    return [decision.as_dict() for decision in session.push(events) + session.flush()], session


def as_told(decisions):
    return [{key: value for key, value in each.items() if key not in ("type", "number")} for each in decisions]


@pytest.mark.parametrize("name", ["plain", "first", "ensemble", "noisy", "recurrent"])
@pytest.mark.parametrize("rules", [{}, {"continuous": True}, {"stop_at": 0.45}])
def test_decisions_have_the_bits_of_a_session_in_any_chunking(engines, files, name, rules):
    events = busy()
    straight, session = expected(engines(name), events, seed=2, every_bin=True, **rules)
    with serving(files[name], Rules(seed=2, **rules)) as live:
        for chunks in ([events], cut(events, 3), cut(events, 4)):
            hello, decisions, rest, code = follow(live, chunks, "/stream?every_bin=1")
            assert as_told(decisions) == straight
            assert (code, [each["type"] for each in rest]) == (1000, ["summary"])
            assert hello["classes"] == list(session.engine.program.contract.classes)
    progress, summary = session.progress, rest[0]
    assert summary["events"] == summary["binned"] + sum(summary["dropped"].values()) == len(events)
    assert (summary["binned"], summary["decisions"]) == (progress.binned, progress.decisions)


def test_without_every_bin_only_final_decisions_come(engines, files):
    events = busy()
    straight, _ = expected(engines("plain"), events, every_bin=False)
    with serving(files["plain"]) as live:
        _, decisions, _, _ = follow(live, cut(events, 5))
    assert as_told(decisions) == straight
    assert all(each["final"] for each in decisions)


def test_many_clients_at_once_do_not_touch_each_other(engines, files):
    streams = [busy(seed=seed) for seed in range(12)]
    with serving(files["plain"], threads=4) as live:
        with ThreadPoolExecutor(len(streams)) as clients:
            found = list(clients.map(lambda events: follow(live, cut(events, 1), "/stream?every_bin=1"), streams))
        assert live.metric("events_total") == sum(map(len, streams))
        assert live.metric("decisions_total") == sum(len(decisions) for _, decisions, _, _ in found)
    for events, (_, decisions, _, _) in zip(streams, found, strict=True):
        assert as_told(decisions) == expected(engines("plain"), events, every_bin=True)[0]


def test_events_of_a_larger_sensor_are_fitted_as_the_rules_say(engines, files):
    events = busy(width=16)
    fit = Fit(Sensor(width=16, height=6), crop=(4, 0))
    inside = events[(events["x"] >= 4) & (events["x"] < 12)]
    inside["x"] -= 4
    straight, _ = expected(engines("plain"), inside, every_bin=False)
    with serving(files["plain"], Rules(fit=fit)) as live:
        _, decisions, rest, _ = follow(live, cut(events, 1))
    assert as_told(decisions) == straight
    assert rest[0]["events"] == len(events) == rest[0]["binned"] + sum(rest[0]["dropped"].values())
    assert rest[0]["dropped"]["cropped"] > 0


def test_late_events_are_counted_and_the_stream_goes_on(engines, files):
    events = make_events([500, 7_500, 600, 8_200, 30_000], [1, 2, 3, 4, 5], 1, 1)
    straight, _ = expected(engines("plain"), events, every_bin=True)
    with serving(files["plain"]) as live:
        _, decisions, rest, _ = follow(live, [events], "/stream?every_bin=1")
        assert live.metric('events_dropped_total{reason="late"}') == 1
    assert as_told(decisions) == straight
    assert rest[0]["dropped"] == {"late": 1}


def test_time_can_be_moved_on_without_events(files):
    with serving(files["plain"]) as live, live.client() as client:
        told(client)
        client.send(to_records(make_events([100], 1)))
        client.send('{"type": "advance", "t_us": 5000}')
        decision = told(client)
        assert (decision["type"], decision["bin"], decision["final"]) == ("decision", 4, True)


def test_a_message_that_asks_for_many_decisions_is_answered_block_by_block(files):
    """Each event opens a window of its own: 300 events, 1,500 decisions."""
    events = make_events(np.arange(300) * 5_000, 3)
    with serving(files["plain"]) as live:
        _, decisions, rest, code = follow(live, [events], "/stream?every_bin=1")
    assert len(decisions) == rest[0]["decisions"] == 1_500 > BLOCK
    assert ([each["bin"] for each in decisions], code) == (list(range(1_500)), 1000)


def test_who_does_not_read_is_waited_for_and_loses_nothing(files):
    """Back-pressure: the server stops taking events, others go on, and all decisions come in the end."""
    events, windows = make_events(np.arange(1_500) * 5_000, 3), 1_500
    small = socket()
    small.setsockopt(SOL_SOCKET, SO_RCVBUF, 2**14)
    with serving(files["plain"]) as live:
        small.connect((HOST, live.port))
        with live.client("/stream?every_bin=1", max_queue=1, sock=small) as lazy:
            lazy.send(to_records(events))
            _, decisions, _, _ = follow(live, [busy()])
            assert decisions
            assert live.metric("decisions_total") - len(decisions) < 5 * windows  # it waits for room
            lazy.send('{"type": "end"}')
            messages, code, _ = everything(lazy)
    assert [each["bin"] for each in messages if each["type"] == "decision"] == list(range(5 * windows))
    assert code == 1000
