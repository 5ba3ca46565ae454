"""A torch module in one's own loop: Bayesian, exported, proven, without a run folder."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import axonnx
from axonnx.base.errors import AxonnxError
from axonnx.export.convert.bayesian import BayesianModule
from axonnx.export.convert.module_files import arriving_of
from axonnx.export.exporting import export_network
from axonnx.models import LIF, BinaryNeuron, GaussianPosterior, Sample, SpikingMLP

from .foreign import CASES, made

SPIKES = (torch.rand(9, 12, 2, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.4).float()
LABELS = torch.arange(12) % 3


class TwoPaths(nn.Module):
    """nn layers and our neurons: one path is recurrent, and both are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.edges = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), LIF()
        self.fc, self.memory = nn.Linear(64, 12), LIF(recurrent=12)
        self.out = nn.Linear(12 + 64, 3)

    def forward(self, x: Tensor) -> Tensor:
        edges = nnf.avg_pool2d(self.edges(self.norm(self.conv(x))), 2).flatten(1)
        return self.out(torch.cat([self.memory(self.fc(edges)), edges], 1))


def images() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 20), BinaryNeuron(), nn.Linear(20, 3))


def trained(module: nn.Module, x: Tensor = SPIKES, steps: int = 4) -> BayesianModule:
    torch.manual_seed(1)
    net = axonnx.bayesian(module, classes=3)
    optimiser = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(steps):
        loss = nnf.cross_entropy(net(x), LABELS) + axonnx.regulariser(net)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net


@pytest.mark.parametrize("collapse", ["mfa", "sampled", "stochastic"])
def test_nn_layers_and_our_neurons_are_proven_after_training(collapse, tmp_path):
    net = trained(TwoPaths())
    model = axonnx.Model.from_module(net, SPIKES, classes=["a", "b", "c"], collapse=collapse, weights="int8")
    assert model.save(tmp_path / "mine.onnx").stat().st_size > 0
    found = model.verify(net, (SPIKES, LABELS))
    assert found.verified, [stage for stage in found.stages if not stage.ok]
    assert found.mismatches == 0 < found.compared.spikes
    assert [stage.name for stage in found.stages][-1] == ("accuracies" if collapse == "stochastic" else "module")
    assert model.contract.classes == ("a", "b", "c")
    assert {entry.stored_as for entry in model.contract.synapses if entry.weight.endswith(".weight")} == {"int8"}
    with torch.no_grad():
        logits = net.eval()(SPIKES)
    if collapse == "mfa":  # up to the grid of the weights
        assert float((torch.from_numpy(model.run(SPIKES.numpy()).logits) - logits).abs().max()) < 0.2


@pytest.mark.parametrize("name", ["snntorch-leaky", "spikingjelly-many_steps", "norse-recurrent_cells"])
def test_networks_of_other_libraries_are_proven_with_weights_that_were_drawn(name):
    module, shape = made(name)
    net = axonnx.bayesian(module, shape=shape)
    x = (torch.rand(8, 6, *shape, generator=torch.Generator().manual_seed(2)) < 0.3).float()
    model = axonnx.Model.from_module(net, x, collapse="sampled", seed=3)
    found = model.verify(net, x)
    assert found.verified, [stage for stage in found.stages if not stage.ok]
    assert found.stages[-1].name == "module"
    assert CASES[name].library in ("snntorch", "spikingjelly", "norse")


def test_a_network_without_time_takes_images():
    x = torch.randint(0, 256, (12, 1, 8, 8), generator=torch.Generator().manual_seed(3)) / 256
    net = trained(images(), x)
    model = axonnx.Model.from_module(net, (x, LABELS))
    assert (model.contract.kind, model.contract.input.shift, model.contract.input.shape) == ("binary", 8, (1, 8, 8))
    assert model.verify(net, (x, LABELS)).verified


