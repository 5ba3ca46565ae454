"""The proof: an exported file gives the bits of the collapsed torch network, in onnxruntime and in onnx.reference."""

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.model import Model, load

from ..runtime.codegen.c.machine import Machine, needs_compiler
from ..runtime.codegen.js.node import needs_node, node
from .cases import CASES, Case
from .running import Comparison, Exported, Values
from .small_networks import counts

SPIKING = ("spikes", "membranes", "logits")
BINARY = ("spikes", "logits")

pytestmark = pytest.mark.parametrize("case", CASES, ids=str)


def inputs_of(arriving: InputContract) -> list[Tensor]:
    """From silence to saturation, batches of 1 and 7, T from 1 to 200."""
    silence = torch.zeros_like(counts(arriving, 1, 60))
    saturation = torch.full_like(counts(arriving, 7, 25), arriving.largest)
    return [counts(arriving, 7, 200), counts(arriving, 1, 1), counts(arriving, 1, 33, 0.05), silence, saturation]


def kinds_of(exported: Exported) -> tuple[str, ...]:
    return SPIKING if exported.contract.kind == "spiking" else BINARY


def check(exported: Exported, x: Tensor, found: Values, noises: dict[str, Tensor], tally: Comparison) -> Values:
    expected = exported.on_torch(x, noises)
    comparison = Comparison()
    comparison.add(expected, found)
    tally.add(expected, found)
    comparison.hold(kinds_of(exported))
    return expected


def test_full_check_and_strict_shape_inference_pass(case: Case, case_of):
    model = case_of(case).model
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    assert [value.name for value in inferred.graph.output] == [value.name for value in model.graph.output]


def test_torch_and_onnxruntime_give_the_same_bits(case: Case, case_of, tally):
    exported = case_of(case)
    for number, x in enumerate(inputs_of(exported.contract.input)):
        noises = exported.noises(x, seed=number)
        check(exported, x, exported.on_onnxruntime(x, noises), noises, tally)


def test_torch_and_the_onnx_reference_give_the_same_bits(case: Case, case_of, tally):
    exported = case_of(case)
    for x in (counts(exported.contract.input, 2, 4), torch.zeros_like(counts(exported.contract.input, 1, 2))):
        noises = exported.noises(x)
        found = exported.on_reference(x, noises)
        check(exported, x, found, noises, tally)
        again = exported.on_onnxruntime(x, noises)
        for name in ("probabilities", "entropy", "mutual_information"):
            if name in found:  # softmax and logarithm are not exact, and decide no spike
                np.testing.assert_allclose(found[name], again[name], rtol=1e-5, atol=1e-6)


@needs_node
def test_javascript_gives_the_bits_of_numpy(case: Case, case_of, tmp_path):
    exported = case_of(case)
    (tmp_path / "case.onnx").write_bytes(exported.data)
    model, arriving = load(tmp_path / "case.onnx", "numpy"), exported.contract.input
    x = counts(arriving, 1, 9).numpy()
    expected = model.run(x, seed=5, trace=True)
    values = (x[:, 0] if arriving.steps else x) / arriving.unit + arriving.centre
    found = node().trace(model.program, values, seed=5)
    assert found.keys() == {*expected.traces, "logits"}
    assert [name for name, trace in expected.traces.items() if not np.array_equal(found[name], trace[:, 0])] == []
    assert np.array_equal(found["logits"][-1], expected.member_logits[:, 0])


@pytest.fixture(scope="module")
def machine(case_of, tmp_path_factory):
    """All of them as C, in one library."""
    path, programs = tmp_path_factory.mktemp("c") / "case.onnx", {}
    for number, case in enumerate(CASES):
        path.write_bytes(case_of(case).data)
        programs[f"case{number}"] = load(path, "numpy").program
    return Machine(programs, quick=True)


@needs_compiler
def test_plain_c_gives_the_bits_of_numpy(case: Case, case_of, machine):
    name, arriving = f"case{CASES.index(case)}", case_of(case).contract.input
    model = Model(machine.programs[name], NumpyEngine(machine.programs[name]))
    x = counts(arriving, 1, 9).numpy()
    expected = model.run(x, seed=5, trace=True)
    found = machine.trace(name, (x[:, 0] if arriving.steps else x) / arriving.unit + arriving.centre, seed=5)
    assert found.keys() == {*expected.traces, "logits"}
    assert [key for key, trace in expected.traces.items() if not np.array_equal(found[key], trace[:, 0])] == []
    assert np.array_equal(found["logits"][-1], expected.member_logits[:, 0])
