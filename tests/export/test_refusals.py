"""What has no exact form is refused before a file is written: each text names the place and says what to do."""

import pytest
import torch
import torch.nn.functional as nnf
from torch import nn

from axonnx.base.errors import AxonnxError
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.models import LIF, AveragePool2d, Conv2d, Current, LeakyReadout, Linear, LinearReadout, SpikingMLP
from axonnx.models.variant import variant
from axonnx.runtime.format.contract import InputContract

from .own_networks import Wired, WiredBinary
from .running import export

VECTOR = InputContract(name="events", shape=(12,), steps=10, largest=9)
IMAGE = InputContract(name="events", shape=(2, 12, 12), steps=None, largest=9)
BUILD = "Build the step of axonnx.models layers"


def refusal(network, arriving: InputContract = VECTOR, settings: CollapseSettings | None = None) -> str:
    with pytest.raises(AxonnxError) as fault:
        export(network, arriving, settings)
    return str(fault.value)


def with_current(change, **layers):
    """A network in which ``change`` stands between synapse and neurons."""

    def compute(net, x, run):
        return net.readout(net.neuron(change(net, net.synapse(x, run), run), run), run)

    parts = {"synapse": Linear(12, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    return Wired(compute, **parts, **layers)


def with_input(change, arriving_size: int = 12, **layers):
    def compute(net, x, run):
        return net.readout(net.neuron(net.synapse(change(net, x, run), run), run), run)

    return Wired(compute, synapse=Linear(arriving_size, 8), neuron=LIF(), readout=LeakyReadout(8, 3), **layers)


@pytest.mark.parametrize(
    ("change", "operator"),
    [
        (lambda c: torch.sigmoid(c), "aten.sigmoid.default"),
        (lambda c: torch.softmax(c, -1), "aten.softmax.int"),
        (lambda c: torch.tanh(c), "aten.tanh.default"),
        (lambda c: c / 3.0, "aten.div.Tensor"),
        (lambda c: torch.exp(c), "aten.exp.default"),
        (lambda c: c - c.mean(-1, keepdim=True), "aten.mean.dim"),
        (lambda c: torch.sqrt(c * c), "aten.sqrt.default"),
        (lambda c: nnf.layer_norm(c, (8,)), "aten.layer_norm.default"),
    ],
)
def test_operators_without_an_exact_form(change, operator):
    text = refusal(with_current(lambda net, current, run: Current(change(current.mean))))
    assert text.startswith(f"compute(): the operator {operator} has no form that gives the same bits in every runtime")
    assert BUILD in text


def test_the_layer_that_called_the_operator_is_named():
    class Squash(nn.Module):
        def forward(self, current: Current) -> Current:
            return Current(torch.sigmoid(current.mean))

    text = refusal(with_current(lambda net, current, run: net.squash(current), squash=Squash()))
    assert text.startswith("squash: the operator aten.sigmoid.default")


def test_an_operator_before_a_synapse_is_named_and_not_only_its_result():
    text = refusal(with_input(lambda net, x, run: torch.relu(x)))
    assert text.startswith("compute(): the operator aten.relu.default")


def image_network(change, inputs: int):
    def compute(net, x, run):
        return net.readout(net.pool(change(net, x, run)).flatten(-3), run)

    return WiredBinary(compute, conv=Conv2d(2, 4, 3, padding=1), pool=nn.Identity(), readout=LinearReadout(inputs, 3))


@pytest.mark.parametrize(
    ("change", "inputs", "text", "remedy"),
    [
        (lambda net, x, run: nnf.max_pool2d(x, 2, 1), 242, "a maximum over windows of [2, 2]", "nn.MaxPool2d(window)"),
        (lambda net, x, run: nnf.avg_pool2d(x, 3), 32, "an average over 3 × 3 pixels is not exact", "power of two"),
        (lambda net, x, run: nnf.avg_pool2d(x, 2, 1), 242, "overlapping windows", "AveragePool2d"),
        (lambda net, x, run: nnf.avg_pool2d(x, 2, padding=1), 98, "padding or overlapping", "AveragePool2d"),
        (
            lambda net, x, run: nnf.avg_pool2d(net.conv(x, run).mean, 2),
            144,
            "an average over real numbers depends on the order of additions",
            "AveragePool2d.current",
        ),
        (lambda net, x, run: nnf.pad(x, (1, 1), value=1.0), 336, "padding by 1.0", "only padding by zeros"),
        (lambda net, x, run: nnf.pad(x, (1,) * 4, mode="replicate"), 392, "padding by", "only padding by zeros"),
        (lambda net, x, run: nnf.interpolate(x, scale_factor=2), 1152, "aten.upsample_nearest2d", BUILD),
    ],
)
def test_poolings_and_paddings_that_are_not_exact(change, inputs, text, remedy):
    found = refusal(image_network(change, inputs), IMAGE)
    assert found.startswith("compute(): ")
    assert text in found
    assert remedy in found


def test_pooled_sums_that_leave_float32():
    arriving = InputContract(name="events", shape=(2, 8, 8), steps=None, largest=2**20)
    network = image_network(lambda net, x, run: nnf.avg_pool2d(x, 8), 2)
    assert "sums over 8 × 8 pixels of up to 1.04858e+06 do not fit into float32; pool over smaller" in refusal(
        network, arriving
    )


def test_a_window_that_is_no_power_of_two_is_refused_when_the_layer_is_made():
    with pytest.raises(ValueError, match="window is 3; expected a power of two"):
        AveragePool2d(3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: x[:1], "aten.slice.Tensor gives"),
        (lambda x: torch.cat([x, x], 0), "aten.cat.default gives"),
        (lambda x: x.reshape(-1, 6).flatten(1).reshape(-1, 12), "aten.reshape.default gives"),
        (lambda x: x.permute(1, 0).permute(1, 0), "aten.permute.default gives"),
        (lambda x: x + x.sum(), "aten.sum.default gives"),
    ],
)
def test_samples_of_a_batch_stay_apart(change, text):
    found = refusal(with_input(lambda net, x, run: change(x)))
    assert found.startswith(f"compute(): {text}")
    assert "Leave that axis as it is" in found


