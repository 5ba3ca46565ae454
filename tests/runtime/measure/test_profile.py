"""The energy of a network of three neurons, counted on paper."""

from dataclasses import replace

import numpy as np
import pytest

from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import CollapseContract, Contract, InputContract, SynapseContract
from axonnx.runtime.format.values import REAL, SPIKES, graded
from axonnx.runtime.measure.energy import EnergyParts, Hardware
from axonnx.runtime.measure.profile import address_bits, profile
from axonnx.runtime.program.instructions import Buffer, Layer, Linear, Neurons, Program

STEPS = 3
WEIGHT = np.float32([[1, 0], [0.5, 1], [0, 0]])
READOUT = np.float32([[1, 1, 1], [1, 0, 1]])
# I = (2, 1, 0), so h = (2, 1, 0): two spikes. Then I = (0, 1, 0), so h = ½h + I − o = (0, ½, 0): none. Then silence.
COUNTS = np.float32([[[2, 0]], [[0, 1]], [[0, 0]]])
BYTES = {"float32": 4, "int16": 2, "int8": 1}


def three_neurons(stored="int8"):
    certificates = [
        SynapseContract(
            name=name, weight=f"{name}.weight", grid=1, input_max=3, input_bits=0, bound=20, stored_as=stored
        )
        for name in ("synapse", "readout")
    ]
    contract = Contract(
        kind="spiking",
        form="step",
        classes=("a", "b"),
        input=InputContract(name="x", shape=(2,), steps=STEPS, largest=3),
        collapse=CollapseContract(mode="mfa"),
        layers=(),
        synapses=tuple(certificates),
        logits="total / steps",
    )
    sizes = {"membrane": 3, "spikes": 3, "out": 2, "total": 2}
    buffers = [Buffer("x", (2,), graded(3, 0), "input"), Buffer("sum", (3,), REAL), Buffer("readout", (2,), REAL)]
    for name, size in sizes.items():
        values = SPIKES if name == "spikes" else REAL
        buffers += [Buffer(name, (size,), values, "state"), Buffer(f"next/{name}", (size,), values)]
    fires = {"current": "sum", "membrane": "membrane", "spikes": "spikes"}
    sums = {"current": "readout", "membrane": "out", "total": "total"}
    constants = {"decay": np.float32(0.5), "threshold": np.float32(1), "bias": np.float32([0, 0])}
    return Program(
        name="on paper",
        contract=contract,
        input="x",
        states=tuple(sizes),
        noises=(),
        instructions=(
            Linear("synapse", ("x",), ("sum",), "synapse.weight", None),
            Neurons(
                "neuron", tuple(fires.values()), ("next/membrane", "next/spikes"), "LIF", "neuron", fires,
                {"decay": "decay", "threshold": "threshold"},
            ),
            Linear("readout", ("next/spikes",), ("readout",), "readout.weight", "bias"),
            Neurons(
                "sum", tuple(sums.values()), ("next/out", "next/total"), "LeakySum", "sum", sums, {"decay": "decay"}
            ),
        ),
        buffers={buffer.name: buffer for buffer in buffers},
        constants={"synapse.weight": WEIGHT, "readout.weight": READOUT, **constants},
        after={name: f"next/{name}" for name in sizes},
        logits=(),
        totals=("total",),
        layers=(Layer("neuron", "LIF", (3,), "next/spikes", "next/membrane"),),
        synapses=("synapse", "readout"),
    )  # fmt: skip


def profiled(hardware=None, stored="int8", counts=COUNTS, program=None):
    engine = NumpyEngine(program or three_neurons(stored))
    return profile(engine, [(counts, np.zeros(1, np.int64))], hardware or Hardware())


def test_operations_of_three_neurons():
    found = profiled()
    synapse, readout = found.synapses
    # The first input meets the weights 1 and ½ twice over, the second one meets the weight 1; three zeros are read.
    assert (synapse.multiply_accumulates, synapse.accumulates, synapse.weights_read) == (3, 0, 6)
    # The first neuron meets 1 and 1, the second one meets 1; one zero is read.
    assert (readout.multiply_accumulates, readout.accumulates, readout.weights_read) == (0, 3, 4)
    assert (synapse.dense_operations, readout.dense_operations) == (STEPS * 6, STEPS * 6)
    assert (found.totals.events_in, found.totals.active_inputs) == (3, 2)
    assert found.totals.membrane_updates == STEPS * (3 + 2)  # of the read-out too
    assert found.energy.rate == pytest.approx(2 / 9)
    assert (synapse.follows_spikes, readout.follows_spikes) == (False, True)


