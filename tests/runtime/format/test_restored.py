"""Files that ONNX tools rewrote: loaded with the same bits, or refused with the tool to leave out."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import inliner

from axonnx.base.errors import AxonnxError
from axonnx.runtime.model import load

RELEASED = sorted((Path(__file__).parents[2] / "released" / "version-1").glob("*.onnx"))


def inlined(path, out):
    onnx.save(inliner.inline_local_functions(onnx.load(path)), out)


def simplified(path, out):
    onnxsim = pytest.importorskip("onnxsim", reason="onnxsim is not installed; make setup does it")
    model, right = onnxsim.simplify(onnx.load(path))
    assert right
    onnx.save(model, out)


def answers(path):
    model = load(path, "numpy")
    steps = 6 if model.contract.kind == "spiking" else 1
    shape = (steps, 3, *model.contract.input.shape)
    x = np.random.default_rng(0).integers(0, 2, shape).astype(np.float32)
    noise = model.noise(0, [0, 1, 2], 0, steps)
    found = model.engine.advance(model.engine.initial_state(3), x, noise, trace=True)
    return {"logits": found.logits, **found.traces}


@pytest.mark.parametrize("rewrite", [inlined, simplified])
@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_a_rewritten_file_gives_the_same_bits(path, rewrite, tmp_path):
    out = tmp_path / path.name
    rewrite(path, out)
    if rewrite is simplified and load(path, "numpy").contract.collapse.members > 1:
        with pytest.raises(AxonnxError, match=r"of its ensemble was moved: .* Do not use onnxsim"):
            load(out, "numpy")
        return
    before, after = answers(path), answers(out)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_body_that_was_changed_is_not_recognised(tmp_path):
    path = next(path for path in RELEASED if onnx.load(path).functions[0].name == "LIF")
    model = inliner.inline_local_functions(onnx.load(path))
    (scan,) = (node for node in model.graph.node if node.op_type == "Scan")
    (body,) = (attribute.g for attribute in scan.attribute if attribute.name == "body")
    next(node for node in body.node if node.op_type == "GreaterOrEqual").op_type = "Greater"
    onnx.save(model, tmp_path / "x.onnx")
    with pytest.raises(AxonnxError):
        load(tmp_path / "x.onnx", "numpy")


def test_onnxruntimes_optimiser_is_named(tmp_path):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "x.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(RELEASED[0]), options, providers=["CPUExecutionProvider"])
    with pytest.raises(AxonnxError, match="onnxruntime's optimiser"):
        load(tmp_path / "x.onnx", "numpy")


def test_the_released_files_are_there():
    assert len(RELEASED) >= 3


def outer_zeros(path):
    """A model of a sequence, and a node of its outer graph that gives zeros."""
    model = onnx.load(path)
    zeros = next(node for node in model.graph.node if node.op_type == "ConstantOfShape")
    return model, zeros


@pytest.fixture
def sequence():
    return next(path for path in RELEASED if any(node.op_type == "Scan" for node in onnx.load(path).graph.node))


def test_zeros_that_nobody_reads_do_not_vanish_from_a_file_that_no_tool_rewrote(sequence, tmp_path):
    model, zeros = outer_zeros(sequence)
    extra = onnx.NodeProto()
    extra.CopyFrom(zeros)
    extra.output[0] = "more/zeros"  # two nodes of one name, which stock onnxruntime refuses
    model.graph.node.insert(list(model.graph.node).index(zeros), extra)
    onnx.save(model, tmp_path / "x.onnx")
    with pytest.raises(AxonnxError, match=r"two nodes have the name|more/zeros"):
        load(tmp_path / "x.onnx", "numpy")


def test_zeros_without_a_result_are_refused(sequence, tmp_path):
    model, zeros = outer_zeros(sequence)
    extra = onnx.NodeProto()
    extra.CopyFrom(zeros)
    del extra.output[:]
    extra.name = "more/zeros"
    model.graph.node.append(extra)
    onnx.save(model, tmp_path / "x.onnx")
    with pytest.raises(AxonnxError):
        load(tmp_path / "x.onnx", "numpy")
