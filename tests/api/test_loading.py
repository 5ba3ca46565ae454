"""Own data that a network was trained on is divided as in training: figures are of the recordings that it never saw."""

import shutil

import numpy as np
import pytest

import axonnx
from axonnx.loading import samples_for

SETTINGS = {"epochs": 1, "model.hidden": [8], "data.bins": 5, "data.duration_ms": 300, "eval_samples": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with 24 recordings of two digits, a run that was trained on them, and its file."""
    top = tmp_path_factory.mktemp("own")
    digits = axonnx.load_data("digits-saccade", "train")
    for label in (0, 1):
        (top / f"mine/{label}").mkdir(parents=True)
        for index in np.flatnonzero(digits.labels == label)[:12]:
            axonnx.write_events(top / f"mine/{label}/{index}.npz", digits[index], digits.sensor)
    run = axonnx.Run.train("digits-saccade", top / "run", data=str(top / "mine"), settings=SETTINGS)
    run.export(top / "mine.onnx", weights="float32")
    return top


def notes(place, data="mine", **options):
    return axonnx.load(place / "mine.onnx").evaluate(place / data, **options).notes


def test_the_test_part_is_taken_and_is_that_of_the_run(place):
    model, run = axonnx.load(place / "mine.onnx"), axonnx.Run(place / "run")
    found, of_run = model.evaluate(place / "mine"), model.evaluate(run)
    assert found.notes == ("5 of 24 samples: the test part, as training divided the data",)
    assert (found.truth, found.decisions) == (of_run.truth, of_run.decisions)
    assert found.data_sha256 == of_run.data_sha256
    assert len(found.truth) == 5
    both = {part: samples_for(str(place / "mine"), model.contract, part) for part in ("train", "test")}
    assert [each.count for each in both.values()] == [19, 5]
    with pytest.raises(axonnx.AxonnxError, match="has no part 'validation'; it has train, test"):
        model.evaluate(place / "mine", part="validation")


def test_a_folder_that_was_moved_is_known_by_its_contents(place, tmp_path):
    shutil.copytree(place / "mine", tmp_path / "mine")
    assert notes(place, tmp_path / "mine") == ("5 of 24 samples: the test part, as training divided the data",)


def test_data_that_changed_is_taken_whole_and_the_figures_say_what_they_are(place, tmp_path):
    shutil.copytree(place / "mine", tmp_path / "mine")
    axonnx.write_events(tmp_path / "mine/0/new.npz", axonnx.read_events(next((place / "mine/1").iterdir())))
    assert notes(place, tmp_path / "mine") == ()  # elsewhere: nothing says that it was trained on
    (place / "mine/0/new.npz").write_bytes((tmp_path / "mine/0/new.npz").read_bytes())
    try:
        assert notes(place) == ("the network was trained on most of this data",)
        assert axonnx.load(place / "mine.onnx").evaluate(place / "mine").samples == 25
    finally:
        (place / "mine/0/new.npz").unlink()


def test_without_the_training_part_of_the_library_the_figures_say_what_they_are(place, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "axonnx.train.build", None)
    assert notes(place) == ("the network was trained on most of this data",)


def test_other_ways_to_fit_a_sensor_are_not_those_of_the_training(place):
    assert notes(place, fit="resize") == ("the network was trained on most of this data",)
