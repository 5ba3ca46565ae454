"""The bins of a deployed file are the bins of training, from the original recording on, wherever its clock stands."""

from functools import partial

import numpy as np
import pytest

from axonnx.cli.command import run_verb
from axonnx.runtime.binning import Sensor, bin_events
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.model import load
from axonnx.runtime.readers import write_npz
from axonnx.train.config.read import check_config
from axonnx.train.data.cache import binned
from axonnx.train.data.registry import load_data_set
from axonnx.train.run import train_run
from axonnx.train.trained import open_run

export = partial(run_verb, "export")

SENSOR = Sensor(width=8, height=6)
SWITCHED_ON = 5_100_000  # µs before the first recording


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Recordings of three classes, on a clock that runs on from one to the next, some longer than a window."""
    folder, generator = tmp_path_factory.mktemp("own"), np.random.default_rng(0)
    clock = SWITCHED_ON
    for label, name in enumerate(("left", "middle", "right")):
        (folder / name).mkdir()
        for number in range(8):
            times = clock + np.sort(generator.integers(0, 9_000, 120))
            x = np.clip(generator.normal(1 + 3 * label, 1, 120), 0, 7).astype(int)
            write_npz(folder / name / f"{number}.npz", make_events(times, x, generator.integers(0, 6, 120)), SENSOR)
            clock = int(times[-1]) + 777
    return folder


@pytest.fixture(scope="module")
def trained(own, tmp_path_factory):
    settings = {
        "device": "cpu",
        "data": {"name": str(own), "bins": 6, "duration_ms": 6.0},
        "model": {"network": "spiking-mlp", "hidden": [8]},
        "variant": {"name": "sbnn"},
        "optimiser": {"epochs": 2, "batch_size": 8},
        "finetune": {},
        "eval_samples": 2,
    }
    run = tmp_path_factory.mktemp("runs") / "run"
    train_run(check_config(settings, "own"), run)
    return run


def test_the_loader_states_the_origin_and_the_binning_follows_it(trained):
    prepared = open_run(str(trained)).prepared
    assert prepared.splits.origin == prepared.binning.origin == "first"
    embedded = load_data_set("digits-saccade")
    assert (embedded.origin, embedded.test.places) == ("zero", None)


def test_original_recordings_give_the_frames_of_training(own, trained):
    prepared = open_run(str(trained)).prepared
    for part in prepared.splits.parts.values():
        frames = binned(part, prepared.binning).data.frames
        for index, place in enumerate(part.places):
            assert (place.path.parent.name, place.number) == (part.classes[part.labels[index]], 0)
            original = part.original(index)
            assert original.events["t"][0] >= SWITCHED_ON
            np.testing.assert_array_equal(bin_events(original.events, prepared.binning).frames, frames[index])
    embedded = load_data_set("digits-saccade").test
    np.testing.assert_array_equal(embedded.original(3).events, embedded[3])


def test_a_session_on_the_original_file_has_the_logits_of_training(trained, tmp_path):
    path = tmp_path / "own.onnx"
    assert export([str(trained), "-o", str(path), "--passes", "2", "--quiet"]) == 0
    run, model, generator = open_run(str(trained)), load(path, "numpy"), np.random.default_rng(1)
    assert model.contract.input.binning.origin == "first"
    test = run.prepared.splits.test
    (batch, _), *rest = run.data("test", None)
    assert not rest
    expected = model.run(batch.numpy()).logits
    for index in range(len(test)):
        events, session = test.original(index).events, model.session(every_bin=False)
        chunks = np.split(events, np.sort(generator.integers(0, len(events), 5)))
        found = [decision for chunk in chunks for decision in session.push(chunk)] + session.flush()
        assert found[0].logits.tobytes() == expected[index].tobytes()
        assert model.predict(test.places[index].path).logits.tobytes() == expected[index].tobytes()