def test_a_plain_module_and_a_network_of_ours_are_exported_as_they_are():
    for net in (images(), SpikingMLP(128, [16], 3)):
        x = torch.ones(4, 1, 8, 8) if isinstance(net, nn.Sequential) else SPIKES
        before = copy.deepcopy(net.state_dict())
        model = axonnx.Model.from_module(net, x)
        assert model.verify(net, x).verified
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_another_network_is_not_verified():
    net = trained(TwoPaths())
    model = axonnx.Model.from_module(net, SPIKES)
    with torch.no_grad():
        net.network.layers["fc"].posterior.raw_mean[0, 0] += 0.01
    found = model.verify(net, (SPIKES, LABELS))
    assert not found.verified
    assert any("provenance.checkpoint" in line for line in found.stages[0].lines)
    assert any("layers.fc.weight" in line for line in found.stages[0].lines)


def test_a_module_that_does_something_else_than_its_network_is_found():
    """The stage "module" runs the user's own code, so a wrong conversion cannot hide behind itself."""
    net = trained(TwoPaths())
    model = axonnx.Model.from_module(net, SPIKES)
    assert net.source is not None
    net.source.network.edges.neurons.fixed_decay.mul_(0.5)  # in the user's module and in the network: they share it
    net.network.layers["edges"] = copy.deepcopy(net.network.layers["edges"])
    net.network.layers["edges"].fixed_decay.mul_(2.0)
    found = model.verify(net, (SPIKES, LABELS))
    assert [stage.name for stage in found.stages if not stage.ok] == ["module"]


def test_training_mode_draws_noise_and_evaluation_mode_does_not():
    net = axonnx.bayesian(TwoPaths())
    assert torch.equal(net.eval()(SPIKES), net(SPIKES))
    net.train()
    assert not torch.equal(net(SPIKES), net(SPIKES))


def test_weights_become_posterior_means_and_read_out_weights_point_estimates():
    module = TwoPaths()
    net = axonnx.bayesian(module, std=0.25)
    posteriors = {name: part for name, part in net.named_modules() if isinstance(part, GaussianPosterior)}
    fc = posteriors["network.layers.fc.posterior"]
    assert torch.equal(fc.mean, module.fc.weight)
    assert float(fc.std.detach().mean()) == pytest.approx(0.25 / 8)
    assert {name.split(".")[2] for name, part in posteriors.items() if part.log_std is None} == {"out"}


def test_every_parameter_has_a_gradient():
    net = axonnx.bayesian(TwoPaths())
    (nnf.cross_entropy(net(SPIKES), LABELS) + axonnx.regulariser(net)).backward()
    assert [name for name, value in net.named_parameters() if value.grad is None] == []


def test_the_regulariser_is_that_of_training():
    net = axonnx.bayesian(SpikingMLP(128, [16], 3))
    torch.manual_seed(5)
    net(SPIKES)
    torch.manual_seed(5)
    output = net.network(SPIKES, Sample())
    assert torch.equal(axonnx.regularizer(net, 0.5), 0.5 * net.network.regulariser(output))
    first = axonnx.regulariser(net)
    assert float(first.detach()) == pytest.approx(0.01 * float(net.network.regulariser(output).detach()))
    assert net.multipliers  # the next step's weights
    assert not torch.equal(axonnx.regulariser(net), first)
    again = axonnx.bayesian(SpikingMLP(128, [16], 3))
    again.load_state_dict(net.state_dict())
    assert again.multipliers == net.multipliers


def test_a_module_can_be_copied_after_a_pass():
    net = axonnx.bayesian(TwoPaths())
    net(SPIKES)
    assert copy.deepcopy(net).output is None is not net.output


