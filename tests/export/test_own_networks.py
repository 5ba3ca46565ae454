"""Networks that are not shipped go the same way: collapse, export in all three modes, comparison to the last bit."""

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from axonnx.base.errors import AxonnxError
from axonnx.export.collapsed import CollapseSettings
from axonnx.models import LIF, Conv2d, Current, FilledPool2d, LeakyReadout, Linear, MaxPool2d, Network
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.values import SPIKES
from axonnx.runtime.model import load
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.program.instructions import MaxPool

from ..runtime.codegen.c.machine import Machine, needs_compiler
from ..runtime.codegen.js.node import needs_node, node
from .own_networks import LayersOfTorch, TwoBinaryBranches, TwoBranches, Wired
from .running import Comparison, Exported, export
from .small_networks import counts, stir

SPIKING = InputContract(name="events", shape=(2, 8, 8), steps=60, largest=7)
BINARY = InputContract(name="events", shape=(3, 8, 8), steps=None, largest=128, shift=6)
VECTOR = InputContract(name="events", shape=(12,), steps=30, largest=9)
ENGINES = ("numpy", "native", "ort")
MODES = {
    "mfa": CollapseSettings(),
    "sampled": CollapseSettings("sampled", 3, seed=7),
    "stochastic": CollapseSettings("stochastic"),
    "int8": CollapseSettings(weights="int8"),
    "pruned": CollapseSettings("stochastic", prune=0.5),
}


def made(kind: type[Network]) -> Network:
    torch.manual_seed(11)
    network = kind()
    stir(network)
    return network.eval()


def compare(exported: Exported, steps: int = 60) -> Comparison:
    comparison = Comparison()
    arriving = exported.contract.input
    for x in (counts(arriving, 7, steps), counts(arriving, 1, 3, 1.0)):
        noises = exported.noises(x)
        expected = exported.on_torch(x, noises)
        comparison.add(expected, exported.on_onnxruntime(x, noises))
    short = counts(arriving, 2, 3)
    noises = exported.noises(short)
    comparison.add(exported.on_torch(short, noises), exported.on_reference(short, noises))
    return comparison


@pytest.mark.parametrize("mode", MODES)
def test_two_branches_a_skip_a_pooling_and_a_recurrent_layer(mode):
    exported = export(made(TwoBranches), SPIKING, MODES[mode])
    comparison = compare(exported)
    comparison.hold(("spikes", "membranes", "logits"))
    layers = {layer.name for layer in exported.contract.layers if "member" not in layer.name}
    expected = {"fine_neuron", "coarse_neuron", "inner_neuron", "memory", "readout"}
    assert layers == (expected if mode != "sampled" else set())


@pytest.mark.parametrize("mode", MODES)
def test_two_branches_without_time(mode):
    compare(export(made(TwoBinaryBranches), BINARY, MODES[mode])).hold(("spikes", "logits"))


def test_every_layer_of_an_own_network_fires_and_rests():
    """A comparison of silent layers would prove little."""
    exported = export(made(TwoBranches), SPIKING)
    for name, value in exported.on_torch(counts(SPIKING, 7, 60), {}).items():
        if "spikes/" in name:
            assert 0.01 < value.mean() < 0.99, name


def test_a_synapse_may_be_called_twice():
    """Once on counts of up to 9, once on spikes: its grid must hold for the larger."""

    def compute(net, x, run):
        return net.readout(net.late(net.shared(net.early(net.shared(x, run), run), run), run), run)

    torch.manual_seed(0)
    network = Wired(compute, shared=Linear(12, 12), early=LIF(), late=LIF(), readout=LeakyReadout(12, 3))
    exported = export(network, VECTOR)
    compare(exported, 30).hold(("spikes", "membranes", "logits"))
    certificates = [c for c in exported.contract.synapses if c.name == "shared"]
    assert [(c.input_max, c.input_bits) for c in certificates] == [(9.0, 0)]


