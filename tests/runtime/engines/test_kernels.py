"""Each compiled kernel against its few lines of numpy, bit for bit: silence, ties, one event, all events, odd sizes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.runtime.codegen import rows
from axonnx.runtime.engines.native_engine import NativeEngine
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.values import REAL, SPIKES, graded
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Buffer,
    Conv,
    Linear,
    MaxPool,
    Move,
    PoolPairs,
    RecurrentActivity,
)

from .every import COMPILED
from .hand_made import binary_program, contract, neuron_program

FEW = settings(max_examples=40, deadline=None)
DENSITIES = (0.0, 0.01, 0.2, 0.45, 0.9, 1.0)
LARGEST = {rows.BYTES: 9, rows.SHORTS: 3_000, rows.FLOATS: 33_000}  # weights in units; every sum stays below 2^24


def same(program, x, threads=1):
    """The engines' results and counts, compared; how many numbers were."""
    plain, batch = NumpyEngine(program), x.shape[1]
    expected = plain.advance(plain.initial_state(batch), x, {}, trace=True)
    return {agrees(make(program, threads=threads), expected, x) for make in COMPILED}.pop()


def agrees(fast, expected, x):
    batch = x.shape[1]
    found = fast.advance(fast.initial_state(batch), x, {}, trace=True)
    untraced = fast.advance(fast.initial_state(batch), x, {})
    assert np.array_equal(untraced.logits, expected.logits)
    assert np.array_equal(found.logits, expected.logits)
    assert all(np.array_equal(found.traces[name], trace) for name, trace in expected.traces.items())
    for name, counts in expected.activity.operations.items():
        assert np.array_equal(found.activity.operations[name], counts)
    return expected.logits.size


def inputs(rng, shape, density, spikes):
    values = np.ones(shape) if spikes else rng.integers(-3, 4, shape)
    return (values * (rng.random(shape) < density)).astype(np.float32)


def weights(rng, shape, stored):
    """Multiples of 2^−5, the first one so large that the core stores them as ``stored``."""
    units = rng.integers(-LARGEST[stored], LARGEST[stored] + 1, shape)
    units.flat[0] = LARGEST[stored]
    units.flat[-1:] |= 1  # an odd one, so that 2^−5 is the unit
    return np.ldexp(units, -5).astype(np.float32)


def stored_in(program):
    return {row.stored for row in NativeEngine(program).plan.rows if isinstance(row, rows.Linear | rows.Conv)}


@FEW
@given(
    st.integers(1, 90),
    st.integers(1, 600),
    st.sampled_from(sorted(LARGEST)),
    st.sampled_from(DENSITIES),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_linear(ins, outs, stored, density, spikes, biased, seed):
    rng = np.random.default_rng(seed)
    constants = {"w": weights(rng, (outs, ins), stored)}
    constants |= {"b": rng.integers(-9, 10, outs).astype(np.float32)} if biased else {}
    synapse = Linear("s", ("x",), ("y",), "w", "b" if biased else None)
    program = binary_program((ins,), SPIKES if spikes else graded(3, 0), [synapse], {"y": (outs,)}, constants)
    assert stored_in(program) == {stored}
    assert same(program, inputs(rng, (1, 3, ins), density, spikes)) == 3 * outs


CONVS = st.fixed_dictionaries(
    {
        "channels": st.integers(1, 18),
        "outputs": st.integers(1, 70),
        "size": st.tuples(st.integers(1, 9), st.integers(1, 9)),
        "window": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "strides": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "pads": st.tuples(*[st.integers(0, 2)] * 4),
        "dilations": st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)]),
        "group": st.sampled_from([1, 1, 1, 2]),
    }
)


