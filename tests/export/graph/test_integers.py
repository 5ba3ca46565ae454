"""Networks of every kind in integers: the same bits in every engine and stock runtime, or a refusal by name."""

import numpy as np
import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.export.exporting import export_network
from axonnx.export.graph.integers import leak
from axonnx.models import LIF, AveragePool2d, Conv2d, LeakyReadout, LIFSettings, Linear, SpikingMLP, SpikingNetwork
from axonnx.runtime.engines.choose import native_engines
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.ort_engine import OrtEngine, stock_reference, stock_session
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.widths import NotCertifiedError
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.program.step_graph import step_graph

from ..small_networks import CLASSES, Recipe, build, input_of

STEPS = 12
RECIPES = {
    "dense": Recipe(),
    "to zero": Recipe(reset="zero"),
    "decays of neurons": Recipe(decay="of each neuron"),
    "delays": Recipe(delays="some"),
    "recurrent": Recipe(network="recurrent-snn"),
    "recurrent, per weight": Recipe(network="recurrent-snn", granularity="weight", decay="learned", reset="zero"),
    "binary": Recipe(network="binary-mlp"),
    "trained": Recipe(weights="trained"),
    "residual of spikes": Recipe(network="spiking-resnet", stream="spikes", shortcut="conv"),
}


def exported(recipe, path, weights="integer8", largest=3, shift=0, **how):
    network, given = build(recipe), input_of(recipe, largest, shift)
    if recipe.spiking:
        given = given.model_copy(update={"steps": STEPS})
    export_network(network, given, [str(number) for number in range(CLASSES)], path, weights=weights, **how)
    return read_model_file(path)


def inputs(contract, seed=0):
    """Samples of silence, of the largest counts, of the least ones, and of few and many events."""
    rng, shape = np.random.default_rng(seed), contract.input.shape
    most = contract.input.largest
    fields = [np.zeros(shape), np.full(shape, most), np.full(shape, -most)]
    steps = contract.input.steps or 1
    x = np.stack([np.stack(fields)] * steps)
    share = np.array([0.05, 0.3, 0.9]).reshape(3, *(1,) * len(shape))
    drawn = rng.integers(-most, most + 1, (steps, 3, *shape)) * (rng.random((steps, 3, *shape)) < share)
    return (np.concatenate([x, drawn], 1) * contract.input.unit).astype(np.float32)


def compare(file, x):
    """How many numbers were compared, after a check that all are equal, and that something fired."""
    program = compile_program(file)
    plain = NumpyEngine(program)
    expected = plain.advance(plain.initial_state(x.shape[1]), x, {}, trace=True)
    compared = 0
    for engine in (*native_engines(program), OrtEngine(program, step_graph(file))):
        found = engine.advance(engine.initial_state(x.shape[1]), x, {}, trace=True)
        for name, values in expected.traces.items():
            assert np.array_equal(found.traces[name], values), (engine.name, name)
            compared += values.size
        assert np.array_equal(found.logits, expected.logits), engine.name
    spikes = [values for name, values in expected.traces.items() if name.startswith("spikes/")]
    assert all(0 < values.mean() < 1 for values in spikes)
    spiking = file.contract.kind == "spiking"
    logits = expected.logits / np.float32(len(x)) if spiking else expected.logits
    for run in (stock_session(file.proto), stock_reference(file.proto)):
        found = run({"events": x if spiking else x[0]})
        mine = found["logits"][None] if "logits" in found else found["member_logits"]
        assert np.array_equal(mine, logits)
    return compared, expected


WIDTHS = ("integer8", "integer4", "integer2")
CASES = [("dense", weights) for weights in WIDTHS[1:]]
CASES += [(name, WIDTHS[number % 3]) for number, name in enumerate(RECIPES)]


@pytest.mark.parametrize(("name", "weights"), CASES)
def test_every_runtime_has_the_bits(name, weights, tmp_path):
    file = exported(RECIPES[name], tmp_path / "net.onnx", weights)
    contract = file.contract
    compared, expected = compare(file, inputs(contract))
    assert compared > 200
    assert contract.dynamics == "integer"
    most = {"integer8": 127, "integer4": 7, "integer2": 1}[weights]
    for stated in contract.synapses:
        if stated.lift is not None:
            held = compile_program(file).constants[stated.weight] / 2.0**stated.lift
            assert np.array_equal(held, np.rint(held))
            assert most / 2 < np.abs(held).max() <= most
    for layer in contract.layers:
        if layer.width is not None and f"membrane/{layer.name}" in expected.traces:
            assert np.abs(expected.traces[f"membrane/{layer.name}"]).max() < 2.0 ** (layer.width - 1)


