"""Integers and pruning: what is stored, that it is exact, and that exactly what should go is gone."""

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from axonnx.export.collapse.network import WeightChoice, collapse
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.models import BinaryMLP, GaussianPosterior, RecurrentSNN, SpikingMLP
from axonnx.runtime.format.contract import InputContract

from ..running import Comparison, Exported, export
from ..small_networks import Recipe, build, counts, input_of, stir

ARRIVING = InputContract(name="events", shape=(40,), steps=50, largest=3)


def network(seed: int = 2) -> RecurrentSNN:
    torch.manual_seed(seed)
    made = RecurrentSNN(40, [64, 48], 5)
    stir(made)
    return made


def constants_of(exported: Exported) -> dict[str, np.ndarray]:
    body = next(node for node in exported.model.graph.node if node.op_type == "Scan").attribute[0].g
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in body.initializer}


@pytest.mark.parametrize(("kind", "dtype"), [("int8", np.int8), ("int16", np.int16)])
@pytest.mark.parametrize("mode", ["mfa", "stochastic"])
def test_weights_are_stored_as_integers_that_stand_for_them_exactly(kind, dtype, mode):
    exported = export(network(), ARRIVING, CollapseSettings(mode, weights=kind))
    constants = constants_of(exported)
    stored = [c for c in exported.contract.synapses if c.stored_as == kind]
    assert {c.name for c in stored} == {
        "hidden.0.synapse",
        "hidden.0.neuron",
        "hidden.1.synapse",
        "hidden.1.neuron",
        "readout",
    }
    for certificate in stored:
        integers, step = constants[f"{certificate.weight}/{kind}"], constants[f"{certificate.weight}/step"]
        assert integers.dtype == dtype
        assert float(step) == 2.0**-certificate.grid
        owner, _, last = certificate.weight.rpartition(".")
        weight = getattr(exported.collapsed.network.get_submodule(owner), last).numpy()
        assert np.array_equal(integers.astype(np.float32) * step, weight)
        assert certificate.weight not in constants  # not stored a second time
    assert len(stored) < len(exported.contract.synapses) or mode == "mfa"


def test_integers_stay_exact_across_runtimes():
    exported = export(network(), ARRIVING, CollapseSettings(weights="int8"))
    comparison = Comparison()
    x = counts(ARRIVING, 7, 50)
    comparison.add(exported.on_torch(x, {}), exported.on_onnxruntime(x, {}))
    short = counts(ARRIVING, 2, 5)
    comparison.add(exported.on_torch(short, {}), exported.on_reference(short, {}))
    comparison.hold(("spikes", "membranes", "logits"))


def test_files_shrink():
    sizes = {
        kind: len(export(network(), ARRIVING, CollapseSettings(weights=kind), trace=False).data)
        for kind in ("float32", "int16", "int8")
    }
    weights = 40 * 64 + 64 * 64 + 64 * 48 + 48 * 48 + 48 * 5
    assert sizes["float32"] - sizes["int16"] > 1.8 * weights
    assert sizes["int16"] - sizes["int8"] > 0.9 * weights


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_variances_are_not_rounded_as_coarsely_as_the_weights(kind):
    recipe = Recipe("recurrent-snn", granularity="weight")
    plain, reduced = (
        collapse_network(build(recipe), input_of(recipe), CollapseSettings("stochastic", weights=weights)).network
        for weights in ("float32", kind)
    )
    for name in ("hidden.0.synapse.spread", "hidden.1.neuron.recurrent_spread"):
        assert torch.equal(plain.get_buffer(name), reduced.get_buffer(name))
    assert not torch.equal(plain.hidden[0].synapse.weight, reduced.hidden[0].synapse.weight)


def signal_to_noise(posterior: GaussianPosterior) -> torch.Tensor:
    return (posterior.mean.abs() / posterior.std).detach()


def drawn(pruned: float | None, mode: str) -> WeightChoice:
    return WeightChoice(torch.Generator().manual_seed(8) if mode == "sampled" else None, pruned)