@settings(max_examples=80, deadline=None)
@given(
    CONVS,
    st.sampled_from(sorted(LARGEST)),
    st.sampled_from(DENSITIES),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_conv(how, stored, density, spikes, biased, seed):
    rng, group = np.random.default_rng(seed), how["group"]
    channels, outputs = how["channels"] * group, how["outputs"] * group
    sizes = [
        (size + before + after - dilation * (window - 1) - 1) // stride + 1
        for size, before, after, dilation, window, stride in zip(
            how["size"], how["pads"][:2], how["pads"][2:], how["dilations"], how["window"], how["strides"], strict=True
        )
    ]
    if min(sizes) < 1:
        return
    constants = {"w": weights(rng, (outputs, how["channels"], *how["window"]), stored)}
    constants |= {"b": rng.integers(-9, 10, outputs).astype(np.float32)} if biased else {}
    bias = "b" if biased else None
    conv = Conv("s", ("x",), ("y",), "w", bias, how["strides"], how["pads"], how["dilations"], group)
    flat = Move("flat", ("y",), ("z",), "Reshape", (outputs * sizes[0] * sizes[1],))
    shape = (channels, *how["size"])
    shapes = {"y": (outputs, *sizes), "z": (outputs * sizes[0] * sizes[1],)}
    program = binary_program(shape, SPIKES if spikes else graded(3, 0), [conv, flat], shapes, constants)
    assert stored_in(program) == {stored}
    same(program, inputs(rng, (1, 2, *shape), density, spikes))


@pytest.mark.parametrize("kind", ["linear", "conv"])
def test_inputs_of_ones_after_counts_and_counts_after_ones(kind):
    """A sample of 0 and 1 alone takes the shorter path of spikes; the next one, with a −1 or a 2, does not."""
    rng = np.random.default_rng(0)
    if kind == "linear":
        shape, shapes, steps = (40,), {"y": (33,)}, [Linear("s", ("x",), ("y",), "w", None)]
    else:
        conv = Conv("s", ("x",), ("y",), "w", None, (1, 1), (1, 1, 1, 1), (1, 1), 1)
        flat = Move("flat", ("y",), ("z",), "Reshape", (33 * 20,))
        shape, shapes, steps = (3, 4, 5), {"y": (33, 4, 5), "z": (33 * 20,)}, [conv, flat]
    weight = rng.integers(-9, 10, (33, 40) if kind == "linear" else (33, 3, 3, 3)).astype(np.float32)
    ones = (rng.random((1, 6, *shape)) < 0.3).astype(np.float32)
    flat_view = ones.reshape(6, -1)
    flat_view[1, 7], flat_view[2, 0], flat_view[4, -1] = -1, 2, 3
    same(binary_program(shape, graded(3, 0), steps, shapes, {"w": weight}), ones)


MOVES = {
    "transpose": (Move("m", ("x",), ("y",), "Transpose", (2, 0, 1)), (6, 3, 4)),
    "slice": (Move("m", ("x",), ("y",), "Slice", (slice(0, 3, 2), slice(1, 4), slice(None))), (2, 3, 6)),
    "pad": (Move("m", ("x",), ("y",), "Pad", ((0, 2), (1, 0), (0, 1))), (5, 5, 7)),
    "concat": (Move("m", ("x", "x"), ("y",), "Concat", 0), (6, 4, 6)),
    "reshape": (Move("m", ("x",), ("y",), "Reshape", (8, 9)), (8, 9)),
    "pool": (AveragePool("m", ("x",), ("y",), (2, 2)), (3, 2, 3)),
    "largest": (MaxPool("m", ("x",), ("y",), (2, 3)), (3, 2, 2)),
    "pairs": (PoolPairs("m", ("x",), ("y",)), (3, 2, 3)),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_and_pools(name):
    instruction, shape = MOVES[name]
    size = int(np.prod(shape))
    flat = Move("flat", ("y",), ("z",), "Reshape", (size,))
    weight = {"w": np.eye(size, dtype=np.float32)[::-1].copy()}
    synapse = Linear("s", ("z",), ("out",), "w", None)  # what was moved is read as events again
    shapes, kinds = {"y": shape, "z": (size,), "out": (size,)}, {"y": graded(3, 2), "z": graded(3, 2)}
    program = binary_program((3, 4, 6), graded(3, 0), [instruction, flat, synapse], shapes, weight, kinds)
    assert same(program, inputs(np.random.default_rng(0), (1, 4, 3, 4, 6), 0.5, False)) == 4 * size


@FEW
@given(
    st.sampled_from(["Add", "Sub", "Mul"]),
    st.sampled_from([(5, 3, 4), (5, 1, 1), (1, 3, 4), ()]),
    st.booleans(),
    st.integers(0, 99),
)
def test_arithmetic_with_constants_of_any_shape(kind, shape, swapped, seed):
    rng = np.random.default_rng(seed)
    constants = {"c": rng.standard_normal(shape).astype(np.float32)}
    reads = ("c", "x") if swapped else ("x", "c")
    operation = Arithmetic("a", reads, ("y",), kind)
    flat = Move("flat", ("y",), ("z",), "Reshape", (60,))
    program = binary_program((5, 3, 4), graded(3, 0), [operation, flat], {"y": (5, 3, 4), "z": (60,)}, constants)
    same(program, inputs(rng, (1, 2, 5, 3, 4), 0.6, False))


@FEW
@given(st.integers(1, 70), st.sampled_from(DENSITIES), st.integers(0, 99))
def test_recurrent_activity_times_one_for_each(size, density, seed):
    rng = np.random.default_rng(seed)
    activity = RecurrentActivity("r", ("x",), ("a",))
    scaled = Arithmetic("m", ("g", "a"), ("y",), "Mul")
    constants = {"g": rng.standard_normal(size).astype(np.float32)}
    program = binary_program((size,), SPIKES, [activity, scaled], {"a": (size,), "y": (size,)}, constants)
    same(program, inputs(rng, (1, 2, size), density, True))


NEURONS = {
    "Heaviside": (False, False),
    "LIF": (False, True),
    "LIFToZero": (False, True),
    "StochasticHeaviside": (True, False),
    "StochasticLIF": (True, True),
    "StochasticLIFToZero": (True, True),
}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(NEURONS)), st.integers(1, 70), st.booleans(), st.integers(0, 999))
def test_neurons_from_any_state(op, size, alike, seed):
    noisy, stateful = NEURONS[op]
    rng = np.random.default_rng(seed)
    shape = () if alike else (size,)
    threshold = rng.integers(1, 4, shape).astype(np.float32)  # currents are integers too: ties are common
    parameters = {"threshold": threshold}
    if stateful:
        parameters["decay"] = np.float32(rng.choice([0.5, 0.9, 1.0])).reshape(())
    if stateful and noisy:
        parameters["base_variance"] = np.float32(0.25).reshape(())
    program = neuron_program(op, size, parameters, noisy, stateful)
    plain = NumpyEngine(program)
    arrays = {name: rng.integers(0, 3, (2, size)).astype(np.float32) for name in program.states}
    arrays |= {"spikes": (rng.random((2, size)) < 0.5).astype(np.float32)} if stateful else {}
    state = State(0, arrays) if stateful else plain.initial_state(2)
    steps = 5 if stateful else 1
    x = rng.integers(-2, 5, (steps, 2, size)).astype(np.float32)
    noise = {name: rng.integers(-2, 3, x.shape).astype(np.float32) ** 2 for name in program.noises}
    expected = plain.advance(state, x, noise, trace=True)
    for make in COMPILED:
        found = make(program).advance(state, x, noise, trace=True)
        for name, trace in expected.traces.items():
            assert np.array_equal(found.traces[name], trace), name
        untraced = make(program).advance(state, x, noise)
        for name, value in expected.state.arrays.items():
            assert np.array_equal(found.state.arrays[name], value), name
            assert np.array_equal(untraced.state.arrays[name], value), name
        assert np.array_equal(found.activity.spikes["layer"], expected.activity.spikes["layer"])