def test_a_layer_that_is_never_called_is_left_out():
    def compute(net, x, run):
        return net.readout(net.neuron(net.synapse(x, run), run), run)

    layers = {"synapse": Linear(12, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    exported = export(Wired(compute, **layers, idle=LIF(), other=Linear(2, 2)), VECTOR)
    assert [layer.name for layer in exported.contract.layers] == ["neuron", "readout"]
    assert not [tensor.name for tensor in exported.model.graph.initializer if "other" in tensor.name]


@pytest.mark.parametrize("name", ["network", "network1", "events", "logits", "time"])
def test_layers_may_have_names_that_the_exporter_uses_itself(name):
    def compute(net, x, run):
        return net.readout(net.get_submodule(name)(net.synapse(x, run), run), run)

    layers = {"synapse": Linear(12, 8), name: LIF(), "readout": LeakyReadout(8, 3)}
    exported = export(Wired(compute, **layers), VECTOR)
    compare(exported, 10).hold(("spikes", "membranes", "logits"))
    assert exported.contract.layers[0].states == (f"membrane/{name}", f"spikes/{name}")
    body = next(node for node in exported.model.graph.node if node.op_type == "Scan").attribute[0].g
    assert name in [node.name for node in body.node if node.op_type == "LIF"]


def test_the_number_of_samples_may_be_asked_for():
    def compute(net, x, run):
        flat = x.flatten(2) if run.sequence else x.reshape(x.shape[0], -1)
        return net.readout(net.neuron(net.synapse(flat, run), run), run)

    arriving = InputContract(name="events", shape=(3, 4), steps=30, largest=9)
    network = Wired(compute, synapse=Linear(12, 8), neuron=LIF(), readout=LeakyReadout(8, 3))
    compare(export(network, arriving), 30).hold(("spikes", "membranes", "logits"))


def test_slices_pads_permutations_and_sums_of_currents():
    def compute(net, x, run):
        halves = x[..., :6], x[..., 6:]
        currents = net.one(halves[0], run) + net.two(halves[1], run)
        spikes = net.neuron(Current(currents.mean * 0.75 - 0.125), run)
        wider = torch.nn.functional.pad(spikes, (1, 3))
        return net.readout(wider, run)

    layers = {"one": Linear(6, 8), "two": Linear(6, 8), "neuron": LIF(), "readout": LeakyReadout(12, 3)}
    compare(export(Wired(compute, **layers), VECTOR), 30).hold(("spikes", "membranes", "logits"))


@pytest.mark.parametrize("mode", ["mfa", "stochastic", "int8"])
def test_layers_of_torch_are_exact_in_every_engine(mode, tmp_path):
    exported = export(made(LayersOfTorch), SPIKING, MODES[mode])
    compare(exported, 20).hold(("spikes", "membranes", "logits"))
    onnx.save(exported.model, tmp_path / "model.onnx")
    program = compile_file(tmp_path / "model.onnx")
    assert [i.window for i in program.instructions if isinstance(i, MaxPool)] == [(2, 2), (2, 1)]
    pooled = next(i.writes[0] for i in program.instructions if isinstance(i, MaxPool) and i.window == (2, 1))
    assert program.buffers[pooled].values == SPIKES
    x = counts(SPIKING, 3, 12)
    plain, *others = [load(tmp_path / "model.onnx", engine).run(x.numpy(), trace=True) for engine in ENGINES]
    assert sum(trace.sum() for name, trace in plain.traces.items() if name.startswith("spikes/")) > 0
    for other in others:
        assert all(np.array_equal(plain.traces[name], other.traces[name]) for name in plain.traces)
        assert np.array_equal(plain.member_logits, other.member_logits)
    if mode != "stochastic":
        assert np.array_equal(plain.member_logits[0], exported.on_torch(x, {})["logits"])


def test_a_whole_sequence_and_single_steps_agree_with_layers_of_torch():
    network = made(LayersOfTorch)
    x, state = torch.as_tensor(counts(SPIKING, 3, 8)), None
    for step in x:
        output = network.step(step, state)
        state = output.state
    assert torch.equal(output.logits, network(x).logits)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(3), nn.MaxPool2d(2, 1), nn.MaxPool2d(2, padding=1)])
