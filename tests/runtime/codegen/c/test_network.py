"""What users of the header call: frames, events, faults, decisions; and names that mean something in C."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.codegen.c.network_source import c_source
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.values import graded
from axonnx.runtime.model import Model
from axonnx.runtime.program.instructions import Linear, Program

from ...engines.hand_made import binary_program, neuron_program
from .machine import Machine, needs_compiler

BINS, COUNTS = 6, graded(3, 0)
EVENT = np.dtype([("x", np.uint16), ("y", np.uint16), ("p", np.uint8)], align=True)


def program(polarity: str = "keep", name: str = "by hand", **binning: object) -> Program:
    """A layer whose membranes are the logits; its sensor is 8 × 4, down-sampled to 4 × 2."""
    bins = Binning(
        sensor=Sensor(width=8, height=4), bins=BINS, bin_us=1000, clip=2, downsample=2, polarity=polarity, **binning
    )
    parameters = {"threshold": np.float32(2).reshape(()), "decay": np.float32(0.7).reshape(())}
    made = neuron_program("LIF", bins.cells, parameters, noisy=False, stateful=True)
    arriving = made.contract.input.model_copy(update={"steps": BINS, "binning": bins, "largest": 2})
    stated = made.contract.model_copy(update={"input": arriving, "logits": "total / steps"})
    return replace(made, name=name, contract=stated)


@pytest.fixture(scope="module")
def machine() -> Machine:
    hostile = program(name="*/ int evil; // ??/\n\u2028\\.onnx")
    labels = ('"; int x;\\', "??=", "é", *hostile.contract.classes[3:])
    weight = Linear("s", ("x",), ("y",), "w", None)
    frames = binary_program((4,), COUNTS, [weight], {"y": (4,)}, {"w": np.eye(4, dtype=np.float32)})
    members = frames.contract.collapse.model_copy(update={"members": 3})
    together = frames.contract.model_copy(update={"collapse": members})
    return Machine(
        {
            "kept": program(),
            "merged": program("merge"),
            "binary": program(values="binary"),
            "hostile": replace(hostile, contract=hostile.contract.model_copy(update={"classes": labels})),
            "frames": frames,
            "members": replace(frames, logits=("y", "y", "y"), contract=together),
        }
    )


@needs_compiler
@pytest.mark.parametrize("name", ["kept", "merged", "binary"])
def test_events_have_the_decision_of_the_runtime(name, machine):
    made, rng = machine.programs[name], np.random.default_rng(1)
    t = np.sort(rng.integers(0, 1000 * BINS, 300))
    events = make_events(t, *(rng.integers(0, high, 300) for high in (8, 4, 1 if name == "merged" else 2)))
    expected, network = Model(made, NumpyEngine(made)).predict(events), machine.network(name)
    for step in range(BINS):
        part = events[events["t"] // 1000 == step]
        given = np.zeros(len(part) + 3, EVENT)
        given[3:] = list(zip(part["x"], part["y"], part["p"], strict=True))
        given[:3] = [(8, 0, 0), (0, 4, 1), (0, 0, 2)]  # off the sensor, of no polarity
        assert network.step_events(given) == 3
    assert np.array_equal(network.logits()[0], expected.logits)
    assert network.call("decision") == expected.winner


@needs_compiler
def test_what_the_contract_does_not_promise_is_refused_and_a_reset_begins_anew(machine):
    network = machine.network("kept")
    frame = np.zeros(16, np.float32)
    frame[[2, 7]] = 2, 1
    assert network.step(frame) == 0
    first = network.logits()
    for wrong in (0.5, -3, np.nan, np.inf, 3):
        assert network.step(np.where(frame == 1, wrong, frame)) == -1
    assert np.array_equal(network.logits(), first)
    assert network.step(frame) == 0
    assert not np.array_equal(network.logits(), first)
    network.call("reset")
    assert network.step(frame) == 0
    assert np.array_equal(network.logits(), first)
    assert machine.network("frames").step_events(np.zeros(1, EVENT)) == -3


@needs_compiler
@pytest.mark.parametrize("name", ["frames", "members"])
def test_the_largest_wins_and_the_first_of_equals(name, machine):
    network = machine.network(name)
    for frame, winner in (([0, 1, 3, 2], 2), ([-1, 2, -3, 2], 1), ([0, 0, 0, 0], 0)):
        assert network.step(np.array(frame)) == 0
        assert network.call("decision") == winner


@needs_compiler
def test_a_copy_of_the_memory_is_a_saved_state(machine):
    rng, network = np.random.default_rng(2), machine.network("kept")
    frames = rng.integers(0, 3, (4, 16))
    for frame in frames[:2]:
        network.step(frame)
    saved = network.memory.copy()
    for frame in frames[2:]:
        network.step(frame)
    expected = network.logits()
    network.memory[:] = saved
    for frame in frames[2:]:
        network.step(frame)
    assert np.array_equal(network.logits(), expected)


@needs_compiler
def test_names_cannot_leave_their_place(machine):
    texts = machine.texts["hostile"]
    assert not any("\u2028" in text for text in texts.values())
    labels = (ctypes.c_char_p * 16).in_dll(machine.library, "hostile_labels")
    assert [label.decode() for label in labels[:3]] == ['"; int x;\\', "??=", "é"]


def test_the_code_is_small_and_readable():
    files = c_source(program(), "tiny")
    assert sorted(files) == ["tiny.c", "tiny.h", "tiny_core.c", "tiny_weights.h"]
    assert len(files["tiny.c"]) < 9_000
    assert max(len(line) for file in ("tiny.c", "tiny.h", "tiny_core.c") for line in files[file].splitlines()) <= 122
    assert "USES_CONVOLUTIONS 0" in files["tiny_core.c"]  # only what the network needs
    assert files["tiny_core.c"].count("INLINE mask step_") == 1
    assert not any(word in text for text in files.values() for word in ("malloc", "expf", "stdio", "network_"))
    assert "double" not in files["tiny.c"]  # noise alone needs them
