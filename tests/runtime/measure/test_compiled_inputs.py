"""Recordings for compiled code: the runtime makes of them the frames that they were made from."""

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor, bin_events
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.contract import FitContract, InputContract
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.compiled_inputs import crafted, device_recording, tied_frames
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.streams.adapt import Adapter, Region

from ..streams.small_models import SENSOR, export, samples

FITS = {
    "none": None,
    "crop": FitContract(sensor=Sensor(width=30, height=20), left=3, top=2, width=8, height=6),
    "resize": FitContract(sensor=Sensor(width=30, height=20), left=3, top=2, width=25, height=17),
    "enlarge": FitContract(sensor=Sensor(width=5, height=4), width=5, height=4),
}


def events_of(text: str) -> np.ndarray:
    rows = np.array([line.split(",") for line in text.splitlines()[1:]], np.int64).reshape(-1, 4)
    return make_events(*rows.T)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("origin", ["zero", "first"])
@pytest.mark.parametrize(
    "rule", [{}, {"polarity": "merge", "downsample": 2}, {"values": "binary"}, {"most_events": 9}, {"most_events": 1}]
)
def test_the_runtime_bins_the_events_to_the_frames(fit, origin, rule):
    binning = Binning(sensor=SENSOR, bins=4, bin_us=700, clip=3, origin=origin, **rule)
    entering = InputContract(name="x", shape=binning.frame_shape, steps=4, binning=binning, fit=FITS[fit], largest=3)
    random = np.random.default_rng(3)
    windows = random.integers(0, binning.limit + 1, (3, *binning.shape))
    windows[0, 0, :, 0], windows[1] = 0, 0
    given = device_recording("by hand", entering, windows, random)
    events = events_of(given.text)
    assert (np.diff(events["t"]) >= 0).all()
    if (region := FITS[fit]) is not None:
        where = Region(region.left, region.top, region.width, region.height)
        events = Adapter(SENSOR, region.sensor, region=where)(events)
    whole = bin_events(events, binning.model_copy(update={"bins": len(given.frames) * 4}))
    assert np.array_equal(whole.frames.reshape(given.frames.shape), given.frames)
    assert whole.outside.bad_polarity > 0
    assert whole.outside.before == (origin == "zero")
    if "most_events" in rule:
        full = given.frames.sum((2, 3, 4)) == rule["most_events"]
        assert full.sum() > 4
        assert not full.all()
    elif fit != "enlarge":
        assert np.array_equal(given.frames, windows)
    if not rule:
        assert whole.clipped > 0


def test_silence_at_the_end_is_left_out_and_silence_alone_is_one_window():
    binning = Binning(sensor=SENSOR, bins=4, bin_us=700, origin="first")
    entering = InputContract(name="x", shape=binning.frame_shape, steps=4, binning=binning, largest=255)
    windows = np.zeros((3, *binning.shape), np.int64)
    silent = device_recording("by hand", entering, windows, np.random.default_rng(1))
    assert silent.frames.shape == (1, *binning.shape)
    windows[1, 2, 0, 0, 0] = 5
    given = device_recording("by hand", entering, windows, np.random.default_rng(1))
    assert given.frames.shape == (2, *binning.shape)
    assert given.frames.sum() == 6  # bin 0 begins with an event


@pytest.mark.parametrize("name", ["plain", "fine"])
def test_tied_frames_put_a_membrane_on_its_threshold(tmp_path, name):
    program = compile_program(read_model_file(export(samples()[name], tmp_path / "model.onnx")))
    found = tied_frames(program, np.random.default_rng(0))
    x = to_input(np.stack(found)[None], program.contract.input)
    engine = NumpyEngine(program)
    traces = engine.advance(engine.initial_state(len(found)), x, {}, trace=True).traces
    layer = program.layers[0].name
    tied = traces[f"membrane/{layer}"] == np.float32(1)
    assert tied.any(axis=tuple(range(2, tied.ndim))).all()
    assert (traces[f"spikes/{layer}"][tied] == 1).all()


def test_generated_input_has_nothing_ties_and_several_windows(tmp_path):
    program = compile_program(read_model_file(export(samples()["plain"], tmp_path / "model.onnx")))
    found = {each.name.removeprefix("generated input ").strip("'"): each for each in crafted(program, 0)}
    assert found["nothing"].frames.sum() == 0
    assert "ties 0" in found
    many = found["many, few, none, the largest, few"].frames
    assert len(many) == 5
    assert many[2].sum() == 0
    assert (many[3] == 3).all()
