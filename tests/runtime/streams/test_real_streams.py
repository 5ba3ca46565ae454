"""Real recordings through a network whose sensor is smaller: every event is accounted for."""

import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.binning import bin_events
from axonnx.runtime.readers import read_events

pytestmark = pytest.mark.data


@pytest.fixture
def run(capsys):
    def call(*words):
        words = ["run", *map(str, words), "--windows", "--json", "--engine", "numpy"]
        assert main(words) == 0, capsys.readouterr().err
        *decisions, summary = map(json.loads, capsys.readouterr().out.splitlines())
        assert summary["events"] == summary["binned"] + sum(summary["dropped"].values())
        return decisions, summary

    return call


@pytest.mark.parametrize(("label", "count"), [(1, 63_471), (9, 141_773)])
def test_gestures(run, real, files, label, count):
    path = real(f"dvs128_gesture_events/{label}.bs2")
    _, resized = run(files["slow"], path, "--sensor", "128x128", "--resize")
    assert (resized["events"], resized["binned"], resized["dropped"]) == (count, count, {})
    _, cropped = run(files["slow"], path, "--sensor", "128x128", "--crop", "60,61")
    events = read_events(path).events
    inside = (events["x"] >= 60) & (events["x"] < 68) & (events["y"] >= 61) & (events["y"] < 67)
    assert (cropped["events"], cropped["binned"]) == (count, int(inside.sum()))


def test_nmnist_binary_file(run, real, files):
    decisions, summary = run(
        files["slow"], real("recordings/tonic_sample_nmnist.bin"), "--sensor", "34x34", "--resize", "--every-bin"
    )
    assert summary["binned"] == 4_325
    assert len(decisions) == summary["bins"] == 5


@pytest.mark.parametrize("index", [0, 42, 99])
def test_nmnist_archive(run, real, files, engines, index):
    path = real("nmnist_test_100.npz")
    decisions, summary = run(files["slow"], path, "--index", index, "--sensor", "34x34", "--resize")
    events = read_events(path, index=index).events.copy()
    assert summary["binned"] == len(events)
    events["x"] = (2 * events["x"].astype(int) + 1) * 8 // 68
    events["y"] = (2 * events["y"].astype(int) + 1) * 6 // 68
    engine = engines("slow")
    frames = bin_events(events, engine.program.contract.input.binning).frames.astype(np.float32)
    logits = engine.advance(engine.initial_state(1), frames[:, None], {}).logits[0, 0] / np.float32(5)
    assert np.array(decisions[0]["logits"], np.float32).tobytes() == logits.tobytes()


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("expelliarmus_evt2_sample.raw", 539_481, ["--sensor", "1280x720", "--resize"]),
        ("tonic_sample_ncars.dat", 2_009, ["--sensor", "120x100", "--resize"]),
        ("jaer_VowelSounds.aedat", 111_318, ["--crop", "0,8", "--origin", "first"]),
        ("faery_dvs.es", 473_225, ["--resize"]),
        ("tonic_sample.aedat4", 111_954, ["--crop", "centre", "--origin", "first"]),
        ("expelliarmus_evt3_sample.raw", 219_596, ["--sensor", "1280x720", "--resize"]),
    ],
)
def test_every_format(run, real, files, name, count, words):
    if not name.endswith((".dat", "evt2_sample.raw", ".aedat")):
        pytest.importorskip("faery")
    _, summary = run(files["slow"], real(f"recordings/{name}"), *words)
    assert summary["events"] == count
    assert summary["binned"] > 0


def test_spoken_digits_one_of_many(run, real, files):
    pytest.importorskip("h5py")
    path = real("shd_regen_mini100.h5")
    _, summary = run(files["slow"], path, "--index", "7", "--resize")
    assert summary["events"] == summary["binned"] == len(read_events(path, index=7).events)
