"""The contract in a file: right, whole after a round trip, and refused where it is not one."""

import json

import onnx
import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import LIFSettings, RecurrentSNN, SpikingMLP
from axonnx.runtime.binning import Binning
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.contract import (
    METADATA_KEY,
    AccuracyContract,
    Contract,
    InputContract,
    Provenance,
    read_contract,
)

from .running import Exported, export
from .small_networks import Recipe, build, input_of

CLASSES = ("left", "right", "still", "up", "down")
BINNING = Binning.over(duration_us=300_000, bins=30, sensor=Sensor(width=3, height=3), clip=3)
ARRIVING = InputContract(name="events", shape=(2, 3, 3), steps=30, binning=BINNING, largest=3)


def contract_in(model: onnx.ModelProto, where: str = "model.onnx") -> Contract:
    texts = {entry.key: entry.value for entry in model.metadata_props}
    return read_contract(texts[METADATA_KEY], where)


@pytest.fixture(scope="module")
def recurrent() -> Exported:
    recipe = Recipe("recurrent-snn", reset="zero", decay="learned")
    return export(build(recipe), input_of(recipe), CollapseSettings("stochastic"))


def test_a_contract_comes_back_whole_from_a_file(tmp_path):
    torch.manual_seed(0)
    collapsed = collapse_network(RecurrentSNN(18, [12], 5), ARRIVING, CollapseSettings("sampled", 2, seed=9))
    figures = {"right": 6, "samples": 8, "accuracy": 0.75, "interval": (0.5, 0.9), "nll": 0.1 + 0.2}
    accuracy = (AccuracyContract(way="file", draws=2, **figures),)
    provenance = Provenance(checkpoint="ab" * 32, config="seed = 0\n", data="digits", versions={"torch": "2.13"})
    contract = make_contract(collapsed, CLASSES, "step", accuracy, provenance)
    write_model(build_model(collapsed, contract), tmp_path / "model.onnx")
    back = contract_in(onnx.load(tmp_path / "model.onnx"))
    assert back == contract
    assert back.model_dump_json() == contract.model_dump_json()
    assert back.input.binning == BINNING
    assert back.accuracy == accuracy


def test_it_says_how_the_network_was_collapsed():
    for settings in (
        CollapseSettings(),
        CollapseSettings("sampled", 3, seed=5, prune=0.1),
        CollapseSettings("stochastic", weights="int16"),
    ):
        collapse = export(build(Recipe()), input_of(Recipe()), settings).contract.collapse
        assert (collapse.mode, collapse.members, collapse.prune) == (settings.mode, settings.members, settings.prune)
        assert collapse.seed == (5 if settings.mode == "sampled" else None)  # no other mode draws anything
        assert collapse.weights == settings.weights
        assert collapse.calibrated is False


def test_thresholds_decays_and_resets_are_the_networks(recurrent):
    network = recurrent.collapsed.network
    neurons = [layer for layer in recurrent.contract.layers if layer.op.endswith("LIFToZero")]
    assert [layer.name for layer in neurons] == ["hidden.0.neuron", "hidden.1.neuron"]
    for layer in neurons:
        module = network.get_submodule(layer.name)
        assert layer.op == "StochasticLIFToZero"
        assert layer.threshold == float(module.threshold) == 1.0
        assert layer.decay == float(module.decay) != LIFSettings().decay
        assert layer.reset == "zero"
        assert layer.noise == f"noise/{layer.name}"
        assert layer.states == tuple(f"{kind}/{layer.name}" for kind in ("membrane", "variance", "spikes"))
    assert [layer.shape for layer in neurons] == [(12,), (9,)]
    readout = recurrent.contract.layers[-1]
    assert (readout.name, readout.op, readout.shape) == ("readout", "LeakySum", (5,))
    assert readout.decay == pytest.approx(LIFSettings().decay)
    assert (readout.threshold, readout.reset, readout.noise) == (None, None, None)


