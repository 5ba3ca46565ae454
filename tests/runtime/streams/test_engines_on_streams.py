"""Every engine says the same on a stream, bit for bit, and says what it did not count."""

import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.model import load
from axonnx.runtime.readers import write_npz
from axonnx.runtime.streams import windows
from axonnx.runtime.streams.session import Session

from ..no_core import needs_core
from .naive_session import said

RULES = [{}, {"continuous": True}, {"stop_at": 0.5}, {"every_bin": False}]


def bursts():
    """Busy windows, silent ones, and a crowded one that is cheaper to compute densely."""
    generator = np.random.default_rng(4)
    times = np.concatenate([generator.integers(0, 12_000, 200), generator.integers(60_000, 70_000, 3_000)])
    times.sort()
    return make_events(times, generator.integers(0, 8, 3_200), generator.integers(0, 6, 3_200), times % 2)


@pytest.mark.parametrize("engine", ["auto", pytest.param("native", marks=needs_core), "ort"])
@pytest.mark.parametrize("name", ["plain", "ensemble", "noisy", "recurrent"])
def test_sessions_agree_with_the_reference(files, engines, name, engine):
    model = load(files[name], engine)
    for rules in RULES:
        expected, found = Session(engines(name), seed=3, **rules), model.session(seed=3, **rules)
        assert said(found.push(bursts()) + found.flush()) == said(expected.push(bursts()) + expected.flush())
        one, other = found.progress.tally, expected.progress.tally
        assert (one.computed, one.skipped) == (other.computed, other.skipped)
        assert one.uncounted > 0 or one == other
        assert engine != "ort" or one.uncounted == one.computed


def test_a_model_opens_sessions(files, engines):
    rules = {"seed": 6, "continuous": True, "every_bin": False, "origin": "first"}
    opened, made = load(files["noisy"], "numpy").session(**rules), Session(engines("noisy"), **rules)
    assert said(opened.push(bursts()) + opened.flush()) == said(made.push(bursts()) + made.flush())


def test_a_session_goes_on_in_another_engine(files, engines):
    events = bursts()
    reference, begun, ended = (
        Session(engines("plain")),
        Session(engines("plain")),
        load(files["plain"], "ort").session(),
    )
    expected = reference.push(events) + reference.flush()
    found = begun.push(events[:150])
    ended.restore(begun.save())
    assert said(found + ended.push(events[150:]) + ended.flush()) == said(expected)


def test_the_command_says_which_engine_and_what_it_counted(files, tmp_path, capsys):
    write_npz(tmp_path / "some.npz", bursts(), Sensor(width=8, height=6))
    printed = {}
    for engine in ("numpy", "ort", "auto"):
        assert (
            main(["run", str(files["plain"]), str(tmp_path / "some.npz"), "--windows", "--json", "--engine", engine])
            == 0
        )
        *decisions, summary = map(json.loads, capsys.readouterr().out.splitlines())
        assert summary["engine"] == engine or engine == "auto"
        printed[engine] = decisions, summary
    assert printed["numpy"][0] == printed["ort"][0] == printed["auto"][0]
    assert printed["ort"][1]["spikes"] is printed["ort"][1]["operations"] is None
    assert (printed["ort"][1]["bins_counted"], printed["numpy"][1]["bins_counted"]) == (0, 70)


def test_noise_is_drawn_for_a_few_steps_at_a_time_to_the_same_bits(engines, monkeypatch):
    expected = Session(engines("noisy"), every_bin=False)
    monkeypatch.setattr(windows, "NORMALS", 30)  # two steps of twelve neurons
    found = Session(engines("noisy"), every_bin=False)
    assert said(found.push(bursts()) + found.flush()) == said(expected.push(bursts()) + expected.flush())