@pytest.mark.parametrize("kind", ["loader", "own loader", "set", "arrays"])
def test_data_comes_as_it_is(kind):
    net = axonnx.bayesian(TwoPaths(), shape=(2, 8, 8))
    pairs = TensorDataset(SPIKES.transpose(0, 1), LABELS)

    def in_time(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        return torch.stack([x for x, _ in samples], 1), torch.stack([y for _, y in samples])

    data = {
        "loader": DataLoader(pairs, 5),
        "own loader": DataLoader(pairs, 5, collate_fn=in_time),
        "set": pairs,
        "arrays": (SPIKES.numpy(), LABELS.numpy()),
    }[kind]
    model = axonnx.Model.from_module(net, data)
    assert (model.contract.input.steps, model.contract.input.shape) == (9, (2, 8, 8))
    found = model.verify(net, data)
    assert found.verified
    assert found.accuracy[0].samples == 12


def test_data_of_a_file(tmp_path):
    net = axonnx.bayesian(TwoPaths(), shape=(2, 8, 8))
    np.savez(tmp_path / "frames.npz", frames=SPIKES.transpose(0, 1).numpy().astype(np.uint8), labels=LABELS)
    model = axonnx.Model.from_module(net, SPIKES)
    assert model.verify(net, tmp_path / "frames.npz").verified


def test_what_is_fed_is_found_from_the_data():
    net = axonnx.bayesian(TwoPaths(), shape=(2, 8, 8))
    found = arriving_of(net, SPIKES * 3)
    assert (found.largest, found.shift, found.steps) == (3, 0, 9)
    assert arriving_of(net, SPIKES * 0.75).model_copy(update={"name": ""}).shift == 2
    assert arriving_of(net, SPIKES, largest=7).largest == 7


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (lambda: axonnx.Model.from_module(TwoPaths(), SPIKES / 255), "multiples of a power of two"),
        (lambda: axonnx.Model.from_module(TwoPaths(), SPIKES * 3, largest=2), "largest is 2"),
        (lambda: axonnx.Model.from_module(TwoPaths(), []), "no sample"),
        (lambda: axonnx.bayesian(TwoPaths(), classes=4), "3 outputs; expected one for each of 4 classes"),
        (lambda: axonnx.bayesian(nn.Sequential(nn.Conv2d(1, 4, 3), LIF(), nn.AdaptiveAvgPool2d(1))), "give shape="),
        (lambda: axonnx.bayesian(nn.Sequential(nn.Linear(4, 3), nn.ReLU())), "no layer of neurons"),
        (lambda: axonnx.bayesian(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), LIF())), "ReLU has no exact form"),
        (lambda: axonnx.bayesian(nn.Sequential(axonnx.models.Linear(4, 3), LIF())), "use nn.Linear"),
        (lambda: axonnx.bayesian(nn.Sequential(nn.Linear(4, 3), BinaryNeuron())), "ends in nn.Linear"),
        (lambda: axonnx.regulariser(nn.Linear(2, 2)), "axonnx.bayesian returns"),
        (lambda: axonnx.regulariser(axonnx.bayesian(images())), "call net"),
        (lambda: axonnx.bayesian(images())(torch.ones(2, 1, 8, 9)), r"takes \[B, 1, 1, 64\]"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(attempt, told):
    with pytest.raises(AxonnxError, match=told):
        attempt()


def test_data_beyond_what_the_file_admits_is_refused():
    net = axonnx.bayesian(TwoPaths(), shape=(2, 8, 8))
    model = axonnx.Model.from_module(net, SPIKES)
    with pytest.raises(AxonnxError, match="does not admit"):
        model.verify(net, SPIKES * 2)
    with pytest.raises(AxonnxError, match="9 steps"):
        model.verify(net, SPIKES[:5])


def test_a_shape_is_enough_to_export_a_network_of_ours(tmp_path):
    net = SpikingMLP(64, [8], 3)
    exported = export_network(net, (1, 8, 8), None, tmp_path / "mine.onnx", steps=9, largest=1)
    assert exported.contract.input.steps == 9
    assert exported.contract.classes == ("0", "1", "2")
    with pytest.raises(AxonnxError, match="give steps"):
        export_network(net, (1, 8, 8), None, tmp_path / "mine.onnx")
    with pytest.raises(AxonnxError, match="from_module"):
        export_network(nn.Linear(2, 2), (2,), None, tmp_path / "mine.onnx", steps=9)
