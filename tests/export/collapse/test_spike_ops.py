"""Each spike operator: the training code's formula in torch and the body in a file give the same bits."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from axonnx.export.collapse.ops import OPERATORS
from axonnx.export.verify.formulas import FORMULAS
from axonnx.export.verify.op_check import integer_constants
from axonnx.runtime.format.opset import DOMAIN, IR_VERSION, ONNX_OPSET, OPS, VERSION, function

from ..running import open_session


def model_of(name: str) -> onnx.ModelProto:
    """A graph of this operator alone."""
    op = OPS[name]
    inputs = [helper.make_tensor_value_info(entry, TensorProto.FLOAT, None) for entry in op.inputs]
    outputs = [helper.make_tensor_value_info(entry, TensorProto.FLOAT, None) for entry in op.outputs]
    node = helper.make_node(name, list(op.inputs), list(op.outputs), domain=DOMAIN)
    return helper.make_model(
        helper.make_graph([node], "one", inputs, outputs),
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(DOMAIN, VERSION)],
        functions=[function(name)],
    )


def values_of(name: str, shape: tuple[int, ...], parameter: tuple[int, ...], seed: int) -> dict[str, np.ndarray]:
    """Random inputs in which ties, silence and zero variance are common."""
    generator = np.random.default_rng(seed)
    found = {}
    if OPS[name].integers:
        sizes = int(np.prod(parameter))
        for entry, values in integer_constants(generator, sizes).items():
            found |= {entry: values.reshape(parameter), f"synaptic_{entry}": values.reshape(parameter)}
        for entry in OPS[name].operands:
            most = {"spikes": 2, "counts": 5}.get(entry)
            drawn = generator.integers(0, most, shape) if most else generator.integers(-(2**15), 2**15, shape)
            found[entry] = drawn.astype(np.float32)
        return {entry: found[entry] for entry in OPS[name].inputs}
    for entry in OPS[name].inputs:
        size = parameter if entry in OPS[name].parameters else shape
        value = generator.standard_normal(size)
        if entry == "spikes":
            value = generator.random(size) < 0.4
        elif entry in ("variance", "arriving_variance", "base_variance"):
            value = np.abs(value) * (generator.random(size) < 0.7)
        elif entry == "decay":
            value = generator.random(size)
        elif entry in ("current", "membrane", "threshold", "noise") and seed % 2:
            value = np.round(value * 2) / 2  # so coarse that sums meet the threshold
        found[entry] = np.asarray(value, np.float32)
    return found


def test_there_is_a_torch_operator_for_every_name_and_no_other():
    assert set(OPERATORS) == set(FORMULAS) == set(OPS)
    assert all(hasattr(torch.ops.axonnx, op.function) for op in OPS.values())


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(
    ("shape", "parameter"), [((3, 40), ()), ((3, 40), (40,)), ((1, 6, 8, 4), (6, 1, 1)), ((5, 2, 4, 4), (1,))]
)
def test_torch_onnxruntime_and_reference_agree(name, shape, parameter):
    model = model_of(name)
    session, reference = open_session(model), ReferenceEvaluator(model)
    if name == "PoolPairs" and len(shape) == 2:
        shape = (3, 2, 4, 10)
    compared = 0
    for seed in range(20):
        values = values_of(name, shape, parameter, seed)
        given = {entry: torch.from_numpy(value) for entry, value in values.items()}
        expected = FORMULAS[name](SimpleNamespace(**given))
        body = OPERATORS[name](*given.values())
        found = [session.run(None, values), reference.run(None, values), body if isinstance(body, tuple) else (body,)]
        for results in found:
            for one, other in zip(expected, results, strict=True):
                assert np.array_equal(one.numpy(), other)
                compared += one.numel()
    assert compared > 0


@pytest.mark.parametrize(
    "name", sorted(name for name, op in OPS.items() if op.outputs[-1].endswith("spikes") and not op.integers)
)
def test_a_tie_fires_and_the_next_smaller_number_does_not(name):
    zeros = {entry: np.zeros((1, 2), np.float32) for entry in OPS[name].inputs}
    below = np.nextafter(np.float32(1.0), np.float32(0.0))
    reached = "membrane" if "membrane" in OPS[name].states else "current"
    kept = OPS[name].parameters[0]  # the share of the membrane that is left, of neurons that have one
    zeros |= {kept: np.ones((1, 2), np.float32), "threshold": np.ones(1, np.float32)}
    zeros[reached] = np.array([[1.0, below]], np.float32)
    feeds = {entry: zeros[entry] for entry in OPS[name].inputs}
    *_, spikes = open_session(model_of(name)).run(None, feeds)
    assert spikes.tolist() == [[1.0, 0.0]]


def test_noise_decides_as_the_formula_says():
    """I + κ ε ≥ θ, worked out in float64, wherever the two sides are not within rounding of each other."""
    generator = np.random.default_rng(0)
    shape = (100, 100)
    current, noise = (generator.standard_normal(shape).astype(np.float32) for _ in range(2))
    variance = np.square(generator.standard_normal(shape)).astype(np.float32)
    feeds = {"current": current, "variance": variance, "noise": noise, "threshold": np.array([0.3], np.float32)}
    (spikes,) = open_session(model_of("StochasticHeaviside")).run(None, feeds)
    margin = current.astype(np.float64) + np.sqrt(variance.astype(np.float64)) * noise - np.float64(np.float32(0.3))
    clear = np.abs(margin) > 1e-5
    assert clear.mean() > 0.99
    assert np.array_equal(spikes[clear] == 1.0, margin[clear] >= 0)
    assert 0.2 < spikes.mean() < 0.8
