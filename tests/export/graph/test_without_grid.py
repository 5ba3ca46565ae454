"""Without the grid the order of additions decides membranes, and one wrong number is noticed: the proof bites."""

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from axonnx.export.collapse.network import WeightChoice, collapse
from axonnx.export.collapsed import Collapsed, CollapseSettings
from axonnx.export.graph.capture import Member, capture
from axonnx.models import Network, SpikingMLP
from axonnx.runtime.format.contract import InputContract

from ..running import Comparison, Exported, export, exported, open_session
from ..small_networks import counts

ARRIVING = InputContract(name="events", shape=(300,), steps=200, largest=3)
WEIGHT = "hidden.0.synapse.weight"


def network(seed: int) -> SpikingMLP:
    torch.manual_seed(seed)
    return SpikingMLP(300, [64, 64], 5)


def without_grid(original: Network, arriving: InputContract) -> Exported:
    """An export that leaves out one thing: rounding to the grid."""
    collapsed = collapse(original, WeightChoice())
    member = Member(collapsed, capture(collapsed, arriving.shape))
    return exported(Collapsed((member,), CollapseSettings(weights="float32"), arriving, ()))


def compare(one: Exported, seeds: range, batch: int = 7) -> Comparison:
    comparison = Comparison()
    for seed in seeds:
        torch.manual_seed(seed)
        x = counts(ARRIVING, batch, 200)
        comparison.add(one.on_torch(x, {}), one.on_onnxruntime(x, {}))
    return comparison


def in_order(weight: np.ndarray, bias: np.ndarray, x: np.ndarray, backwards: bool) -> np.ndarray:
    """W·x + b in float32, added up one by one from the first input to the last, or the other way round.

    Both are legal orders, and some processor's GEMM may well take either; numpy's cumsum takes this one everywhere.
    """
    products = x[:, None] * weight
    return np.cumsum(products[..., ::-1] if backwards else products, -1)[..., -1] + bias


def hidden_layers(network: Network, x: np.ndarray, backwards: bool) -> dict[str, np.ndarray]:
    """Membranes and spikes of a pass with an explicit order of all additions, from the equations of the LIF neuron."""
    layers = [
        [getattr(owner, name).numpy() for owner, name in _constants(layer)] + [np.zeros(1, np.float32)] * 2
        for layer in network.hidden
    ]
    seen: dict[str, list[np.ndarray]] = {}
    for step in x:
        spikes = step
        for number, (weight, bias, decay, threshold, membrane, before) in enumerate(layers):
            current = in_order(weight, bias, spikes, backwards)
            membrane = decay * membrane + current - threshold * before
            spikes = (membrane >= threshold).astype(np.float32)
            layers[number][4:] = membrane, spikes
            seen.setdefault(f"membrane/{number}", []).append(membrane)
            seen.setdefault(f"spikes/{number}", []).append(spikes)
    return {name: np.stack(steps) for name, steps in seen.items()}


def _constants(layer) -> list[tuple[torch.nn.Module, str]]:
    neuron = layer.neuron
    return [(layer.synapse, "weight"), (layer.synapse, "bias"), (neuron, "decay"), (neuron, "threshold")]


def both_orders(network: Network, steps: int, batch: int) -> Comparison:
    torch.manual_seed(0)
    x = counts(ARRIVING, batch, steps).numpy()
    comparison = Comparison()
    comparison.add(hidden_layers(network, x, backwards=False), hidden_layers(network, x, backwards=True))
    return comparison


def test_without_the_grid_the_order_of_additions_decides_membranes():
    """And a spike, wherever a threshold stands between the two."""
    found = both_orders(collapse(network(0), WeightChoice()), steps=50, batch=7)
    assert found.differing["membranes"] > 0.1 * found.compared["membranes"]


def test_with_the_grid_no_order_of_additions_decides_anything():
    found = both_orders(export(network(0), ARRIVING).collapsed.network, steps=50, batch=7)
    found.hold(("spikes", "membranes"))


def test_the_explicit_pass_is_the_networks_own():
    whole = export(network(0), ARRIVING)
    torch.manual_seed(0)
    x = counts(ARRIVING, 3, 20)
    found = hidden_layers(whole.collapsed.network, x.numpy(), backwards=False)
    expected = whole.on_torch(x, {})
    for number in range(2):
        assert np.array_equal(found[f"spikes/{number}"], expected[f"trace/spikes/hidden.{number}.neuron"])
        assert np.array_equal(found[f"membrane/{number}"], expected[f"trace/membrane/hidden.{number}.neuron"])


def test_with_the_grid_the_same_networks_do_not_differ():
    found = compare(export(network(0), ARRIVING), range(2))
    found.hold(("spikes", "membranes", "logits"))


@pytest.mark.parametrize(("stored", "name"), [("float32", WEIGHT), ("int16", f"{WEIGHT}/int16")])
def test_a_weight_that_is_one_grid_step_off_is_noticed(stored, name):
    whole = export(network(0), ARRIVING, CollapseSettings(weights=stored))
    step = 1 if stored == "int16" else np.float32(2.0 ** -whole.collapsed.certificates[0].grid)
    changed = onnx.ModelProto.FromString(whole.data)
    body = next(node for node in changed.graph.node if node.op_type == "Scan").attribute[0].g
    for tensor in body.initializer:
        if tensor.name == name:
            weight = numpy_helper.to_array(tensor).copy()
            weight[0, 0] += step
            tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))
    other = Exported(whole.collapsed, whole.contract, changed, open_session(changed))
    x = counts(ARRIVING, 7, 200)
    comparison = Comparison()
    comparison.add(whole.on_torch(x, {}), other.on_onnxruntime(x, {}))
    assert comparison.differing["membranes"] > 0
