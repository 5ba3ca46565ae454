"""A served stream whose camera is reset, or whose events come late: the client hears of it while it happens."""

import json
from dataclasses import replace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.serve import client_stream
from axonnx.runtime.serve.client_stream import Stream
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.session_state import SessionState


@pytest.fixture
def stream(engines, monkeypatch):
    clock = [50.0]
    monkeypatch.setattr(client_stream, "monotonic", lambda: clock[0])

    def new():
        engine = engines("plain")
        binning = engine.program.contract.input.binning
        made = Stream(1, "key", Session(engine, every_bin=False), Adapter(binning.sensor))
        made.clock = clock
        return made

    return new


def events(first, count, step=1000):
    return make_events(first + step * np.arange(count), np.arange(count) % 8, 0, 1)


def told(stream, *parts):
    """All messages that events cause."""
    found = []
    for part in parts:
        block = stream.take(to_records(part))
        found += block.texts
        while block.more:
            block = stream.more()
            found += block.texts
    return [json.loads(text) for text in found]


def take(stream, *parts):
    """All decisions without their epoch, and their epochs."""
    found = [each for each in told(stream, *parts) if each["type"] == "decision"]
    return [{**each, "epoch": 0} for each in found], [each.get("epoch", 0) for each in found]


def test_after_a_reset_the_stream_goes_on_as_a_new_one(stream):
    before, after = events(5_000_000, 3000), events(0, 3000)
    one, other, both = stream(), stream(), stream()
    first = take(one, before)[0] + [{**json.loads(text), "epoch": 0} for text in one.end().texts]
    second = take(other, after)[0]
    found, epochs = take(both, before, after[:100], after[100:])
    assert [each.pop("number") for each in found] == list(range(len(found)))
    assert found == [{key: value for key, value in each.items() if key != "number"} for each in first + second]
    assert epochs == [0] * len(first) + [1] * len(second)
    both.end()
    assert both.summary()["events"] == 6000 == both.summary()["binned"]
    assert both.summary()["clock_resets"] == 1


@pytest.mark.parametrize("cuts", [[], [3000], [3001], [2990, 3010], list(range(2950, 3100))])
def test_a_reset_is_found_wherever_messages_are_cut(stream, cuts):
    """The decisions and the warning before the first of them depend on the events alone."""
    whole = np.concatenate([events(5_000_000, 3000), events(0, 3000)])
    found = told(stream(), *np.split(whole, cuts))
    assert found == told(stream(), whole)
    kinds = [(each["type"], each.get("epoch", 0)) for each in found]
    assert kinds == sorted(kinds, key=lambda kind: (kind[1], kind[0] != "warning"))
    assert [each["text"] for each in found if each["type"] == "warning"] == [
        "the clock went back from 7.999 s to 0.000 s, as after a reset; the open window is decided, and epoch 1 begins"
    ]


def test_what_waits_for_a_reset_is_late_if_the_old_clock_goes_on(stream):
    advanced, silent = stream(), stream()
    for each in (advanced, silent):
        take(each, events(5_000_000, 100), events(0, 40))
    advanced.advance(5_200_000)
    assert advanced.dropped() == {"late": 40}
    silent.advance(4_000_000)  # says nothing about the old clock
    assert silent.dropped() == {}
    take(advanced, events(40_000, 40))
    take(silent, events(40_000, 40))
    assert (advanced.session.epoch, silent.session.epoch) == (0, 1)
    for each in (advanced, silent):
        each.end()
        assert each.summary()["events"] == 180 == each.summary()["binned"] + sum(each.dropped().values())


def test_few_late_events_are_lost_and_told_once_a_second(stream):
    found, now = stream(), lambda at: events(5_100_000 + at, 1)
    take(found, events(5_000_000, 100))
    assert found.told() == []
    take(found, events(0, 5), now(0))
    assert json.loads(*found.told()) == {"type": "lost", "dropped": {"late": 5}}
    take(found, events(10_000, 5), now(1_000))
    assert found.told() == []
    found.clock[0] += 1.0
    assert json.loads(*found.told()) == {"type": "lost", "dropped": {"late": 10}}
    take(found, events(0, 60))
    assert found.session.epoch == 0
    take(found, events(60_000, 4))
    assert found.session.epoch == 1


def saved(stream, tmp_path, new):
    stream.save().write(tmp_path / "state.npz")
    new.restore(SessionState.read(tmp_path / "state.npz"))
    return new


def test_a_saved_stream_keeps_its_epoch(stream, tmp_path):
    found = stream()
    take(found, events(5_000_000, 100), events(0, 100))
    again = saved(found, tmp_path, stream())
    assert take(again, events(200_000, 2000)) == take(found, events(200_000, 2000))
    assert again.session.epoch == 1


@pytest.mark.parametrize("after", [1, 40, 63, 64, 100])
def test_a_stream_that_is_saved_amid_a_reset_goes_on_as_if_it_had_not_been(stream, tmp_path, after):
    """The events that may confirm the reset, and the clock that they are measured by, are part of the session."""
    before, reset = events(5_000_000, 3000), events(0, 3000)
    straight, first = stream(), stream()
    expected = told(straight, before, reset)
    found = told(first, before, reset[:after])
    again = saved(first, tmp_path, stream())
    assert again.events == 3000 + after
    assert found + told(again, reset[after:]) == expected
    again.end(), straight.end()
    assert again.summary() == straight.summary()


@pytest.mark.parametrize(
    "clock",
    [
        {"latest": 2**63},
        {"latest": "x"},
        {"latest": 5, "held": [[4, 0, 0, 0]]},
        {"latest": 10**7, "held": [[0, 70_000, 0, 0]]},
        {"latest": 10**7, "held": [[0, 0, 0]]},
        {"latest": 10**7, "held": [[0, 0, 0, 0]] * 64},
        {"latest": 10**7, "held": {}},
        [1],
    ],
)
def test_a_clock_that_no_stream_has_is_refused(stream, clock):
    found = stream()
    take(found, events(5_000_000, 100))
    state = found.save()
    with pytest.raises(AxonnxError, match="is damaged"):
        stream().restore(replace(state, delivery={**state.delivery, "clock": clock}))


@pytest.mark.parametrize("warnings", [[[0, 1]], [[-1, "a"]], [[10**6, "a"]], [["0", "a"]], [0], {}])
def test_warnings_that_no_stream_keeps_are_refused(stream, warnings):
    state = stream().save()
    with pytest.raises(AxonnxError, match="is damaged"):
        stream().restore(replace(state, delivery={**state.delivery, "warnings": warnings}))
