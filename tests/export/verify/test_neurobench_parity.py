"""The same network in snnTorch under NeuroBench's own harness: equal sparsity and equal effective operations."""

import numpy as np
import pytest
import snntorch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import SpikingMLP
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.measure.energy import Hardware
from axonnx.runtime.measure.profile import profile
from axonnx.runtime.program.compilation import compile_file

# Its own requirements do not go with ours, so it is no requirement of the project: make installs it with --no-deps.
pytest.importorskip("neurobench", reason="pip install --no-deps -c constraints.txt neurobench, as make does")

from neurobench.benchmarks import Benchmark
from neurobench.metrics.static import ConnectionSparsity
from neurobench.metrics.workload import ActivationSparsity, SynapticOperations
from neurobench.models import SNNTorchModel

STEPS, SAMPLES, INPUTS = 12, 10, 30


class SnnTorchTwin(nn.Module):
    """Linear layers and Leaky neurons with the collapsed network's constants."""

    def __init__(self, collapsed) -> None:
        super().__init__()
        first, second = collapsed.hidden
        self.linear1, self.linear2 = _linear(first.synapse), _linear(second.synapse)
        self.readout = _linear(collapsed.readout)
        self.leaky1 = snntorch.Leaky(beta=float(first.neuron.decay), init_hidden=True)
        self.leaky2 = snntorch.Leaky(beta=float(second.neuron.decay), init_hidden=True)

    def forward(self, x):
        return self.readout(self.leaky2(self.linear2(self.leaky1(self.linear1(x))))), None


def _linear(source) -> nn.Linear:
    made = nn.Linear(source.weight.shape[1], source.weight.shape[0])
    made.weight.data, made.bias.data = source.weight.clone(), source.bias.clone()
    return made


def _neurobench(network: nn.Module, x: torch.Tensor) -> dict:
    data = DataLoader(TensorDataset(x, torch.zeros(len(x), dtype=torch.long)), batch_size=len(x))
    metrics = [[ConnectionSparsity], [ActivationSparsity, SynapticOperations]]
    return Benchmark(SNNTorchModel(network), data, [], [], metrics).run(quiet=True)


@pytest.mark.parametrize(("largest", "prune"), [(1, None), (4, None), (1, 1.0), (4, 1.0)])
def test_sparsity_and_effective_operations_equal_neurobench(largest, prune, tmp_path):
    torch.manual_seed(3)
    network = SpikingMLP(INPUTS, [20, 16], 5)
    arriving = InputContract(name="events", shape=(INPUTS,), steps=STEPS, largest=largest)
    collapsed = collapse_network(network, arriving, CollapseSettings(prune=prune))
    contract = make_contract(collapsed, tuple("abcde"), "sequence")
    write_model(build_model(collapsed, contract), tmp_path / "twin.onnx")
    x = torch.randint(1, largest + 1, (STEPS, SAMPLES, INPUTS)) * (torch.rand(STEPS, SAMPLES, INPUTS) < 0.3)
    events = x.float()
    theirs = _neurobench(SnnTorchTwin(collapsed.network), events.transpose(0, 1))
    engine = NumpyEngine(compile_file(tmp_path / "twin.onnx"))
    ours = profile(engine, [(events.numpy(), np.zeros(SAMPLES, np.int64))], Hardware()).totals
    operations = theirs["SynapticOperations"]
    assert ours.activation_sparsity == theirs["ActivationSparsity"]
    assert 0.5 < ours.activation_sparsity < 1.0
    assert ours.accumulates == operations["Effective_ACs"]
    assert ours.multiply_accumulates == operations["Effective_MACs"]
    assert ours.dense_operations == operations["Dense"]
    assert ours.connection_sparsity == theirs["ConnectionSparsity"]
    assert (ours.connection_sparsity > 0.1) == (prune is not None)
    assert (operations["Effective_MACs"] > 0) == (largest > 1)
