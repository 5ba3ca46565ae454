"""What a report measures is what the engine and the training code say."""

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.frame_pipeline import FramePipeline
from axonnx.runtime.measure.metrics import expected_calibration_error
from axonnx.runtime.measure.profile import early_exits
from axonnx.runtime.measure.samples import Chosen
from axonnx.runtime.report.decisions import calibration_bins, reliability
from axonnx.runtime.report.measure import choose, measure
from axonnx.runtime.report.model_view import view_model
from axonnx.runtime.report.samples import telling_neurons

from .conftest import read_samples


@pytest.fixture(params=["model", "ensemble", "images"])
def measured(request):
    path = request.getfixturevalue(request.param)
    view = view_model(path)
    samples = read_samples(path.parent / "samples.npz", view.contract, 20)
    return view, samples, measure(NumpyEngine(view.program), samples, 3)


def test_decisions_are_those_of_the_file_run_at_once(measured):
    view, samples, found = measured
    decisions = FramePipeline(NumpyEngine(view.program), samples.frames).decisions()
    whole = [decision.probabilities for decision in decisions]
    assert np.array_equal(found.final, np.stack(whole))


def test_rates_are_those_of_the_traces(measured):
    view, samples, found = measured
    every = measure(NumpyEngine(view.program), samples, len(samples.frames)).shown
    assert len(every) == 20
    for name, rates in found.rates.items():
        assert rates == pytest.approx(np.mean([sample.spikes[name] for sample in every], axis=(0, 2)))
        assert found.spikes[name] == pytest.approx(np.mean([sample.spikes[name].sum() for sample in every]))


def test_spikes_are_where_membranes_reach_their_threshold(model, samples):
    view = view_model(model)
    (sample,) = measure(NumpyEngine(view.program), read_samples(samples, view.contract, 4), 1).shown
    assert sample.membranes.keys() == sample.spikes.keys()
    for name, membrane in sample.membranes.items():
        assert np.array_equal(sample.spikes[name], membrane >= view.thresholds(name))


def test_no_samples_are_refused(model):
    view = view_model(model)
    with pytest.raises(AxonnxError, match="no samples"):
        measure(NumpyEngine(view.program), Chosen(np.zeros((0, 8, 2, 6, 6), int), None, "x"), 1)


def test_chosen_samples_are_of_all_classes_with_one_that_went_wrong():
    labels = np.array([0, 0, 1, 1, 2, 2])
    decided = np.array([0, 0, 1, 2, 2, 2])
    assert choose(decided, labels, 3) == [0, 2, 3]
    assert choose(decided, labels, 4) == [0, 2, 3, 4]
    assert choose(decided, None, 2) == [0, 2]
    assert choose(decided, labels, 0) == []
    assert choose(decided, labels, 99) == [0, 1, 2, 3, 4, 5]


def test_layers_and_their_weights(model, ensemble, images):
    view = view_model(model)
    assert [layer.name for layer in view.layers] == ["hidden.0.neuron", "hidden.1.neuron", "readout"]
    assert [layer.synapses[0].weights for layer in view.layers] == [72 * 12, 12 * 9, 9 * 3]
    assert view.parameters == 72 * 12 + 12 * 9 + 9 * 3 + sum(s.biases for s in view.synapses.values())
    assert len(view_model(ensemble).layers) == 3
    assert view_model(ensemble).parameters == 2 * view.parameters
    assert [layer.neurons for layer in view_model(images).layers] == [12, 9, 3]


def test_the_bars_are_those_of_the_calibration_error_beside_them():
    generator = np.random.default_rng(0)
    confidence, right = generator.random(500), generator.random(500) < 0.6
    bars = calibration_bins(confidence, right)
    by_bars = sum(each.samples * abs(each.accuracy - each.confidence) for each in bars) / 500
    expected = expected_calibration_error(confidence, right)
    assert by_bars == pytest.approx(expected)
    assert f"Expected calibration error {expected:.4f}" in reliability(confidence, right)


def test_certainty_of_one_is_in_the_last_bin():
    (only,) = calibration_bins(np.ones(3), np.array([True, True, False]))
    assert (only.high, only.samples) == (1.0, 3)


def test_early_exits_stop_at_the_first_step_that_is_certain_enough():
    probabilities = np.array([[[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.45, 0.55], [0.3, 0.7]]])
    exits = early_exits(probabilities.swapaxes(0, 1), np.array([1, 1]))
    by_certainty = {entry.stop_at: (entry.accuracy, entry.mean_steps) for entry in exits}
    assert by_certainty[0.5] == (0.5, 1.0)  # ties go to the first class
    assert by_certainty[0.9] == (0.5, 2.5)
    assert by_certainty[0.99] == (1.0, 3.0)


def test_telling_neurons():
    spikes = np.zeros((4, 5), bool)
    spikes[:, 3], spikes[0, 1] = True, True
    membranes = np.zeros((4, 5), np.float32)
    membranes[2, 4] = 0.9
    assert telling_neurons(spikes, membranes) == [3, 1, 4]
    assert telling_neurons(np.zeros((4, 5), bool), membranes) == [4]
    assert telling_neurons(np.ones((4, 1), bool), membranes[:, :1]) == [0]
