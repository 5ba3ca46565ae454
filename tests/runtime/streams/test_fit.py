"""Recordings of the sensor that training used come onto the network's as in training, unless asked otherwise."""

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.sources import FileSource

CAMERA, NETWORK = Sensor(width=346, height=260), Sensor(width=64, height=48)
TRAINED = FitContract(sensor=CAMERA, left=3, top=2, width=340, height=256)


def source(sensor):
    random = np.random.default_rng(0)
    events = make_events(np.arange(50), random.integers(0, 346, 50), random.integers(0, 260, 50))
    return FileSource("some", Recording(events, "memory", sensor))


@pytest.mark.parametrize("stated", [CAMERA, None])
def test_the_sensor_of_training_and_an_unknown_one_are_moved_as_in_training(stated):
    given = source(stated)
    adapter = Fit().adapter(given, NETWORK, TRAINED)
    events = given.recording.events
    inside = [(int(e["x"]) - 3, int(e["y"]) - 2) for e in events if 3 <= e["x"] < 343 and 2 <= e["y"] < 258]
    expected = [((2 * x + 1) * 64 // 680, (2 * y + 1) * 48 // 512) for x, y in inside]
    assert adapter(events)[["x", "y"]].tolist() == expected
    assert adapter.dropped == {"off_sensor": 0, "cropped": 50 - len(inside)}


def test_what_is_asked_for_goes_before_what_training_did():
    moved = Fit(resize=True).adapter(source(CAMERA), NETWORK, TRAINED)
    assert moved.region == (0, 0, 346, 260)
    assert Fit(crop=(5, 6)).adapter(source(CAMERA), NETWORK, TRAINED).region == (5, 6, 64, 48)
    assert Fit(sensor=NETWORK).adapter(source(None), NETWORK, TRAINED).region is None


def test_another_sensor_is_treated_as_without_it():
    with pytest.raises(AxonnxError, match="640×480, but the network expects 64×48"):
        Fit().adapter(source(Sensor(width=640, height=480)), NETWORK, TRAINED)
    assert Fit().adapter(source(NETWORK), NETWORK, TRAINED).region is None


def test_a_region_lies_on_its_sensor():
    with pytest.raises(ValueError, match="340×256 pixels at 7,2 is not inside the sensor of 346×260"):
        FitContract(sensor=CAMERA, left=7, top=2, width=340, height=256)