@pytest.mark.parametrize(
    ("stored", "add", "multiply"), [("float32", 0.9, 3.7), ("int16", 0.1, 0.8), ("int8", 0.1, 0.2)]
)
def test_energy_of_three_neurons(stored, add, multiply):
    """Horowitz 2014: a sum of 32 bits costs 0.1 pJ, of floats 0.9; 8 KiB give 64 bits for 10 pJ."""
    found, width = profiled(stored=stored), BYTES[stored]
    assert found.totals.footprint_bytes == 6 * width + 6 * width + 2 * 4 + 4 + 4  # weights; biases, decay, threshold
    assert found.totals.state_bytes == 3 * 4 + 1 + 2 * 4 + 2 * 4  # membranes, spikes as bits, read-out, its total
    byte = 10 / 8
    bits = {
        "cells": 2 * (1 + 2),  # which of two inputs, and a count up to 3
        "spikes written": 2 * 2,  # which of three neurons
        "spikes read": 2 * 2,
    }
    by_hand = {
        "accumulates": 3 * add,
        "multiply_accumulates": 3 * (multiply + add),
        "membrane_updates": STEPS * 5 * (3.7 + 2 * 0.9),
        "weights": byte * ((6 + 4) * width + STEPS * 2 * 4),  # and two biases in each step
        "states": byte * STEPS * 2 * 29,
        "spikes": byte * sum(bits.values()) / 8,
    }
    assert found.energy.memory_pj_per_byte == byte
    assert found.energy.parts.model_dump() == pytest.approx({name: value / 1000 for name, value in by_hand.items()})
    assert found.energy.total_nj == pytest.approx(sum(by_hand.values()) / 1000)
    every, once = found.energy.dense
    assert (every.passes, every.activation_bits) == (STEPS, 8 * width)
    assert (once.passes, once.activation_bits) == (1, 2)  # 0 to 3 spikes
    for network in (every, once):
        activations = (2 + 3 + 3) * network.activation_bits / 8  # two inputs; three neurons, written and read
        expected = {
            "multiply_accumulates": 12 * (multiply + add),
            "weights": byte * 12 * width,
            "spikes": byte * activations,
        }
        given = {name: value for name, value in network.parts if value}
        assert given == pytest.approx({name: network.passes * value / 1000 for name, value in expected.items()})


def test_the_break_even_rate_is_where_both_energies_are_equal():
    """30 pJ for the input and 3 · 200 pJ for spikes at a rate of 2/9; the dense networks need 360 and 120 pJ."""
    chip = Hardware(accumulate_pj=200, multiply_accumulate_pj=10, membrane_update_pj=0, memory_pj_per_byte=0)
    energy = profiled(chip).energy
    every, once = energy.dense
    assert (energy.total_nj, every.parts.total, once.parts.total) == pytest.approx((0.63, 0.36, 0.12))
    assert every.break_even_rate == pytest.approx((360 - 30) / 600 * 2 / 9)
    assert once.break_even_rate == pytest.approx((120 - 30) / 600 * 2 / 9)
    assert energy.verdict(every) == "no, below a rate of 12 % (here 22.2 %)"
    cheap = profiled(chip.model_copy(update={"accumulate_pj": 1.0})).energy
    assert cheap.verdict(cheap.dense[0]) == "yes, at any firing rate"
    dear = profiled(chip.model_copy(update={"membrane_update_pj": 24.0})).energy
    assert dear.verdict(dear.dense[0]) == "no, at no firing rate"


def test_a_silent_network_has_no_break_even_rate():
    energy = profiled(counts=np.zeros_like(COUNTS)).energy
    assert [network.break_even_rate for network in energy.dense] == [None, None]
    assert energy.verdict(energy.dense[0]) == "no"
    assert energy.parts.accumulates == energy.parts.multiply_accumulates == energy.parts.spikes == 0


def test_a_larger_network_is_read_from_a_larger_memory():
    """Horowitz 2014: 64 bits of 8 KiB, 32 KiB and 1 MiB for 10, 20 and 100 pJ, of DRAM for 1300."""
    prices = [Hardware().byte(size) for size in (8192, 8193, 32768, 32769, 2**20, 2**20 + 1)]
    assert prices == [10 / 8, 20 / 8, 20 / 8, 100 / 8, 100 / 8, 1300 / 8]
    wide = three_neurons()
    wide = replace(wide, constants={**wide.constants, "unused": np.zeros(2048, np.float32)})
    assert profiled(program=wide).energy.memory_pj_per_byte == 20 / 8


def test_energies_add_up():
    one, two = EnergyParts(accumulates=1, states=2), EnergyParts(accumulates=3, weights=4)
    assert (one + two).model_dump() == EnergyParts(accumulates=4, states=2, weights=4).model_dump()
    assert ((one + two).operations, (one + two).memory, (one + two).total) == (4, 6, 10)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 255, 256, 257])
def test_addresses_tell_all_elements_apart(size):
    assert 2 ** address_bits(size) >= size
    assert address_bits(size) == max(1, len(bin(size - 1)) - 2)
