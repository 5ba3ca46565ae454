"""All neurons with memory, behind a synaptic current: compiled kernels against numpy, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.instructions import Program

from .every import COMPILED
from .hand_made import general_program

SHAPES = ((1,), (37,), (5, 3, 2), (16, 1, 3))


def constant(rng, shape, how, values):
    """One number, one for each channel, or one for each neuron."""
    own = {"one": (), "channel": (shape[0], *(1,) * (len(shape) - 1)), "each": shape}[how]
    return rng.choice(np.float32(values), own).astype(np.float32).reshape(own)


VALUES = {"decay": [0.5, 0.9, 1.0], "threshold": [1.0, 2.0, 2.5], "zeroed": [0.0, 1.0], "late_zeroed": [0.0, 1.0]}


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(
        sorted(
            op.name for op in OPS.values() if op.states and op.spikes and "noise" not in op.operands and not op.integers
        )
    ),
    st.sampled_from(SHAPES),
    st.sampled_from(["one", "channel", "each"]),
    st.integers(0, 999),
)
def test_from_any_state(op, shape, how, seed):
    rng = np.random.default_rng(seed)
    parameters = {
        name: constant(rng, shape, how, VALUES.get(name, [0.0, 0.5, 1.0, 0.3])) for name in OPS[op].parameters
    }
    program = general_program(op, shape, parameters)
    arrays = {name: rng.integers(-1, 3, (2, *shape)).astype(np.float32) for name in program.states}
    arrays["spikes"] = (rng.random((2, *shape)) < 0.5).astype(np.float32)
    x = rng.integers(-2, 5, (6, 2, *shape)).astype(np.float32)  # integers: ties are common
    expected = NumpyEngine(program).advance(State(0, arrays), x, {}, trace=True)
    for make in COMPILED:
        found = make(program).advance(State(0, arrays), x, {}, trace=True)
        assert set(found.traces) == {"spikes/layer", "membrane/layer"}
        for name, trace in expected.traces.items():
            assert np.array_equal(found.traces[name], trace), name
        for name, value in expected.state.arrays.items():
            assert np.array_equal(found.state.arrays[name], value), name
        assert np.array_equal(found.activity.spikes["layer"], expected.activity.spikes["layer"])


@pytest.mark.parametrize(
    ("parameters", "membranes", "spikes"),
    [
        ({}, [3.0, 5.5, 6.75], [1, 1, 1]),  # no reset
        ({"zeroed": 1.0}, [3.0, 4.0, 4.0], [1, 1, 1]),  # to zero, in the same step
        ({"taken": 2.0}, [3.0, 4.5, 5.25], [1, 1, 1]),  # by an amount, in the same step: before the decay
        ({"late_taken": 2.0}, [3.0, 3.5, 3.75], [1, 1, 1]),  # one step later: after the decay
        ({"late_zeroed": 1.0}, [3.0, 0.0, 4.0], [1, 0, 1]),  # one step later, what arrives too
        ({"zeroed": 1.0, "taken": -1.0}, [3.0, 4.5, 4.5], [1, 1, 1]),  # to a value
    ],
)
def test_what_each_reset_does(parameters, membranes, spikes):
    given_ = {name: np.float32(parameters.get(name, 0.0)).reshape(()) for name in OPS["GeneralLIF"].parameters}
    given_ |= {"decay": np.float32(0.5).reshape(()), "threshold": np.float32(2.0).reshape(())}
    program = general_program("GeneralLIF", (1,), given_)
    program = Program(**{**vars(program), "constants": {**program.constants, "alpha": np.float32(0.0).reshape(())}})
    x = np.array([3, 4, 4], np.float32).reshape(3, 1, 1)
    for engine in (NumpyEngine(program), *(make(program) for make in COMPILED)):
        traces = engine.advance(engine.initial_state(1), x, {}, trace=True).traces
        assert traces["membrane/layer"].ravel().tolist() == membranes
        assert traces["spikes/layer"].ravel().tolist() == spikes


def test_an_adapting_threshold_rises_with_spikes_and_falls_again():
    given_ = {name: np.float32(0.0).reshape(()) for name in OPS["AdaptiveLIF"].parameters}
    values = {"threshold": 1.0, "zeroed": 1.0, "adaptation_decay": 0.5, "spike_share": 2.0, "threshold_gain": 1.0}
    given_ |= {name: np.float32(value).reshape(()) for name, value in values.items()}
    program = general_program("AdaptiveLIF", (1,), given_)
    program = Program(**{**vars(program), "constants": {**program.constants, "alpha": np.float32(0.0).reshape(())}})
    x = np.full((5, 1, 1), 2, np.float32)
    for engine in (NumpyEngine(program), *(make(program) for make in COMPILED)):
        spikes = engine.advance(engine.initial_state(1), x, {}, trace=True).traces["spikes/layer"]
        assert spikes.ravel().tolist() == [1, 0, 1, 0, 0]  # thresholds 1, 3, 2, 3, 2.5