@pytest.mark.parametrize("mode", ["mfa", "sampled", "stochastic"])
@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_pruning_removes_exactly_what_is_below_the_ratio(mode, granularity):
    made, ratio = build(Recipe("recurrent-snn", granularity=granularity)), 0.8
    plain, pruned = (collapse(made, drawn(prune, mode), mode == "stochastic") for prune in (None, ratio))
    removed = 0
    for number in range(2):
        pairs = [
            (made.hidden[number].synapse.posterior, f"hidden.{number}.synapse.weight"),
            (made.hidden[number].neuron.recurrent.posterior, f"hidden.{number}.neuron.recurrent_weight"),
        ]
        for posterior, name in pairs:
            below = signal_to_noise(posterior) < ratio
            after, before = pruned.get_buffer(name), plain.get_buffer(name)
            assert (after[below] == 0).all()
            assert torch.equal(after[~below], before[~below])
            assert (after[~below] != 0).all()
            removed += int(below.sum())
    assert removed > 50
    assert torch.equal(pruned.readout.weight, plain.readout.weight)  # a point estimate: nothing to prune


def test_a_pruned_weight_has_no_variance_left_and_stays_zero_on_the_grid():
    recipe = Recipe("recurrent-snn")
    made = build(recipe)
    pruned = collapse_network(made, input_of(recipe), CollapseSettings("stochastic", prune=0.8)).network
    below = signal_to_noise(made.hidden[0].synapse.posterior) < 0.8
    assert (pruned.hidden[0].synapse.weight[below] == 0).all()
    assert (pruned.hidden[0].synapse.spread[below] == 0).all()
    assert (pruned.hidden[0].synapse.spread[~below] > 0).all()
    recurrent = signal_to_noise(made.hidden[0].neuron.recurrent.posterior) < 0.8
    assert (pruned.hidden[0].neuron.recurrent_spread[recurrent] == 0).all()


@pytest.mark.parametrize("stored", ["float32", "int8"])
@pytest.mark.parametrize("mode", ["mfa", "stochastic"])
def test_pruned_networks_are_exact_too(mode, stored):
    exported = export(network(), ARRIVING, CollapseSettings(mode, prune=0.5, weights=stored))
    x = counts(ARRIVING, 7, 50)
    noises = exported.noises(x)
    comparison = Comparison()
    comparison.add(exported.on_torch(x, noises), exported.on_onnxruntime(x, noises))
    comparison.hold(("spikes", "membranes", "logits"))


def test_a_ratio_of_zero_removes_nothing_and_a_huge_one_everything():
    plain, zero, huge = (
        collapse(network(), WeightChoice(prune=prune)).hidden[0].synapse.weight for prune in (None, 0.0, 1e9)
    )
    assert torch.equal(plain, zero)
    assert (huge == 0).all()


def test_baselines_are_not_pruned():
    made = build(Recipe("spiking-mlp", "sg-nbn-1"))
    plain, pruned = (collapse(made, WeightChoice(prune=p)).hidden[0].synapse.weight for p in (None, 100.0))
    assert torch.equal(plain, pruned)


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_binary_networks_are_stored_as_integers_too(kind):
    arriving = InputContract(name="events", shape=(40,), steps=None, largest=128, shift=6)
    exported = export(BinaryMLP(40, [16], 5), arriving, CollapseSettings(weights=kind))
    stored = {tensor.name: tensor.data_type for tensor in exported.model.graph.initializer}
    expected = onnx.TensorProto.INT8 if kind == "int8" else onnx.TensorProto.INT16
    assert stored[f"hidden.0.synapse.weight/{kind}"] == expected


def test_zero_weights_stay_zero():
    made = SpikingMLP(40, [16], 5)
    with torch.no_grad():
        made.hidden[0].synapse.posterior.raw_mean.zero_()
    for kind in ("float32", "int8"):
        exported = export(made, ARRIVING, CollapseSettings(weights=kind))
        assert not exported.collapsed.network.hidden[0].synapse.weight.any()
        assert not exported.on_onnxruntime(counts(ARRIVING, 2, 10), {})["trace/spikes/hidden.0.neuron"].any()
