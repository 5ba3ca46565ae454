"""Rules for the operators of a step: how many operands each may have."""

from pathlib import Path

import onnx
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.fields import every_graph
from axonnx.runtime.program.compilation import compile_file

FILE = next((Path(__file__).parents[2] / "released").glob("version-1*/delays-mfa.onnx"))


def test_an_operand_that_is_optional_in_onnx_is_demanded_here(tmp_path):
    """A slice without steps is correct ONNX; its rule reads the steps."""
    model = onnx.load(FILE)
    slices = [node for graph in every_graph(model.graph) for node in graph.node if node.op_type == "Slice"]
    assert [len(node.input) for node in slices] == [5] * len(slices)
    del slices[0].input[4:]
    onnx.save(model, tmp_path / "changed.onnx")
    with pytest.raises(AxonnxError, match=r"\(Slice\): has 4 operands and 1 results; expected 5 … 5 and 1"):
        compile_file(tmp_path / "changed.onnx")
