"""What can reach a synapse, worked out on the traced graph."""

import pytest
import torch
import torch.nn.functional as nnf

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.network import WeightChoice, collapse
from axonnx.export.collapsed import collapse_network
from axonnx.export.graph.capture import capture
from axonnx.export.graph.ranges import SPIKES, Range, input_ranges
from axonnx.models import LIF, AveragePool2d, Conv2d, Current, LeakyReadout, Linear, RecurrentSNN, SpikingResNet
from axonnx.models.variant import variant
from axonnx.runtime.format.contract import InputContract

from ..own_networks import Wired

IMAGE, VECTOR = (2, 8, 8), (12,)


def ranges_of(network, shape, arriving: Range = SPIKES, stochastic: bool = False) -> dict[str, Range | None]:
    collapsed = collapse(network, WeightChoice(), stochastic)
    return input_ranges(capture(collapsed, shape), arriving)


def before_last(change, inputs: int = 8) -> Range | None:
    """What reaches a last synapse when ``change`` stands between it and a layer of neurons (x: the network's input)."""

    def compute(net, x, run):
        spikes = net.neuron(net.first(x, run), run)
        return net.readout(net.top(net.last(change(net, x, spikes, run), run), run), run)

    layers = {"first": Linear(12, 8), "neuron": LIF(), "last": Linear(inputs, 4), "top": LIF()}
    network = Wired(compute, **layers, readout=LeakyReadout(4, 3))
    return ranges_of(network, VECTOR, Range(9.0, 2))["last.weight"]


