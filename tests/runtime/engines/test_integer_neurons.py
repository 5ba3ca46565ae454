"""Integer neurons: every engine has the same bits, and no membrane leaves the width that its constants certify."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from axonnx.runtime.codegen.expressions import assignments
from axonnx.runtime.engines.numpy_engine import NumpyEngine, neuron_kernel, run_body
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import REAL, graded
from axonnx.runtime.format.widths import NotCertifiedError, bits_of, largest_membrane, most_steps, unit_bits

from .every import COMPILED
from .hand_made import integer_program

OPERATORS = sorted(op.name for op in OPS.values() if op.integers)


def constants(op, size, rng, shift, each):
    """Constants of a layer, for all neurons or for each; every rounding, reset and leak."""
    count = size if each else 1
    scale = np.full(count, 2**shift)
    threshold = rng.integers(1, 200, count)
    drawn = {
        "lost": rng.integers(1, 2**shift + 1, count),
        "scale": scale,
        "round_above": rng.integers(0, 2, count) * (scale - 1),
        "round_below": rng.integers(0, 2, count) * (scale - 1),
        "least": rng.integers(0, 2, count),
        "threshold": threshold,
        "zeroed": rng.integers(0, 2, count),
        "taken": rng.choice([0, 1], count) * threshold,
        "late_zeroed": rng.integers(0, 2, count),
        "late_taken": rng.choice([0, 0, 3], count) * threshold,
        "most": rng.integers(1, 5, count),
        "unit": np.full(count, 0.25),
    }
    shape = (size,) if each else ()
    drawn |= {f"synaptic_{name}": values for name, values in drawn.items()}
    return {name: drawn[name].astype(np.float32).reshape(shape) for name in OPS[op].parameters}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(OPERATORS),
    st.integers(1, 70),
    st.integers(0, 10),
    st.booleans(),
    st.sampled_from([0, 1, 5, 3000]),
    st.integers(0, 999),
)
def test_every_engine_agrees_from_silence_to_the_ends_of_the_certified_width(op, size, shift, each, most, seed):
    rng = np.random.default_rng(seed)
    parameters = constants(op, size, rng, shift, each)
    try:
        largest = largest_membrane(OPS[op], graded(most, 0), parameters)
    except NotCertifiedError:
        assume(False)
    program = integer_program(op, size, parameters)
    arrays = {}
    for name in program.states:
        drawn = rng.choice([0, -largest, largest, 1, -1], (3, size))
        arrays[name] = {"spikes": rng.integers(0, 2, (3, size)), "counts": rng.integers(0, 2, (3, size))}.get(
            name, drawn
        )
    if "counts" in arrays or "spikes" in arrays:  # what has fired had reached its threshold
        fired = arrays.get("spikes", arrays.get("counts"))
        fired *= arrays["membrane"] >= parameters["threshold"]
    state = State(0, {name: values.astype(np.float32) for name, values in arrays.items()})
    x = rng.choice([0, most, -most, rng.integers(-most, most + 1)], (12, 3, size)).astype(np.float32)
    expected = NumpyEngine(program).advance(state, x, {}, trace=True)
    first = program.states[0]
    assert np.abs(expected.state.arrays[first]).max() <= largest
    for make in COMPILED:
        found = make(program).advance(state, x, {}, trace=True)
        for name, values in expected.state.arrays.items():
            assert np.array_equal(found.state.arrays[name], values), name
        for name, trace in expected.traces.items():
            assert np.array_equal(found.traces[name], trace), name
            assert np.abs(trace).max() <= largest or "spikes" in name


def walk(parameters, current, steps=4000):
    """The largest |v| of one IntegerLIF neuron with a constant current."""
    op = OPS["IntegerLIF"]
    body, membrane, spikes = assignments(op), np.zeros(1, np.float32), np.zeros(1, np.float32)
    seen = 0.0
    for _ in range(steps):
        membrane, spikes = run_body(op, body, np.float32([current]), membrane, spikes, parameters=parameters)
        seen = max(seen, abs(float(membrane[0])))
    return seen


NO_RESET = {"zeroed": 0, "taken": 0, "late_zeroed": 0, "late_taken": 0}


def one(**values):
    plain = {"lost": 1, "scale": 16, "round_above": 15, "round_below": 15, "least": 0, "threshold": 100, **NO_RESET}
    return {name: np.float32([value]) for name, value in {**plain, **values}.items()}


def test_the_certified_width_is_reached_but_for_the_rounding():
    """A bound that were twice as large would cost a bit in every target."""
    for current in (50, -50):
        parameters = one()
        bound = largest_membrane(OPS["IntegerLIF"], graded(50, 0), parameters)
        assert 0.96 * bound < walk(parameters, current) <= bound


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ({"round_above": 15, "round_below": 15}, lambda v: v * 13 // 16),
        ({"round_above": 15, "round_below": 0}, lambda v: int(v * 13 / 16)),  # towards zero
        ({"round_above": 0, "round_below": 0}, lambda v: -(v * 13 // -16)),
        ({"lost": 1, "round_above": 0, "round_below": 0}, lambda v: v - (v >> 4)),
        ({"lost": 1, "round_above": 0, "round_below": 0, "least": 1}, lambda v: v - max(v >> 4, min(v, 1))),
    ],
)
def test_every_decay(decay, expected):
    membranes = np.arange(-999, 1000, dtype=np.float32)
    zeros = np.zeros_like(membranes)
    parameters = one(**{"lost": 3, **decay}, threshold=5000)
    found, spikes = neuron_kernel(OPS["IntegerLIF"])(zeros, membranes, zeros, parameters)
    assert found.tolist() == [expected(int(v)) for v in membranes]
    assert not spikes.any()


def test_ties_resets_and_bursts():
    fire = neuron_kernel(OPS["IntegerLIF"])
    no_leak_in_one_step = {"lost": 1, "scale": 2**16, "round_above": 0, "round_below": 0}
    current = np.float32([99, 100, 101])
    rest, spent = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert fire(current, rest, rest, one(**no_leak_in_one_step))[1].tolist() == [0, 1, 1]
    held = np.float32([150, 150, 150])
    for reset, left in (
        ({}, [249, 250, 251]),
        ({"taken": 100}, [149, 150, 151]),
        ({"zeroed": 1}, [99, 100, 101]),
        ({"late_taken": 100}, [149, 150, 151]),
        ({"late_zeroed": 1}, [0, 0, 0]),
    ):
        assert fire(current, held, spent, one(**no_leak_in_one_step, **reset))[0].tolist() == left
    burst = neuron_kernel(OPS["IntegerBurst"])
    arriving = np.float32([-5, 99, 100, 299, 300, 1000])
    still = np.zeros(6, np.float32)
    several = burst(arriving, still, still, {**one(**no_leak_in_one_step, taken=100), "most": np.float32([3])})
    assert several[1].tolist() == [0, 0, 1, 2, 3, 3]
    left = burst(still, several[0], several[1], {**one(**no_leak_in_one_step, taken=100), "most": np.float32([3])})
    assert left[0].tolist() == [-4, 99, 0, 99, 0, 700]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"lost": 0}, "its lost is 0 … 0; expected 1 … 16"),
        ({"lost": 17}, "its lost is 17 … 17; expected 1 … 16"),
        ({"scale": 24}, "its scale is 24; expected powers of two"),
        ({"round_above": 16}, "its round_above is 16 … 16; expected 0 … 15"),
        ({"threshold": 0}, "its threshold is 0 … 0; expected 1"),
        ({"threshold": 1.5}, "its threshold is 1.5; expected whole numbers"),
        ({"zeroed": 2}, "its zeroed is 2 … 2; expected 0 … 1"),
        ({"taken": -1}, "its taken is -1 … -1; expected 0"),
        ({"lost": 1, "scale": 2**16, "round_above": 0, "round_below": 0}, "can reach 65601536"),
        ({"lost": 900, "scale": 1024, "late_taken": 2**22}, "can reach 2³¹"),
    ],
)
def test_what_is_not_certified_is_named(values, text):
    with pytest.raises(NotCertifiedError, match=text):
        largest_membrane(OPS["IntegerLIF"], graded(1000, 0), one(**values))


@pytest.mark.parametrize("current", [REAL, graded(3, 1)])
def test_a_current_that_is_not_whole_is_refused(current):
    with pytest.raises(NotCertifiedError, match="expected whole numbers"):
        largest_membrane(OPS["IntegerLIF"], current, one())


def test_widths_and_units_in_numbers():
    assert [bits_of(number) for number in (0, 1, 127, 128)] == [1, 2, 8, 9]
    assert most_steps(2**10) * 2**10 < 2**24 <= (most_steps(2**10) + 1) * 2**10
    assert [unit_bits(np.float32([unit])) for unit in (1.0, 0.25, 4.0)] == [0, 2, -2]
    for unit in ([0.3], [0.0], [1.0, 2.0]):
        with pytest.raises(NotCertifiedError, match="one power of two"):
            unit_bits(np.float32(unit))
