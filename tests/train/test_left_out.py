"""What training does not see is printed and kept: events in no bin, clipped counts, classes without samples."""

import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.binning import Binning, Outside, Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.readers import write_npz
from axonnx.train.data.left_out import LeftOut

SENSOR = Sensor(width=4, height=2)
BINNING = Binning(sensor=SENSOR, bins=2, bin_us=1000)
SETTINGS = (
    *("--data.bins", "2", "--data.duration_ms", "2", "--model.hidden", "[4]", "--optimiser.epochs", "1"),
    *("--optimiser.batch_size", "4", "--eval_samples", "1"),
)


@pytest.fixture
def own(tmp_path):
    """Five recordings of four events, one of them beyond 2 ms, for two classes; and one recording of a third."""
    for name, count in (("clap", 5), ("jump", 1), ("wave", 5)):
        (tmp_path / "own" / name).mkdir(parents=True)
        for number in range(count):
            events = make_events(7_000 + np.array([0, 10, 1_500, 2_500 + number]), [0, 1, 2, 3], 1, 0)
            write_npz(tmp_path / "own" / name / f"{number}.npz", events, SENSOR)
    return tmp_path / "own"


def train(own, run, *words):
    assert main(["train", "digits-saccade", "--data.name", str(own), "--out", str(run), *SETTINGS, *words]) == 0


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_run_tells_and_keeps_what_was_left_out(own, tmp_path, capsys, quiet):
    train(own, tmp_path / "run", *quiet)
    err = capsys.readouterr().err
    told = "axonnx train: warning: train: 9 of 36 events (25.0 %) are in no bin (9 beyond the window)"
    assert f"{told}; see data.duration_ms" in err
    assert "warning: test: no sample of jump (1 in training); its figures say nothing about them" in err
    kept = json.loads((tmp_path / "run" / "data.json").read_text("utf-8"))
    assert kept["train"]["samples"] == [4, 1, 4]
    assert kept["test"]["samples"] == [1, 0, 1]
    assert (kept["train"]["events"], kept["train"]["outside"]["after"], kept["train"]["clipped"]) == (36, 9, 0)
    assert "25.0 %" in (tmp_path / "run" / "log.txt").read_text("utf-8")


def test_a_run_that_sees_all_says_so_without_a_warning(own, tmp_path, capsys):
    train(own, tmp_path / "run", "--data.duration_ms", "4")
    err = capsys.readouterr().err
    assert "axonnx train: train: all 36 events are in bins" in err
    assert "beyond the window" not in err


def test_a_warning_begins_above_one_percent():
    little, much = LeftOut(1000, Outside(after=10), 0), LeftOut(1000, Outside(after=10, off_sensor=1), 0)
    assert little.lines("test", BINNING) == ["test: 10 of 1,000 events (1.0 %) are in no bin (10 beyond the window)"]
    (line,) = much.lines("test", BINNING)
    assert line.startswith("warning: test: 11 of 1,000 events (1.1 %) are in no bin (1 off the sensor, 10 beyond the")


def test_clipped_counts_are_told_where_counts_were_asked_for():
    clipped = LeftOut(1000, Outside(), 200)
    assert clipped.lines("train", BINNING)[0].startswith("warning: train: 200 of 1,000 events (20.0 %) are cut off by")
    binary = BINNING.model_copy(update={"values": "binary"})
    assert clipped.lines("train", binary) == ["train: all 1,000 events are in bins"]