CHANGES = {
    "spikes": (8, lambda net, x, o, run: o, SPIKES),
    "sum of spikes": (8, lambda net, x, o, run: o + o, Range(2.0, 0)),
    "sum of spikes and input": (8, lambda net, x, o, run: o + x[..., :8], Range(10.0, 2)),
    "spikes counted thrice": (8, lambda net, x, o, run: o * 3, Range(3.0, 0)),
    "product with the input": (8, lambda net, x, o, run: x[..., :8] * x[..., 4:], Range(81.0, 4)),
    "concatenation": (20, lambda net, x, o, run: torch.cat([o, x], -1), Range(9.0, 2)),
    "slice": (3, lambda net, x, o, run: o[..., 2:5], SPIKES),
    "padding": (11, lambda net, x, o, run: nnf.pad(o, (1, 2)), SPIKES),
    "reshape": (8, lambda net, x, o, run: o.unflatten(-1, (2, 4)).flatten(-2), SPIKES),
    "a current": (8, lambda net, x, o, run: net.first(x, run).mean, None),
    "a fraction": (8, lambda net, x, o, run: o * 0.3, None),
    "a difference": (8, lambda net, x, o, run: o - x[..., :8], Range(10.0, 2)),
    "a difference with a fraction": (8, lambda net, x, o, run: o - 0.5, None),
    "a sum with a current": (8, lambda net, x, o, run: o + net.first(x, run).mean, None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_ranges_follow_what_compute_does(name):
    inputs, change, expected = CHANGES[name]
    assert before_last(change, inputs) == expected


def test_products_that_leave_float32_are_any_number():
    """(9 · 2^2)^5 is more than 2^24: no such product is exact."""

    def fifth_power(net, x, o, run):
        y = x[..., :8]
        return y * y * y * y * y

    assert before_last(fifth_power) is None


@pytest.mark.parametrize(("window", "bits"), [(1, 0), (2, 2), (4, 4), (8, 6)])
def test_pooled_spikes_come_in_steps_of_one_over_the_window(window, bits):
    def compute(net, x, run):
        return net.readout(net.pool(net.neuron(net.conv(x, run), run)).flatten(-3), run)

    inputs = 4 * (8 // window) ** 2
    layers = {"conv": Conv2d(2, 4, 3, padding=1), "neuron": LIF(), "pool": AveragePool2d(window)}
    found = ranges_of(Wired(compute, **layers, readout=LeakyReadout(inputs, 3)), IMAGE)
    assert found["readout.weight"] == Range(1.0, bits)


@pytest.mark.parametrize(("largest", "shift"), [(1, 0), (255, 0), (128, 6), (15, 16)])
def test_graded_input_comes_in_steps_of_its_shift(largest, shift):
    network = RecurrentSNN(12, [8], 3)
    arriving = InputContract(name="events", shape=VECTOR, steps=10, largest=largest, shift=shift)
    first = next(c for c in collapse_network(network, arriving).certificates if c.name == "hidden.0.synapse")
    assert (first.input_max, first.input_bits) == (largest * 2.0**-shift, shift)


def test_recurrent_synapses_hear_spikes_and_share_the_grid_of_the_sum_they_join():
    arriving = InputContract(name="events", shape=VECTOR, steps=10, largest=255)
    certificates = {c.weight: c for c in collapse_network(RecurrentSNN(12, [8], 3), arriving).certificates}
    feed, recurrent = certificates["hidden.0.synapse.weight"], certificates["hidden.0.neuron.recurrent_weight"]
    assert recurrent.input_max == 1.0
    assert feed.input_max == 255.0
    assert feed.grid == recurrent.grid
    assert feed.bound == recurrent.bound  # of both sums together


def test_batch_norm_through_time_keeps_recurrent_sums_apart():
    """The input's sum is scaled before the recurrent one is added, so each has a grid of its own."""
    arriving = InputContract(name="events", shape=VECTOR, steps=10, largest=255)
    network = RecurrentSNN(12, [8], 3, variant("sg-bn"), steps=10)
    certificates = {c.weight: c for c in collapse_network(network, arriving).certificates}
    feed, recurrent = certificates["hidden.0.synapse.weight"], certificates["hidden.0.neuron.recurrent_weight"]
    assert feed.grid < recurrent.grid


def test_a_residual_stream_enters_no_convolution():
    found = ranges_of(SpikingResNet(2, (4, 8), 1, 3, size=8), IMAGE, Range(15.0, 0))
    assert found.pop("trunk.stem.weight") == Range(15.0, 0)
    assert found.pop("readout.weight") == Range(1.0, 4)
    assert len(found) == 4
    assert set(found.values()) == {SPIKES}


def test_variances_are_reached_by_squares():
    found = ranges_of(RecurrentSNN(12, [8], 3), VECTOR, Range(9.0, 2), stochastic=True)
    assert found["hidden.0.synapse.weight"] == Range(9.0, 2)
    assert found["hidden.0.synapse.ones"] == Range(81.0, 4)


def test_a_current_that_enters_a_synapse_is_refused_with_reason_and_remedy():
    def compute(net, x, run):
        real = net.first(x, run).mean
        return net.readout(net.neuron(net.second(real, run), run), run)

    layers = {"first": Linear(12, 8), "second": Linear(8, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    arriving = InputContract(name="events", shape=VECTOR, steps=10, largest=9)
    with pytest.raises(AxonnxError) as fault:
        collapse_network(Wired(compute, **layers), arriving)
    assert str(fault.value).startswith("second.weight: real numbers of any size reach this synapse")
    assert "Let spikes, event counts or averages of them over power-of-two windows enter synapses" in str(fault.value)


@pytest.mark.parametrize(("field", "expected"), [("spikes", SPIKES), ("membrane", None)])
def test_of_the_step_before_spikes_may_enter_a_synapse_and_membranes_may_not(field, expected):
    def compute(net, x, run):
        before = run.state_of(net.neuron)
        heard = x.new_zeros(x.shape[0], 8) if before is None else getattr(before, field)
        return net.readout(net.neuron(net.first(x, run) + net.back(heard, run), run), run)

    layers = {"first": Linear(12, 8), "back": Linear(8, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    assert ranges_of(Wired(compute, **layers), VECTOR, Range(9.0, 2))["back.weight"] == expected


def test_a_current_may_go_anywhere_but_into_a_synapse():
    def compute(net, x, run):
        real = net.first(x, run).mean
        return net.readout(net.neuron(Current(real * real + real - 0.3), run), run)

    layers = {"first": Linear(12, 8), "neuron": LIF(), "readout": LeakyReadout(8, 3)}
    assert ranges_of(Wired(compute, **layers), VECTOR)["readout.weight"] == SPIKES
