"""One instruction at a time, made by hand, as C and in numpy; and noise, moved states, names and weights."""

from dataclasses import replace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.c.network_source import c_source
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.state import zero_state
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import REAL, SPIKES, graded
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Buffer,
    Conv,
    Instruction,
    Linear,
    MaxPool,
    Move,
    PoolPairs,
    RecurrentActivity,
    StepRow,
)
from axonnx.runtime.program.layer_noise import draw_noise

from ...engines.hand_made import binary_program, contract, general_program, neuron_program
from .machine import Machine, needs_compiler

COUNTS = graded(3, 0)


def same(programs, inputs) -> int:
    """Compare logits of the C with numpy's on counts x [N, …] of each program; how many were compared."""
    names = [f"p{number}" for number in range(len(programs))]
    compared = 0
    for vectors in (False, True):
        machine = Machine(dict(zip(names, programs, strict=True)), quick=True, vectors=vectors)
        for name, program, x in zip(names, programs, inputs, strict=True):
            engine = NumpyEngine(program)
            for each in x:
                expected = engine.advance(zero_state(program, 1), each[None, None], {}).logits[0]
                found = machine.trace(name, each[None])["logits"][-1, 0]
                assert np.array_equal(found, expected.reshape(found.shape)), name
                compared += found.size
    return compared // 2


def some(rng, *shape) -> np.ndarray:
    return (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)).astype(np.float32)


GEOMETRIES = [
    ((3, 7, 5), (4, 3, 3, 3), ((1, 1), (1, 1, 1, 1), (1, 1), 1)),
    ((4, 9, 8), (6, 2, 3, 2), ((2, 3), (0, 2, 3, 1), (1, 1), 2)),
    ((6, 8, 8), (6, 1, 2, 3), ((1, 2), (2, 0, 1, 3), (3, 2), 6)),
    ((1, 5, 6), (2, 1, 5, 6), ((1, 1), (0, 0, 0, 0), (1, 1), 1)),
]


def convolution(rng, shape, weights, how, biased, largest):
    strides, pads, dilations, group = how
    sizes = [
        (shape[1 + a] + pads[a] + pads[2 + a] - dilations[a] * (weights[2 + a] - 1) - 1) // strides[a] + 1
        for a in (0, 1)
    ]
    constants = {"w": rng.integers(-largest, largest, weights).astype(np.float32)}
    constants |= {"b": rng.integers(-9, 10, weights[0]).astype(np.float32)} if biased else {}
    conv = Conv("c", ("x",), ("y",), "w", "b" if biased else None, strides, pads, dilations, group)
    flat = Move("r", ("y",), ("z",), "Reshape", (weights[0] * sizes[0] * sizes[1],))
    return binary_program(shape, COUNTS, [conv, flat], {"y": (weights[0], *sizes), "z": flat.how}, constants)


@needs_compiler
def test_convolutions():
    rng = np.random.default_rng(0)
    programs = [
        convolution(rng, *geometry, biased, largest)
        for geometry in GEOMETRIES
        for biased, largest in ((True, 100), (False, 300))
    ]
    assert same(programs, [some(rng, 2, *program.contract.input.shape) for program in programs]) > 1000