@pytest.mark.parametrize("shift", [1, 3])
def test_inputs_in_fractions_become_whole_sums(shift, tmp_path):
    compared, _ = compare(file := exported(Recipe(), tmp_path / "net.onnx", shift=shift), inputs(file.contract))
    assert compared > 500
    assert file.contract.synapses[0].grid == -shift
    assert file.contract.synapses[0].lift >= shift


class Averaging(SpikingNetwork):
    """Maps whose spikes, or currents, are averaged over squares."""

    def __init__(self, currents):
        super().__init__()
        self.currents = currents
        self.maps, self.first, self.pool = Conv2d(1, 3, 3), LIF(), AveragePool2d(2)
        self.dense, self.second, self.readout = Linear(27, 7), LIF(), LeakyReadout(7, 3)

    def compute(self, x, run):
        arriving = self.maps(x, run)
        spikes = self.first(self.pool.current(arriving) if self.currents else arriving, run)
        averaged = spikes if self.currents else self.pool(spikes)
        return self.readout(self.second(self.dense(averaged.flatten(-3), run), run), run)


def test_averages_of_spikes_are_lifted_and_those_of_currents_refused(tmp_path):
    torch.manual_seed(0)
    networks = [Averaging(currents) for currents in (False, True)]
    for network in networks:
        for parameter in network.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
    how = {"steps": STEPS, "largest": 3, "weights": "integer8"}
    path = export_network(networks[0], (1, 8, 8), output=tmp_path / "net.onnx", **how).path
    file = read_model_file(path)
    compared, _ = compare(file, inputs(file.contract))
    assert compared > 10_000
    assert (file.contract.synapses[1].input_bits, file.contract.synapses[1].grid) == (2, -2)
    with pytest.raises(AxonnxError, match="PoolPairs has no form in integers"):
        export_network(networks[1], (1, 8, 8), output=tmp_path / "refused.onnx", **how)


def test_an_ensemble(tmp_path):
    file = exported(Recipe(), tmp_path / "net.onnx", mode="sampled", members=3)
    compared, expected = compare(file, inputs(file.contract))
    assert len(expected.logits) == 3
    assert compared > 1500


@pytest.mark.parametrize(
    ("recipe", "how", "text"),
    [
        (Recipe(), {"mode": "stochastic"}, "neurons in integers have no noise"),
        (Recipe(network="spiking-resnet"), {}, "two layers of neurons hear this synapse"),
    ],
)
def test_what_has_no_form_is_named(recipe, how, text, tmp_path):
    with pytest.raises(AxonnxError, match=text):
        exported(recipe, tmp_path / "net.onnx", **how)


def test_a_membrane_that_never_leaks_is_refused(tmp_path):
    network = SpikingMLP(4, [3], 2, settings=LIFSettings(decay=1.0))
    with pytest.raises((AxonnxError, ValueError), match=r"must leak|decay"):
        export_network(network, (4,), output=tmp_path / "net.onnx", steps=3, largest=1, weights="integer8")


def test_leaks_that_are_shifts_have_no_product():
    found = leak(torch.tensor([0.75, 0.75]))
    assert found["lost"].tolist() == [1, 1]
    assert found["scale"].tolist() == [4, 4]
    assert found["round_above"].tolist() == [2, 2]
    assert leak(torch.tensor(0.9))["lost"] == round(0.1 * 4096)
    with pytest.raises(NotCertifiedError, match="must leak"):
        leak(torch.tensor([0.5, 1.0]))


def test_states_beyond_the_certified_width_are_refused(tmp_path):
    program = compile_program(exported(Recipe(), tmp_path / "net.onnx"))
    arrays = {name: np.zeros((1, *program.buffers[name].shape), np.float32) for name in program.states}
    engine = NumpyEngine(program)
    x = np.zeros((1, 1, *program.contract.input.shape), np.float32)
    engine.advance(State(0, arrays), x, {})
    name = next(name for name in arrays if name.startswith("membrane/"))
    for wrong in (2.0**23, 0.5):
        with pytest.raises(AxonnxError, match="holds other values than graded"):
            engine.advance(State(0, {**arrays, name: arrays[name] + np.float32(wrong)}), x, {})