def test_a_maximum_over_windows_that_overlap_or_leave_a_rest(pool):
    def compute(net, x, run):
        return net.readout(net.pool(net.neuron(net.conv(x, run), run)).flatten(-3), run)

    side = pool(torch.zeros(1, 1, 8, 8)).shape[-1]
    layers = {"conv": Conv2d(2, 2, 3, padding=1), "neuron": LIF(), "pool": pool}
    with pytest.raises(AxonnxError, match=r"pool: a maximum over windows of .*side by side and cover them"):
        export(Wired(compute, **layers, readout=LeakyReadout(2 * side * side, 3)), SPIKING)


class PoolsOfAll(Wired):
    """Maxima of currents, of spikes that leave a rest, and means over thirds of spikes."""

    def __init__(self) -> None:
        def compute(net, x, run):
            first = net.first(net.largest.current(net.conv(x, run)), run)
            second = net.second(net.deep(net.wide(first), run), run)
            return net.readout(net.thirds(second).flatten(-3), run)

        super().__init__(
            compute,
            conv=Conv2d(2, 5, 2, padding=1),  # 9 × 9
            largest=MaxPool2d((2, 1)),  # 4 × 9
            first=LIF(),
            wide=MaxPool2d((1, 2)),  # 4 × 4
            deep=Conv2d(5, 3, 2, padding=1),  # 5 × 5
            second=LIF(),
            thirds=FilledPool2d(2, 3),  # 2 × 1
            readout=LeakyReadout(6, 3),
        )


def test_pools_of_currents_and_of_any_sides_are_exact_in_every_engine(tmp_path):
    network = made(PoolsOfAll)
    exported = export(network, SPIKING)
    compare(exported, 20).hold(("spikes", "membranes", "logits"))
    onnx.save(exported.model, tmp_path / "model.onnx")
    program = compile_file(tmp_path / "model.onnx")
    largest = [i for i in program.instructions if isinstance(i, MaxPool)]
    assert [str(program.buffers[i.writes[0]].values) for i in largest] == ["real", "spikes"]
    x = counts(SPIKING, 1, 12)
    plain, *others = [load(tmp_path / "model.onnx", engine).run(x.numpy(), trace=True) for engine in (*ENGINES, "auto")]
    for other in others:
        assert all(np.array_equal(plain.traces[name], other.traces[name]) for name in plain.traces)
    assert np.array_equal(plain.member_logits[0], exported.on_torch(x, {})["logits"])
    for run in written_out(program):
        found = run(x.numpy()[:, 0])
        assert all(np.array_equal(found[name], trace[:, 0]) for name, trace in plain.traces.items())


def written_out(program):
    """The program as C and as JavaScript, where there is a compiler and a node."""
    if not needs_compiler.args[0]:
        yield lambda x: Machine({"net": program}, quick=True).trace("net", x, seed=0)
    if not needs_node.args[0]:
        yield lambda x: node().trace(program, x, seed=0)


def test_a_mean_over_thirds_is_a_mean_but_for_its_factor():
    pool, x = FilledPool2d(2, 3), torch.randint(0, 4, (2, 1, 3, 5, 9)).double()
    expected = torch.nn.functional.avg_pool2d(x.flatten(0, 1), (2, 3)).unflatten(0, (2, 1))
    assert torch.allclose(pool(x) * pool.factor, expected, rtol=1e-14)
    assert torch.equal(pool(x) * 8, (pool(x) * 8).round())


def test_a_maximum_takes_its_variance_along():
    torch.manual_seed(0)
    current = Current(torch.randn(3, 2, 1, 5, 4), torch.rand(3, 2, 1, 5, 4))
    found = MaxPool2d((2, 2)).current(current)
    for place in np.ndindex(3, 2, 1, 2, 2):
        *lead, y, z = place
        means = current.mean[tuple(lead)][2 * y : 2 * y + 2, 2 * z : 2 * z + 2].flatten()
        spreads = current.variance[tuple(lead)][2 * y : 2 * y + 2, 2 * z : 2 * z + 2].flatten()
        assert (found.mean[place], found.variance[place]) == (means.max(), spreads[means.argmax()])
