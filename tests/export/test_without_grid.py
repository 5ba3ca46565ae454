"""The same comparison without the grid fails somewhere, so the proof is known to bite."""

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from axonnx.export.assemble import Member
from axonnx.export.collapse import WeightChoice, collapse
from axonnx.export.exporter import Collapsed, CollapseSettings
from axonnx.export.trace import trace
from axonnx.models import Network, SpikingMLP
from axonnx.runtime.contract import InputContract

from .running import Comparison, Exported, export, exported, open_session
from .small_networks import counts

ARRIVING = InputContract(name="events", shape=(300,), steps=200, largest=3)


def network(seed: int) -> SpikingMLP:
    torch.manual_seed(seed)
    return SpikingMLP(300, [64, 64], 5)


def without_grid(original: Network, arriving: InputContract) -> Exported:
    """An export that leaves out one thing: rounding to the grid."""
    collapsed = collapse(original, WeightChoice())
    member = Member(collapsed, trace(collapsed, arriving.shape))
    return exported(Collapsed((member,), CollapseSettings(), arriving, ()))


def compare(one: Exported, seeds: range, batch: int = 7) -> Comparison:
    comparison = Comparison()
    for seed in seeds:
        torch.manual_seed(seed)
        x = counts(ARRIVING, batch, 200)
        comparison.add(one.on_torch(x, {}), one.on_onnxruntime(x, {}))
    return comparison


def test_without_the_grid_torch_and_onnxruntime_differ():
    found = compare(without_grid(network(0), ARRIVING), range(2))
    assert found.differing["membranes"] > 10_000
    assert found.differing["logits"] > 0
    assert found.largest_logit_difference > 0


def test_without_the_grid_a_spike_differs_sooner_or_later():
    bare = without_grid(network(0), ARRIVING)
    assert any(compare(bare, range(seed, seed + 1), batch=100).differing["spikes"] for seed in range(40))


def test_with_the_grid_the_same_networks_do_not_differ():
    found = compare(export(network(0), ARRIVING), range(2))
    found.hold(("spikes", "membranes", "logits"))


def test_without_the_grid_two_orders_of_additions_differ():
    weight = collapse(network(0), WeightChoice()).hidden[0].synapse.weight.numpy()
    x = counts(ARRIVING, 50, 1).numpy()[0]
    forwards, backwards = (np.cumsum(products, -1)[..., -1] for products in _both_ways(x, weight))
    assert (forwards != backwards).mean() > 0.1


def test_with_the_grid_two_orders_of_additions_agree():
    weight = export(network(0), ARRIVING).collapsed.network.hidden[0].synapse.weight.numpy()
    x = counts(ARRIVING, 50, 1).numpy()[0]
    forwards, backwards = (np.cumsum(products, -1)[..., -1] for products in _both_ways(x, weight))
    assert forwards.dtype == np.float32
    assert np.array_equal(forwards, backwards)


def test_a_weight_that_is_one_grid_step_off_is_noticed():
    whole = export(network(0), ARRIVING)
    step = np.float32(2.0 ** -whole.collapsed.certificates[0].grid)
    changed = onnx.ModelProto.FromString(whole.data)
    body = next(node for node in changed.graph.node if node.op_type == "Scan").attribute[0].g
    for tensor in body.initializer:
        if tensor.name == "hidden.0.synapse.weight":
            weight = numpy_helper.to_array(tensor).copy()
            weight[0, 0] += step
            tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))
    other = Exported(whole.collapsed, whole.contract, changed, open_session(changed))
    x = counts(ARRIVING, 7, 200)
    comparison = Comparison()
    comparison.add(whole.on_torch(x, {}), other.on_onnxruntime(x, {}))
    assert comparison.differing["membranes"] > 0


def _both_ways(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    products = x[:, None] * weight
    return products, products[..., ::-1]
