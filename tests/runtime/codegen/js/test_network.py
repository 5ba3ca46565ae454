"""What users of a module call: contract, steps, events, decisions, faults; and names that mean something in a page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.codegen.js.module_text import module_text, script_text
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.model import Model
from axonnx.runtime.program.instructions import Program

from ...engines.hand_made import neuron_program
from .node import needs_node, node

BINS, EVENTS = 6, 300


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


def recording(seed: int) -> np.ndarray:
    """Events of which some are off the sensor, of no polarity, too early or too late, and not in order."""
    rng = np.random.default_rng(seed)
    return make_events(*(rng.integers(low, high, EVENTS) for low, high in ((-200, 7000), (0, 9), (0, 5), (0, 3))))


@needs_node
@pytest.mark.parametrize(
    "binning", [{}, {"origin": "first"}, {"values": "binary"}, {"polarity": "merge"}, {"most_events": 60}]
)
def test_a_recording_has_the_decision_of_the_runtime(binning):
    made = program(**binning)
    events = recording(1)
    events["p"] = 0 if binning.get("polarity") == "merge" else events["p"]
    fitting = events[(events["x"] < 8) & (events["y"] < 4)]
    expected = Model(made, NumpyEngine(made)).predict(fitting)
    columns = json.dumps({name: events[name].tolist() for name in "txyp"})
    script = f"const n = module.create(); const d = n.run({columns}); return {{...d, logits: [...n.logits()]}};"
    found = node().ask(module_text(made), script)
    assert np.array_equal(np.float32(found["logits"]), expected.logits)
    assert (found["class"], found["label"], found["steps"]) == (expected.winner, expected.label, BINS)
    # Exponentials and logarithms of maths libraries differ in the last places; they decide nothing.
    np.testing.assert_allclose(found["probabilities"], expected.probabilities, rtol=1e-12)
    np.testing.assert_allclose(found["entropy"], expected.entropy, rtol=1e-12)
    counted = expected.outside.as_dict() | {"off_sensor": len(events) - len(fitting), "cropped": 0}
    assert found["outside"] == counted
    assert min(found["outside"]["off_sensor"], found["outside"]["after"]) > 0


@needs_node
def test_steps_take_frames_or_events_and_reset_begins_anew():
    script = """
    const n = module.create(), events = {x: [0, 1, 7, 7, 7, 99], y: [0, 0, 3, 3, 3, 0], p: [1, 1, 0, 0, 0, 0]};
    const frame = new Uint8Array(16); frame[8] = 2; frame[7] = 2;
    const first = [...n.step(events).logits()];
    n.step(events).reset();
    return {first, again: [...n.step(frame).logits()], steps: n.steps, classes: module.contract.classes.length};
    """
    found = node().ask(module_text(program()), script)
    assert found["first"] == found["again"]
    assert sorted(found["first"])[-2:] == [2, 2]
    assert (found["steps"], found["classes"]) == (1, 16)


@needs_node
@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("n.step([1])", "the frame has 1 values; expected 16: 16"),
        ("n.step(new Float32Array(16).fill(0.5))", "value 0 is 0.5; the contract allows integers up to ±2"),
        ("n.step(new Int8Array(16).fill(-3))", "value 0 is -3"),
        ("n.step(new Float32Array(16).fill(NaN))", "value 0 is NaN"),
        ("n.logits()", "there is no time step yet"),
        ("module.create({seed: -1})", "seed is -1; expected a whole number"),
        ("module.create({sample: 4294967296})", "sample is 4294967296"),
    ],
)
def test_wrong_use_is_refused_with_the_reason(call, text):
    script = f"const n = module.create(); try {{ {call}; return ''; }} catch (fault) {{ return fault.message; }}"
    assert text in node().ask(module_text(program()), script)


@needs_node
def test_tables_of_the_clock_end_and_frames_are_no_events():
    made = program()
    bare = made.contract.input.model_copy(update={"binning": None})
    clocked = replace(made, steps_known=2, contract=made.contract.model_copy(update={"input": bare}))
    script = """
    const n = module.create(), frame = new Uint8Array(16), told = [];
    for (const given of [{x: [1]}, frame, frame, frame]) {
      try { n.step(given); } catch (fault) { told.push(fault.message); }
    }
    return told;
    """
    events, clock = node().ask(module_text(clocked), script)
    assert "its contract defines no event binning" in events
    assert "parameters for 2 time steps" in clock


@needs_node
def test_names_cannot_leave_their_place():
    made = program(name="</script>\n*/ alert(1) //\u2028.onnx")
    hostile = made.contract.model_copy(update={"classes": ("</script><b>", *made.contract.classes[1:])})
    text = script_text(replace(made, contract=hostile))
    assert "</script" not in text
    assert "\u2028" not in text
    answer = node().ask(f"{text}\nexport {{ create, contract }};", "return module.contract.classes[0];")
    assert answer == "</script><b>"


def test_the_code_is_small_and_readable():
    text = re.sub(r"'[A-Za-z0-9+/=]{8,}'", "''", module_text(program()))
    assert len(text.encode()) < 60_000
    assert max(map(len, text.splitlines()[10:])) < 200