@pytest.mark.parametrize(
    "change", [lambda x: x if x.shape[0] == 2 else x + x, lambda x: x if x.sum() > 0 else x + x, lambda x: x[1:]]
)
def test_compute_must_not_depend_on_values_or_on_the_number_of_samples(change, caplog):
    assert "must look neither at the values of its tensors nor at the number of samples" in refusal(
        with_input(lambda net, x, run: change(x))
    )


def test_two_readouts():
    text = refusal(with_current(lambda net, current, run: current, other=LeakyReadout(8, 3)))
    assert text == "the network has 2 read-outs; exactly one can be exported"


@pytest.mark.parametrize("change", [lambda y: y * 2, lambda y: torch.softmax(y, -1), lambda y: y[..., :2]])
def test_logits_are_the_readouts(change):
    def compute(net, x, run):
        return change(net.readout(net.neuron(net.synapse(x, run), run), run))

    parts = {"synapse": Linear(12, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    assert "must return the read-out's logits as is" in refusal(Wired(compute, **parts))


def test_foreign_layers_with_weights():
    text = refusal(with_input(lambda net, x, run: net.foreign(x), foreign=nn.Linear(12, 12)))
    assert text.startswith("parameter 'foreign.weight' belongs to a Linear, which cannot be collapsed")
    assert "use axonnx.models.Linear, called as self.layer(x, run)" in text


def test_linear_synapses_on_three_axes():
    def compute(net, x, run):
        return net.readout(net.neuron(net.synapse(x, run), run).flatten(-2), run)

    parts = {"synapse": Linear(12, 4), "neuron": LIF(), "readout": LeakyReadout(16, 3)}
    arriving = InputContract(name="events", shape=(4, 12), steps=10, largest=9)
    assert refusal(Wired(compute, **parts), arriving) == "synapse: linear synapses on 3 axes; flatten to [B, features]"


def test_tensors_that_compute_makes_itself():
    assert "keep constants in buffers of a layer" in refusal(with_input(lambda net, x, run: x * torch.tensor([2.0])))


def test_weights_that_compute_works_out():
    table = nn.Module()
    table.register_buffer("weight", torch.ones(8, 12))
    text = refusal(with_input(lambda net, x, run: nnf.linear(x, net.table.weight * 2), 8, table=table))
    assert text.startswith("compute(): the weights of a linear map or convolution are worked out in compute()")
    assert "keep them in a layer" in text


def test_sums_with_a_factor():
    text = refusal(with_current(lambda net, c, run: Current(torch.add(c.mean, c.mean, alpha=3))))
    assert text.startswith("compute(): aten.add.Tensor with {'alpha': 3} has no exact form here; write it as several")


def test_one_layer_under_two_names():
    network = with_current(lambda net, current, run: current + net.second(net.first_input, run))
    network.second = network.synapse
    assert refusal(network).startswith("the layer 'second' is 'synapse' by a second name")


def test_neurons_that_run_twice():
    def compute(net, x, run):
        return net.readout(net.neuron(net.synapse(net.neuron(net.first(x, run), run), run), run), run)

    parts = {"first": Linear(12, 8), "synapse": Linear(8, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    with pytest.raises(ValueError, match=r"layer 'neuron' ran twice in one pass.*use two layers"):
        export(Wired(compute, **parts), VECTOR)


@pytest.mark.parametrize("mode", ["sampled", "stochastic"])
def test_baselines_have_no_posterior_to_draw_from(mode):
    network = SpikingMLP(12, [8], 3, variant("sg-nbn-1"))
    assert "only the mode mfa has a meaning for it" in refusal(network, settings=CollapseSettings(mode))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"members": 3}, "members is 3; an ensemble of several is for mode 'sampled' alone"),
        ({"mode": "sampled", "members": 0}, "members is 0"),
        ({"prune": -0.1}, "prune is -0.1; expected a signal-to-noise ratio of zero or more"),
        ({"prune": float("nan")}, "prune is nan"),
    ],
)
def test_settings_that_cannot_be(options, text):
    with pytest.raises(AxonnxError, match=text):
        CollapseSettings(**options)


def test_weights_that_are_not_finite_are_refused_by_name():
    network = SpikingMLP(12, [8], 3)
    network.hidden[0].synapse.posterior.raw_mean.data[0, 0] = float("nan")
    assert refusal(network).startswith("hidden.0.synapse.weight: they hold numbers that are not finite")


def test_classes_and_input_are_called_what_the_graph_calls_them():
    collapsed = collapse_network(SpikingMLP(12, [8], 3), VECTOR)
    with pytest.raises(AxonnxError, match="2 classes are named; the network tells 3 apart"):
        make_contract(collapsed, ("a", "b"), "sequence")
    with pytest.raises(AxonnxError, match="the input is called 'x'; in a file it is always 'events'"):
        collapse_network(SpikingMLP(12, [8], 3), VECTOR.model_copy(update={"name": "x"}))
