"""Operations of weights that exist, against torch's convolutions of masks, against SpikingJelly and on paper."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.measure.operations import SynapseCounter, fan_out, synapses_of
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.program.instructions import Linear
from axonnx.runtime.program.layer_noise import stream_noise

FILES = sorted((Path(__file__).parents[2] / "released").glob("version-1*/*.onnx"))


class Watched(NumpyEngine):
    """Keeps all buffers of the last step."""

    def _step(self, *given):
        self.seen = super()._step(*given)
        return self.seen


def product(synapse, x, weight):
    """The sum over all outputs of a synapse with these inputs and weights."""
    x, weight = torch.from_numpy(x.astype(np.float64)), torch.from_numpy(weight.astype(np.float64))
    if isinstance(synapse, Linear):
        return functional.linear(x, weight).sum()
    top, left, bottom, right = synapse.pads
    padded = functional.pad(x, (left, right, top, bottom))
    geometry = {"stride": synapse.strides, "dilation": synapse.dilations, "groups": synapse.group}
    return functional.conv2d(padded, weight, **geometry).sum()


def some_steps(program, steps, batch, seed):
    random, entering = np.random.default_rng(seed), program.contract.input
    x = random.integers(0, entering.largest + 1, (steps, batch, *entering.shape))
    return (x * (random.random(x.shape) < 0.3) * entering.unit).astype(np.float32)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_operations_are_products_of_masks(path):
    """Every kind of network that was ever released, with a third of its weights removed."""
    program = compile_file(path)
    random = np.random.default_rng(0)
    for synapse in synapses_of(program):
        weight = program.constants[synapse.weight]
        program.constants[synapse.weight] = np.where(random.random(weight.shape) < 1 / 3, np.float32(0), weight)
    steps = 1 if program.contract.kind == "binary" else min(program.steps_known or 7, 7)
    x, batch = some_steps(program, steps, 3, 1), 3
    engine, counter = Watched(program), SynapseCounter(program, batch)
    draw, state, met = stream_noise(program, 0), engine.initial_state(batch), 0
    for step in range(steps):
        drawn = [draw(sample, step, 1) for sample in range(batch)]
        noise = {name: np.concatenate([each[name] for each in drawn], 1) for name in program.noises}
        chunk = engine.advance(state, x[step : step + 1], noise, trace=True)
        active, operations = counter.count(x[step : step + 1], chunk.traces)
        state = chunk.state
        for synapse in counter.synapses:
            inputs, weight = engine.seen[synapse.reads[0]] != 0, program.constants[synapse.weight]
            assert active[synapse.name] == inputs.sum()
            assert operations[synapse.name] == product(synapse, inputs, weight != 0)
            read = product(synapse, inputs, np.ones_like(weight))
            assert chunk.activity.operations[synapse.name].sum() == read >= operations[synapse.name]
            met += operations[synapse.name]
    assert met > 0


def test_what_spikes_cause_is_told_from_what_the_input_causes():
    recurrent = compile_file(next(path for path in FILES if path.stem == "delays-mfa"))
    counter = SynapseCounter(recurrent, 1)
    followed = {synapse.weight: counter.follows_spikes(synapse) for synapse in counter.synapses}
    first = [synapse.weight for synapse in counter.synapses if recurrent.input in counter.sources(synapse)]
    assert set(followed.values()) == {False, True}
    assert [weight for weight, follows in followed.items() if not follows] == first


def test_weights_met_are_spikingjelly_s_synaptic_operations():
    """It counts weights of zero, as memory does; without such weights, operations are the same number."""
    counters = pytest.importorskip("spikingjelly.activation_based.op_counter", reason="make installs it")
    program = compile_file(next(path for path in FILES if path.stem == "mlp-mfa"))
    second = synapses_of(program)[1]
    weight = torch.tensor(program.constants[second.weight])
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = weight
    spikes = (torch.rand(40, weight.shape[1], generator=torch.Generator().manual_seed(0)) < 0.2).float()
    operations, traffic = counters.SynOpCounter(), counters.NeuromorphicMemoryAccessCounter()
    with counters.DispatchCounterMode([operations]), counters.ModuleCounterMode(counters=[traffic], model=layer):
        layer(spikes)
    met = int((spikes.numpy() != 0).sum(0) @ fan_out(program, second))
    assert (program.constants[second.weight] != 0).all()
    assert met == operations.get_total() > 0
    assert 4 * met == traffic.get_total()
