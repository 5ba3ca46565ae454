"""One instruction at a time, made by hand, as JavaScript and in numpy; and noise, ties, roundings and moved states."""

from dataclasses import replace

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.js.module_text import module_text
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
)
from axonnx.runtime.program.layer_noise import draw_noise

from ...engines.hand_made import binary_program, contract, general_program, neuron_program
from .node import needs_node, node

COUNTS = graded(3, 0)


def same(program, x) -> int:
    """Compare logits of the JavaScript with numpy's on counts x [N, …]; how many were compared."""
    expected = np.concatenate(
        [NumpyEngine(program).advance(zero_state(program, 1), each[None, None], {}).logits[0] for each in x]
    )
    found = np.stack([node().trace(program, each[None])["logits"][-1, 0] for each in x])
    assert np.array_equal(found, expected.reshape(found.shape))
    return found.size


def some(rng, *shape) -> np.ndarray:
    return (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)).astype(np.float32)


@needs_node
@pytest.mark.parametrize(
    ("shape", "weights", "how"),
    [
        ((3, 7, 5), (4, 3, 3, 3), ((1, 1), (1, 1, 1, 1), (1, 1), 1)),
        ((4, 9, 8), (6, 2, 3, 2), ((2, 3), (0, 2, 3, 1), (1, 1), 2)),
        ((6, 8, 8), (6, 1, 2, 3), ((1, 2), (2, 0, 1, 3), (3, 2), 6)),
        ((1, 5, 6), (2, 1, 5, 6), ((1, 1), (0, 0, 0, 0), (1, 1), 1)),
    ],
)
@pytest.mark.parametrize("biased", [True, False])
def test_convolutions(shape, weights, how, biased):
    rng = np.random.default_rng(0)
    strides, pads, dilations, group = how
    sizes = [
        (shape[1 + a] + pads[a] + pads[2 + a] - dilations[a] * (weights[2 + a] - 1) - 1) // strides[a] + 1
        for a in (0, 1)
    ]
    constants = {"w": rng.integers(-300, 300, weights).astype(np.float32)}
    constants |= {"b": rng.integers(-9, 10, weights[0]).astype(np.float32)} if biased else {}
    conv = Conv("c", ("x",), ("y",), "w", "b" if biased else None, strides, pads, dilations, group)
    flat = Move("r", ("y",), ("z",), "Reshape", (weights[0] * sizes[0] * sizes[1],))
    shapes = {"y": (weights[0], *sizes), "z": flat.how}
    program = binary_program(shape, COUNTS, [conv, flat], shapes, constants)
    assert same(program, some(rng, 2, *shape)) > 0


MOVES = [
    ("Slice", (slice(1, 5, 2), slice(None), slice(-2, None))),
    ("Transpose", (2, 0, 1)),
    ("Pad", ((0, 0), (1, 2), (3, 0))),
    ("Expand", (4, 3, 5)),
]


@needs_node
@pytest.mark.parametrize(("kind", "how"), MOVES)
def test_moves(kind, how):
    rng = np.random.default_rng(1)
    shape = (4, 1, 5) if kind == "Expand" else (6, 3, 5)
    probe = np.empty(shape)
    moved = {
        "Slice": lambda: probe[how],
        "Transpose": lambda: probe.transpose(how),
        "Pad": lambda: np.pad(probe, how),
        "Expand": lambda: np.broadcast_to(probe, how),
    }[kind]()
    move = Move("m", ("x",), ("y",), kind, how)
    flat = Move("r", ("y",), ("z",), "Reshape", (moved.size,))
    program = binary_program(shape, COUNTS, [move, flat], {"y": moved.shape, "z": (moved.size,)}, {})
    assert same(program, some(rng, 2, *shape)) == 2 * moved.size


@needs_node
def test_joined_pooled_and_broadcast():
    rng = np.random.default_rng(2)
    steps: list[Instruction] = [
        AveragePool("average", ("x",), ("a",), (2, 4)),
        MaxPool("largest", ("x",), ("m",), (2, 4)),
        PoolPairs("pairs", ("x",), ("p",)),
        Move("corner", ("p",), ("q",), "Slice", (slice(None), slice(0, 3), slice(0, 2))),
        Move("row", ("p",), ("s",), "Slice", (slice(None), slice(0, 1), slice(0, 2))),
        Arithmetic("scaled", ("q", "k"), ("t",), "Mul"),
        Arithmetic("less", ("t", "s"), ("u",), "Sub"),
        Arithmetic("more", ("one", "u"), ("v",), "Add"),
        Move("joined", ("a", "m", "v"), ("j",), "Concat", 0),
        Move("flat", ("j",), ("z",), "Reshape", (36,)),
    ]
    small, shapes = (2, 3, 2), {"p": (2, 3, 4), "s": (2, 1, 2), "j": (6, 3, 2), "z": (36,)}
    shapes |= dict.fromkeys(("a", "m", "q", "t", "u", "v"), small)
    constants = {"k": np.array([[[3.0]], [[0.7]]], np.float32), "one": np.float32(0.1).reshape(())}
    kinds = {"a": graded(3, 3), "m": COUNTS}
    assert same(binary_program((2, 6, 8), COUNTS, steps, shapes, constants, kinds), some(rng, 2, 2, 6, 8)) == 72


