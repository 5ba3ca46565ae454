"""A served stream whose camera is reset, or whose events come late: the client hears of it while it happens."""

import json

import numpy as np
import pytest

from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.serve import client_stream
from axonnx.runtime.serve.client_stream import Stream
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.session import Session


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


def take(stream, *parts):
    """All decisions without their epoch, and their epochs."""
    found = []
    for part in parts:
        block = stream.take(to_records(part))
        found += block.texts
        while block.more:
            block = stream.more()
            found += block.texts
    found = [json.loads(text) for text in found]
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
    (warning,) = [json.loads(text) for text in both.told()]
    assert (warning["type"], "the clock went back" in warning["text"]) == ("warning", True)
    assert both.told() == []
    both.end()
    assert both.summary()["events"] == 6000 == both.summary()["binned"]


def test_few_late_events_are_lost_and_told_once_a_second(stream):
    found = stream()
    take(found, events(5_000_000, 100))
    assert found.told() == []
    take(found, events(0, 5))
    assert json.loads(*found.told()) == {"type": "lost", "dropped": {"late": 5}}
    take(found, events(10_000, 5))
    assert found.told() == []
    found.clock[0] += 1.0
    assert json.loads(*found.told()) == {"type": "lost", "dropped": {"late": 10}}
    take(found, events(5_100_000, 1), events(0, 60))
    assert found.session.epoch == 0
    take(found, events(60_000, 4))
    assert found.session.epoch == 1


def test_a_saved_stream_keeps_its_epoch(stream, tmp_path):
    found, again = stream(), stream()
    take(found, events(5_000_000, 100), events(0, 100))
    found.save().write(tmp_path / "state.npz")
    again.restore(type(found.save()).read(tmp_path / "state.npz"))
    assert take(again, events(200_000, 2000)) == take(found, events(200_000, 2000))
    assert again.session.epoch == 1