def test_a_membrane_on_its_threshold_fires():
    program = neuron_program(
        "LIF", 3, {"threshold": np.float32(2).reshape(()), "decay": np.float32(0.5).reshape(())}, False, True
    )
    below = np.nextafter(np.float32(2), np.float32(0))
    for engine in (NumpyEngine(program), *(make(program) for make in COMPILED)):
        membrane = np.array([[0, 2 * (below - 1), 2]], np.float32)
        state = State(0, {"membrane": membrane, "spikes": np.zeros((1, 3), np.float32)})
        after = engine.advance(state, np.array([[[2, 1, 1]]], np.float32), {}, trace=True)
        assert after.traces["spikes/layer"].ravel().tolist() == [1, 0, 1]


def test_products_are_rounded_before_they_are_added():
    """h' = β·h + I − θ·o is four roundings; a fused multiply-add has fewer, and other bits."""
    rng = np.random.default_rng(0)
    decay, threshold = np.float32(0.9), np.float32(1.1)
    membrane = rng.standard_normal((1, 4096)).astype(np.float32)
    spikes = (rng.random((1, 4096)) < 0.5).astype(np.float32)
    x = rng.integers(-3, 4, (1, 1, 4096)).astype(np.float32)
    rounded = decay * membrane + x[0] - threshold * spikes
    fused = (np.float64(decay) * membrane + x[0]).astype(np.float32) - threshold * spikes
    assert (fused != rounded).sum() > 100  # or this test could not fail
    parameters = {"threshold": threshold.reshape(()), "decay": decay.reshape(())}
    for make in COMPILED:
        engine = make(neuron_program("LIF", 4096, parameters, False, True))
        after = engine.advance(State(0, {"membrane": membrane, "spikes": spikes}), x, {})
        assert np.array_equal(after.state.arrays["membrane"], rounded)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_a_batch(threads):
    rng = np.random.default_rng(0)
    constants = {"w": weights(rng, (33, 40), rows.SHORTS)}
    program = binary_program((40,), graded(3, 0), [Linear("s", ("x",), ("y",), "w", None)], {"y": (33,)}, constants)
    for batch in (1, 2, 7):
        assert same(program, inputs(rng, (1, batch, 40), 0.3, False), threads) == batch * 33


def test_old_states_that_are_read_late_are_not_overwritten():
    """Synapses on the spikes before this step, read after the neurons fired; and a state that a synapse writes."""
    rng = np.random.default_rng(0)
    parameters = {"threshold": np.float32(2).reshape(()), "decay": np.float32(0.5).reshape(())}
    base = neuron_program("LIF", 21, parameters, False, True)
    late = Linear("late", ("spikes",), ("y",), "w", None)
    program = replace(
        base,
        contract=contract((21,), 9, spiking=True),
        instructions=(*base.instructions, late),
        buffers={**base.buffers, "sum": Buffer("sum", (9,), REAL, "state"), "y": Buffer("y", (9,), REAL)},
        constants={**base.constants, "w": rng.integers(-9, 10, (9, 21)).astype(np.float32)},
        states=(*base.states, "sum"),
        after={**base.after, "sum": "y"},
        totals=("sum",),
        synapses=("late",),
    )
    fast = COMPILED[0](program)
    assert fast.plan.storage.copied == ["spikes", "sum"]
    x = rng.integers(-2, 4, (9, 3, 21)).astype(np.float32)
    assert same(program, x) == 3 * 9
    assert fast.advance(fast.initial_state(3), x, {}).logits.any()