@needs_node
def test_what_reaches_a_neuron_from_all_others():
    rng = np.random.default_rng(6)
    program = binary_program(
        (96,), COUNTS, [RecurrentActivity("a", ("x",), ("y",))], {"y": (96,)}, {}, {"y": graded(9 * 96, 0)}
    )
    assert same(program, some(rng, 2, 96)) == 192


@needs_node
@pytest.mark.parametrize("op", ["LIF", "LIFToZero", "StochasticLIF", "StochasticLIFToZero"])
@pytest.mark.parametrize("wide", [True, False])
def test_neurons(op, wide):
    """The noise that stands for an arriving variance may be negative: so is what it is compared with."""
    rng, size = np.random.default_rng(3), 301
    noisy = op.startswith("Stochastic")
    shape = (size,) if wide else ()
    parameters = {
        "decay": rng.uniform(0.3, 0.99, shape).astype(np.float32),
        "threshold": rng.uniform(0.5, 2, shape).astype(np.float32),
        **({"base_variance": rng.uniform(0, 1, shape).astype(np.float32)} if noisy else {}),
    }
    program = neuron_program(op, size, parameters, noisy, stateful=True)
    x = rng.integers(-3, 4, (20, 1, size)).astype(np.float32)
    noise = draw_noise(program, 11, [4], 0, 20)
    expected = NumpyEngine(program).advance(zero_state(program, 1), x, noise, trace=True)
    found = node().trace(program, x[:, 0], seed=11, sample=4)
    for name, trace in expected.traces.items():
        assert np.array_equal(found[name], trace[:, 0]), name
    assert 0 < expected.traces["spikes/layer"].mean() < 1


@needs_node
@pytest.mark.parametrize("op", ["GeneralLIF", "AdaptiveLIF"])
@pytest.mark.parametrize("wide", [True, False])
def test_general_neurons(op, wide):
    """Behind synapses with a time constant of their own."""
    rng, size = np.random.default_rng(3), 301
    shape = (size,) if wide else ()
    parameters = {name: rng.uniform(0, 0.5, shape).astype(np.float32) for name in OPS[op].parameters}
    parameters |= {name: rng.integers(0, 2, shape).astype(np.float32) for name in ("zeroed", "late_zeroed")}
    program = general_program(op, (size,), parameters)
    x = rng.integers(-3, 4, (20, 1, size)).astype(np.float32)
    expected = NumpyEngine(program).advance(zero_state(program, 1), x, {}, trace=True)
    found = node().trace(program, x[:, 0])
    for name, trace in expected.traces.items():
        assert np.array_equal(found[name], trace[:, 0]), name
    assert 0 < expected.traces["spikes/layer"].mean() < 1


@needs_node
def test_a_state_may_become_another_states_past():
    """Two states that change places, and one that keeps the input: a delay line."""
    program = binary_program((5,), COUNTS, [Arithmetic("sum", ("x", "older"), ("y",), "Add")], {"y": (5,)}, {})
    states = {name: Buffer(name, (5,), REAL, "state") for name in ("newer", "older", "total")}
    program = replace(
        program,
        contract=contract((5,), 5, spiking=True),
        buffers={**program.buffers, **states},
        states=("newer", "older", "total"),
        after={"older": "newer", "newer": "x", "total": "y"},
        logits=(),
        totals=("total",),
    )
    x = some(np.random.default_rng(4), 4, 1, 5)
    expected = NumpyEngine(program).advance(zero_state(program, 1), x, {}).logits[0, 0]
    found = node().trace(program, x[:, 0])["logits"]
    assert np.array_equal(found[-1, 0] * 4, expected)
    assert np.array_equal(found[-1, 0] * 4, x[3, 0] + x[1, 0])
    swapped = replace(program, after={"older": "newer", "newer": "older", "total": "y"})
    assert np.array_equal(node().trace(swapped, x[:, 0])["logits"][-1, 0] * 4, x[3, 0])


class Unheard(Instruction):
    """An instruction that the target does not know."""


def test_what_is_not_known_is_refused_by_name():
    program = binary_program((4,), SPIKES, [Unheard("strange", ("x",), ("y",))], {"y": (4,)}, {})
    with pytest.raises(AxonnxError, match=r"by hand: node 'strange' \(Unheard\) cannot be written as JavaScript"):
        module_text(program)
    inexact = binary_program((1, 2, 2), COUNTS, [AveragePool("mean", ("x",), ("y",), (2, 2))], {"y": (1, 1, 1)}, {})
    with pytest.raises(AxonnxError, match=r"node 'mean' \(AveragePool\).*their bits depend on the order"):
        module_text(inexact)


@needs_node
@pytest.mark.parametrize("largest", [100, 30_000, 2**18, 2**23])
def test_weights_are_stored_in_the_fewest_bytes_that_are_exact(largest):
    rng = np.random.default_rng(5)
    weight = (rng.integers(-largest, largest, (5, 7)) * 2.0**-11).astype(np.float32)
    weight[0, 0] = largest * 2.0**-11
    program = binary_program((7,), COUNTS, [Linear("s", ("x",), ("y",), "w", None)], {"y": (5,)}, {"w": weight})
    kind = {100: "Int8Array", 30_000: "Int16Array", 2**18: "Int24", 2**23: "Float32Array"}[largest]
    assert f", {kind}, " in next(line for line in module_text(program).splitlines() if line.startswith("const k0"))
    if largest < 2**23:  # beyond it, sums of seven are not exact
        assert same(program, some(rng, 3, 7)) == 15