MOVES = [
    ("Slice", (slice(1, 5, 2), slice(None), slice(-2, None)), lambda x: x[1:5:2, :, -2:]),
    ("Transpose", (2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    ("Pad", ((0, 0), (1, 2), (3, 0)), lambda x: np.pad(x, ((0, 0), (1, 2), (3, 0)))),
    ("Expand", (6, 3, 5), lambda x: np.broadcast_to(x, (6, 3, 5))),
]


@needs_compiler
def test_moves():
    rng, programs = np.random.default_rng(1), []
    for kind, how, moved in MOVES:
        shape = (6, 1, 5) if kind == "Expand" else (6, 3, 5)
        after = moved(np.empty(shape)).shape
        flat = Move("r", ("y",), ("z",), "Reshape", (int(np.prod(after)),))
        steps = [Move("m", ("x",), ("y",), kind, how), flat]
        programs.append(binary_program(shape, COUNTS, steps, {"y": after, "z": flat.how}, {}))
    assert same(programs, [some(rng, 2, *program.contract.input.shape) for program in programs]) > 300


@needs_compiler
def test_joined_pooled_and_broadcast():
    rng = np.random.default_rng(2)
    steps: list[Instruction] = [
        AveragePool("average", ("x",), ("a",), (2, 4)),
        MaxPool("largest", ("x",), ("m",), (2, 4)),
        PoolPairs("pairs", ("x",), ("p",)),
        Move("corner", ("p",), ("q",), "Slice", (slice(None), slice(0, 3), slice(0, 2))),
        Move("row", ("p",), ("s",), "Slice", (slice(None), slice(0, 1), slice(0, 2))),
        Move("dot", ("p",), ("d",), "Slice", (slice(None), slice(0, 1), slice(0, 1))),
        Arithmetic("scaled", ("q", "k"), ("t",), "Mul"),
        Arithmetic("less", ("t", "s"), ("u",), "Sub"),
        Arithmetic("dotted", ("u", "d"), ("e",), "Add"),
        Arithmetic("more", ("one", "e"), ("v",), "Add"),
        Arithmetic("across", ("v", "columns"), ("w",), "Mul"),
        Move("joined", ("a", "m", "w"), ("j",), "Concat", 0),
        Move("flat", ("j",), ("z",), "Reshape", (36,)),
    ]
    small, shapes = (2, 3, 2), {"p": (2, 3, 4), "s": (2, 1, 2), "d": (2, 1, 1), "j": (6, 3, 2), "z": (36,)}
    shapes |= dict.fromkeys(("a", "m", "q", "t", "u", "e", "v", "w"), small)
    constants = {"k": np.array([[[3.0]], [[0.7]]], np.float32), "one": np.float32(0.1).reshape(())}
    constants["columns"] = np.array([[[0.3, 1.7]]], np.float32)
    kinds = {"a": graded(3, 3), "m": COUNTS}
    program = binary_program((2, 6, 8), COUNTS, steps, shapes, constants, kinds)
    every = binary_program(
        (96,), COUNTS, [RecurrentActivity("a", ("x",), ("y",))], {"y": (96,)}, {}, {"y": graded(9 * 96, 0)}
    )
    assert same([program, every], [some(rng, 2, 2, 6, 8), some(rng, 2, 96)]) == 72 + 192


def layers(rng, size):
    """One layer of each kind of neurons, with a constant for all or for each."""
    for wide in (True, False):
        shape = (size,) if wide else ()
        for op in ("LIF", "LIFToZero", "StochasticLIF", "StochasticLIFToZero"):
            noisy = op.startswith("Stochastic")
            parameters = {
                "decay": rng.uniform(0.3, 0.99, shape).astype(np.float32),
                "threshold": rng.uniform(0.5, 2, shape).astype(np.float32),
                **({"base_variance": rng.uniform(0, 1, shape).astype(np.float32)} if noisy else {}),
            }
            yield f"{op.lower()}{int(wide)}", neuron_program(op, size, parameters, noisy, stateful=True)
        for op in ("GeneralLIF", "AdaptiveLIF"):  # behind synapses with a time constant of their own
            parameters = {name: rng.uniform(0, 0.5, shape).astype(np.float32) for name in OPS[op].parameters}
            parameters |= {name: rng.integers(0, 2, shape).astype(np.float32) for name in ("zeroed", "late_zeroed")}
            yield f"{op.lower()}{int(wide)}", general_program(op, (size,), parameters)


@needs_compiler
def test_neurons():
    """The noise that stands for an arriving variance may be negative: so is what it is compared with."""
    rng = np.random.default_rng(3)
    programs = dict(layers(rng, 301))
    machine, x = Machine(programs), rng.integers(-3, 4, (20, 1, 301)).astype(np.float32)
    for name, program in programs.items():
        noise = draw_noise(program, 2**40 + 11, [4], 0, 20)
        expected = NumpyEngine(program).advance(zero_state(program, 1), x, noise, trace=True)
        found = machine.trace(name, x[:, 0], seed=2**40 + 11, sample=4)
        for key, trace in expected.traces.items():
            assert np.array_equal(found[key], trace[:, 0]), (name, key)
        assert 0 < expected.traces["spikes/layer"].mean() < 1


@needs_compiler
def test_a_state_may_become_another_states_past_and_rows_follow_the_clock():
    """Two states that change places, one that keeps the input: a delay line; and a table of three rows."""
    row = StepRow("row", (), ("r",), "table")
    steps = [row, Arithmetic("sum", ("x", "older"), ("s",), "Add"), Arithmetic("more", ("s", "r"), ("y",), "Add")]
    table = np.arange(15, dtype=np.float32).reshape(3, 5)
    program = binary_program((5,), COUNTS, steps, dict.fromkeys("rsy", (5,)), {"table": table})
    states = {name: Buffer(name, (5,), REAL, "state") for name in ("newer", "older", "total")}
    line = replace(
        program,
        contract=contract((5,), 5, spiking=True),
        buffers={**program.buffers, **states},
        states=("newer", "older", "total"),
        after={"older": "newer", "newer": "x", "total": "y"},
        logits=(),
        totals=("total",),
        steps_known=3,
    )
    swapped = replace(line, after={"older": "newer", "newer": "older", "total": "y"})
    machine, x = Machine({"line": line, "swapped": swapped}), some(np.random.default_rng(4), 3, 1, 5)
    for name, program in machine.programs.items():
        expected = NumpyEngine(program).advance(zero_state(program, 1), x, {}).logits[0, 0]
        assert np.array_equal(machine.trace(name, x[:, 0])["logits"][-1, 0], expected / np.float32(3))
    network = machine.network("line")
    assert [network.step(frame) for frame in (*x[:, 0], x[0, 0])] == [0, 0, 0, -2]


class Unheard(Instruction):
    """An instruction that the target does not know."""


def test_what_is_not_known_is_refused_by_name():
    program = binary_program((4,), SPIKES, [Unheard("strange", ("x",), ("y",))], {"y": (4,)}, {})
    with pytest.raises(AxonnxError, match=r"by hand: node 'strange' \(Unheard\) is unknown to the native core"):
        c_source(program)
    with pytest.raises(AxonnxError, match="'2nd' cannot be a prefix"):
        c_source(program, "2nd")


@needs_compiler
def test_weights_are_stored_in_the_fewest_bytes_that_are_exact():
    rng, programs = np.random.default_rng(5), []
    for largest, kind in ((100, "int8_t"), (30_000, "int16_t"), (2**18, "float")):
        weight = (rng.integers(-largest, largest, (5, 7)) * 2.0**-11).astype(np.float32)
        weight[0, 0] = largest * 2.0**-11
        linear = Linear("s", ("x",), ("y",), "w", None)
        programs.append(binary_program((7,), COUNTS, [linear], {"y": (5,)}, {"w": weight}))
        assert f"{kind} w0[" in c_source(programs[-1], vectors=False)["network_weights.h"]
    assert same(programs, [some(rng, 3, 7)] * 3) == 45
