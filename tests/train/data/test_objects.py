"""Data sets that are objects, trained on and kept with the run."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from axonnx.base.errors import AxonnxError
from axonnx.train.config.settings import DataConfig
from axonnx.train.data.objects import write_objects
from axonnx.train.data.registry import load_data_set
from axonnx.train.run import restore_run, train_run

SETTINGS = {"model.network": "spiking-mlp", "model.hidden": [6], "optimiser.epochs": 1, "eval_samples": 1}


def frames(samples: int = 30) -> TensorDataset:
    random = torch.Generator().manual_seed(0)
    return TensorDataset((torch.rand(samples, 5, 1, 4, 4, generator=random) < 0.3).float(), torch.arange(samples) % 3)


class Events:
    """As tonic has data sets: items (events, label), classes and the size of the sensor."""

    sensor_size = (8, 4, 2)
    classes = ("left", "right")
    dtype = np.dtype([("x", int), ("y", int), ("t", int), ("p", int)])

    def __len__(self) -> int:
        return 20

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        if number >= len(self):
            raise IndexError(number)
        events = np.zeros(40, self.dtype)
        events["x"], events["t"] = 6 * (number % 2) + np.arange(40) % 2, np.arange(40) * 250
        return events, number % 2


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: DataLoader(d, 4), lambda d: d.tensors, lambda d: (d, d)])
def test_a_run_is_trained_on_an_object_and_opened_again_without_it(wrap, tmp_path):
    run = train_run("digits-saccade", tmp_path / "run", data=wrap(frames()), settings=settings_of_frames())
    _, prepared, _ = restore_run(run.folder)
    train, test = prepared.splits.train, prepared.splits.test
    both = 60 if isinstance(wrap(frames()), tuple) and not hasattr(wrap(frames())[0], "shape") else 30
    assert len(train) + len(test) == both
    assert np.array_equal(train.frames[0], frames()[0][0].numpy())


def settings_of_frames() -> dict[str, object]:
    plain = {f"data.{name}": DataConfig.model_fields[name].default for name in ("bins", "duration_ms", "clip")}
    return SETTINGS | plain


def test_events_of_an_object_become_recordings(tmp_path):
    settings = SETTINGS | {"data.bins": 5, "data.duration_ms": 10}
    run = train_run("digits-saccade", tmp_path / "run", data=Events(), settings=settings)
    assert run.classes == ("left", "right")
    _, prepared, _ = restore_run(run.folder)
    assert (prepared.splits.sensor.width, prepared.splits.sensor.height) == (8, 4)
    assert len(prepared.splits.train) + len(prepared.splits.test) == 20


def test_every_fifth_sample_of_a_class_is_for_testing(tmp_path):
    write_objects(frames(), tmp_path)
    splits = load_data_set(tmp_path)
    assert np.bincount(splits.test.labels).tolist() == [2, 2, 2]
    assert np.bincount(splits.train.labels).tolist() == [8, 8, 8]


def test_a_run_that_is_there_keeps_its_samples(tmp_path):
    run = train_run("digits-saccade", tmp_path / "run", data=frames(), settings=settings_of_frames())
    before = (run.folder / "data" / "train.npz").read_bytes()
    with pytest.raises(AxonnxError, match="holds a run already"):
        train_run("digits-saccade", tmp_path / "run", data=frames(60), settings=settings_of_frames())
    assert (run.folder / "data" / "train.npz").read_bytes() == before
    resumed = train_run("digits-saccade", tmp_path / "run", data=frames(60), resume=True)
    assert resumed.training.epochs_done == 1


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (7, "data is a int"),
        ([1, 2], "no pair"),
        ((np.full((10, 1, 2, 2), 0.5), np.zeros(10)), "ToTensor"),
        (type("NoSensor", (Events,), {"sensor_size": None})(), "sensor_size"),
    ],
)
def test_what_is_no_data_is_refused(data, told, tmp_path):
    with pytest.raises(AxonnxError, match=told):
        write_objects(data, tmp_path)
