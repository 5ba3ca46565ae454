"""Figures on streams: counted by hand from decisions that are known, and of a whole small file."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import write_npz
from experiments import stream
from experiments.stream import Piece, Said, begun_anywhere, count, joined, main, streams_of, summary

from ..runtime.streams.small_models import SENSOR, export, samples

BINNING = Binning(sensor=Sensor(width=4), bins=4, bin_us=250_000)
MODEL = SimpleNamespace(contract=SimpleNamespace(input=SimpleNamespace(binning=BINNING)))


def piece(label, seconds, group=0):
    return Piece(make_events(np.arange(0, seconds * 1_000_000, 50_000), 1), label, group)


def test_recordings_follow_each_other_without_a_pause():
    events, starts = joined([piece(0, 2), piece(1, 3)])
    assert starts.tolist() == [0, 1_951_000, 4_902_000]
    assert (np.diff(events["t"]) > 0).all()


def test_figures_by_hand(monkeypatch):
    said = [
        Said(500_000, 2, 1, 0.95),  # wrong, at the beginning
        Said(750_000, 3, 0, 0.5),  # right, not sure
        Said(1_000_000, 4, 0, 0.9),  # right: the first confident one
        Said(2_500_000, 2, 0, 0.99),  # the second recording shows 1: wrong, within a window after the change
        Said(2_600_000, 2, 0, 0.99),  # the same once more: counted once, and it said so before the change, too
        Said(3_500_000, 2, 2, 0.92),  # wrong, later
        Said(3_600_000, 2, 2, 0.92),
    ]
    monkeypatch.setattr(stream, "decided", lambda *_: said)
    found = count(MODEL, [piece(0, 2), piece(1, 3)], np.array([0, 1]), 1, 1, 0.9)
    assert (found.decisions, found.right, found.confident, found.confident_right) == (7, 2, 6, 1)
    assert found.latencies == (1.0, float("inf"))
    assert (found.false, found.false_at_changes) == (2, 1)  # what was said before the change is nothing new
    figures = summary([found])
    assert figures["accuracy"] == 2 / 7
    assert figures["false_a_minute"] == pytest.approx(2 / (4.902 / 60))
    assert (figures["never"], figures["latency_median"], figures["intervals"]) == (0.5, float("inf"), {})


def test_intervals_are_over_people():
    """One person with many recordings is one person."""
    seen = [
        stream.Counted(group, 1, 1.0, 10, 10 * (group == 1), 0, 0, 0, 0, (1.0,)) for group in (1, *[2] * 5, *[3] * 5)
    ]
    assert summary(seen)["intervals"]["accuracy"] == [0.0, 1.0]


def test_streams_are_of_one_person_each_and_begin_anywhere():
    pieces = [piece(0, 2, 1), piece(1, 2, 1), piece(2, 2, 2)]
    found = [[own[int(at)].label for at in order] for own, order in streams_of(pieces, 4, 0)]
    assert [sorted(labels) for labels in found] == [[0, 1]] * 4 + [[2]] * 4
    assert len({tuple(labels) for labels in found}) == 3
    alone = [own[0].events for own, _ in begun_anywhere(pieces, 5)]
    assert len(alone) == 15
    assert len({len(events) for events in alone}) > 5
    assert all(events["t"][0] == 0 for events in alone)


def test_a_file_on_recordings(tmp_path, capsys):
    path, random = export(samples()["counted"], tmp_path / "m.onnx"), np.random.default_rng(0)
    for number in (1, 2):
        t = np.sort(random.integers(0, 50_000, 600))
        events = make_events(t, random.integers(0, 8, 600), random.integers(0, 6, 600), random.integers(0, 2, 600))
        write_npz(tmp_path / f"{number}.npz", events, SENSOR)
    words = [str(path), "--recordings", str(tmp_path), "--least", "2", "--sure", "0.3", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["figures"]["streams"], found["figures"]["recordings"]) == (3, 6)
    assert found["streams"][0]["decisions"] > 100
    assert 0 < found["figures"]["accuracy"] < 1
    assert main([str(path)]) == 2
