"""Each spike operator by itself: torch, its body in two stock runtimes, and the engine's kernel, on awkward numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper

from axonnx.export.collapse.ops import OPERATORS
from axonnx.export.verify.formulas import FORMULAS
from axonnx.runtime.engines.numpy_engine import KERNELS
from axonnx.runtime.engines.ort_engine import stock_reference, stock_session
from axonnx.runtime.format.opset import DOMAIN, IR_VERSION, ONNX_OPSET, OPS, VERSION, function

Floats = NDArray[np.float32]
NEURONS = 64
WIDE = np.float32(2.0**14)  # a usual size of membranes in integers: times a scale of 2¹² it is below 2³¹


def check_op(name: str, seed: int = 0) -> tuple[int, list[str]]:
    """How many numbers were compared, and which implementations differ from torch."""
    feeds = awkward_inputs(name, np.random.default_rng(seed))
    expected = _torch(name, feeds)
    model = one_op_model(name, feeds)
    others = {
        "onnxruntime": stock_session(model)(feeds).values(),
        "onnx.reference": stock_reference(model)(feeds).values(),
        "numpy kernel": _kernel(name, feeds),
        "collapsed module": _collapsed(name, feeds),
    }
    different = [
        f"{name}: {who} differs from torch in {int((a != b).sum())} of {a.size} numbers of {output!r}"
        for who, found in others.items()
        for output, a, b in zip(OPS[name].outputs, expected, found, strict=True)
        if not np.array_equal(a, b)
    ]
    return len(others) * sum(array.size for array in expected), different


def awkward_inputs(name: str, random: np.random.Generator) -> dict[str, Floats]:
    """Random numbers, constants for each neuron; with silence (the first sample) and exact ties (the second)."""
    op = OPS[name]
    shape = (3, 4, 8, 8) if name == "PoolPairs" else (8, NEURONS)
    feeds = {key: random.normal(size=shape).astype(np.float32) for key in op.operands}
    if op.integers:
        feeds = {key: np.rint(WIDE * values) for key, values in feeds.items()}
    for key in feeds:
        if "variance" in key:
            feeds[key] = np.abs(feeds[key])
        if key == "spikes":
            feeds[key] = (random.random(shape) < 0.3).astype(np.float32)
        feeds[key][0] = 0.0
        if key in ("spikes", "noise"):
            feeds[key][1] = 0.0  # no reset, no noise: the membrane is what arrives and what is left
        if key == "counts":
            feeds[key] = random.integers(0, 4, shape).astype(np.float32)
    for key in op.parameters:
        feeds[key] = random.choice(np.array([0.0, 1.0, 0.3, 0.7], np.float32), NEURONS)
    if op.integers:
        constants = integer_constants(random, NEURONS)
        feeds |= {key: constants[key.removeprefix("synaptic_")] for key in op.parameters}
    if op.membrane is not None:
        values = {**feeds, **dict(zip(op.outputs, _torch(name, feeds), strict=True))}
        feeds["threshold"] = values[op.membrane][1].copy()
        if op.integers:
            feeds["threshold"] = np.maximum(feeds["threshold"], 1)
    return feeds


def integer_constants(random: np.random.Generator, size: int) -> dict[str, Floats]:
    """Constants of integer neurons: every rounding and reset, leaks from little to all, thresholds low and high."""
    scale = 2 ** random.integers(0, 13, size)
    constants = {
        "lost": random.integers(1, scale + 1),
        "scale": scale,
        "round_above": random.choice([0, 1, 1], size) * (scale - 1),
        "round_below": random.choice([0, 1], size) * (scale - 1),
        "least": random.integers(0, 2, size),
        "threshold": random.integers(1, int(WIDE), size),
        "zeroed": random.integers(0, 2, size),
        "taken": random.integers(0, int(WIDE), size),
        "late_zeroed": random.integers(0, 2, size),
        "late_taken": random.integers(0, int(WIDE), size),
        "most": random.integers(1, 16, size),
        "unit": np.full(size, 2.0 ** random.integers(-8, 2)),
    }
    return {key: np.asarray(values, np.float32) for key, values in constants.items()}


def one_op_model(name: str, feeds: dict[str, Floats]) -> onnx.ModelProto:
    """Return a model of this operator alone."""
    inputs = [helper.make_tensor_value_info(key, TensorProto.FLOAT, value.shape) for key, value in feeds.items()]
    outputs = [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in OPS[name].outputs]
    node = helper.make_node(name, list(OPS[name].inputs), list(OPS[name].outputs), domain=DOMAIN)
    return helper.make_model(
        helper.make_graph([node], name, inputs, outputs),
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(DOMAIN, VERSION)],
        functions=[function(name)],
    )


def _torch(name: str, feeds: dict[str, Floats]) -> list[Floats]:
    found = FORMULAS[name](SimpleNamespace(**{key: torch.from_numpy(value) for key, value in feeds.items()}))
    return [part.numpy() for part in found]


def _kernel(name: str, feeds: dict[str, Floats]) -> list[Floats]:
    parameters = {key: feeds[key] for key in OPS[name].parameters}
    return list(KERNELS[name](*(value for key, value in feeds.items() if key not in parameters), parameters))


def _collapsed(name: str, feeds: dict[str, Floats]) -> list[Floats]:
    found = OPERATORS[name](*(torch.from_numpy(value) for value in feeds.values()))
    return [part.numpy() for part in (found if isinstance(found, tuple) else (found,))]