def test_rules_that_every_file_shares_are_written_down(recurrent):
    contract = recurrent.contract
    assert (contract.format, contract.kind, contract.tie) == (1, "spiking", ">=")
    assert (contract.reset_timing, contract.logits) == ("next step", "total / steps")
    assert contract.classes == tuple(f"class {number}" for number in range(5))


def test_thresholds_of_their_own_are_told_as_a_range():
    network = SpikingMLP(18, [12], 5)
    thresholds = {"hidden.0.neuron": torch.linspace(0.5, 1.5, 12)}
    exported = export(network, ARRIVING, thresholds=thresholds)
    assert exported.contract.layers[0].threshold == (0.5, 1.5)
    assert exported.contract.collapse.calibrated is True
    assert torch.equal(exported.collapsed.network.hidden[0].neuron.threshold, thresholds["hidden.0.neuron"])


def test_certificates_hold_for_the_weights_of_the_file(recurrent):
    """Worked out again from the file: multiples of 2^−s whose sums stay below 2^24 units."""
    network, found = recurrent.collapsed.network, {c.weight: c for c in recurrent.contract.synapses}
    assert len(found) == 7
    for name, certificate in found.items():
        owner = network.get_submodule(name.rpartition(".")[0])
        weight = getattr(owner, name.rpartition(".")[2]).double()
        bias = getattr(owner, "bias", None)
        unit = 2.0**certificate.grid
        assert torch.equal(weight * unit, torch.round(weight * unit)), name
        rows = weight.abs().flatten(1).sum(1) * certificate.input_max
        if bias is not None and name.endswith(".weight"):
            assert torch.equal(bias.double() * unit, torch.round(bias.double() * unit)), name
            rows = rows + bias.double().abs()
        largest = float(rows.max()) * unit * 2.0**certificate.input_bits
        assert largest <= certificate.bound < 2**24  # a bound of two sums together is larger than that of one


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tree: tree | {"colour": "red"}, "colour: Extra inputs are not permitted"),
        (lambda tree: tree | {"format": 2}, "format: Input should be 1"),
        (lambda tree: tree | {"format": "1"}, "format: Input should be 1"),
        (lambda tree: {k: v for k, v in tree.items() if k != "layers"}, "layers: Field required"),
        (lambda tree: tree | {"tie": ">"}, "tie: Input should be '>='"),
        (lambda tree: tree | {"kind": "quantum"}, "kind: Input should be 'spiking' or 'binary'"),
        (lambda tree: tree | {"input": tree["input"] | {"shift": 17}}, "input.shift: Input should be less than"),
        (lambda tree: tree | {"input": tree["input"] | {"unit": "mV"}}, "input.unit: Extra inputs are not permitted"),
        (lambda tree: tree | {"collapse": {"mode": "best"}}, "collapse.mode: Input should be 'mfa'"),
        (lambda tree: tree | {"synapses": [{"name": "x"}]}, "synapses.0.weight: Field required"),
    ],
)
def test_what_is_no_contract_is_refused_with_the_reason(change, reason, recurrent):
    text = json.dumps(change(json.loads(recurrent.contract.model_dump_json())))
    with pytest.raises(AxonnxError) as fault:
        read_contract(text, "gesture.onnx")
    assert str(fault.value).startswith(f"gesture.onnx: cannot read its contract: {reason}")
    assert str(fault.value).endswith("(this version reads format 1). Export the network again, or upgrade axonnx")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "not json", "{}"])
def test_no_contract_at_all_is_refused(text):
    with pytest.raises(AxonnxError, match=r"^gesture\.onnx: cannot read its contract: "):
        read_contract(text, "gesture.onnx")


def test_a_text_cut_short_is_refused_at_any_place(recurrent):
    text = recurrent.contract.model_dump_json()
    for length in range(0, len(text), 97):
        with pytest.raises(AxonnxError, match=r"gesture\.onnx"):
            read_contract(text[:length], "gesture.onnx")
