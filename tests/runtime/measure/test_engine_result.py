"""A comparison that compared nothing proves nothing."""

import pytest

from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.engine_result import CompiledProgram, CompiledResult, EngineImplementation, EngineResult

FILE = {"model": "a.onnx", "file_sha256": "0"}
FOLDER = {**FILE, "folder": "here", "target": "c", "fired": {}}
WRONG = Difference(
    implementation="b", what="spike", layer="hidden", sample=0, step=1, neuron=(2,), expected=1.0, found=0.0
)


def engines(*implementations, **more):
    return EngineResult(**FILE, implementations=implementations, **more)


def compiled(*programs, **more):
    return CompiledResult(**FOLDER, implementations=programs, **more)


@pytest.mark.parametrize(("result", "kind"), [(engines, EngineImplementation), (compiled, CompiledProgram)])
def test_equal_is_what_was_compared_and_does_not_differ(result, kind):
    fine, empty, wrong = kind(name="a", numbers=3), kind(name="b"), kind(name="c", numbers=3, differing=1, first=WRONG)
    assert result(fine).verified
    assert not result().verified
    assert not result(fine, empty).verified
    assert not result(fine, wrong).verified
    assert result(fine, wrong).first_difference == WRONG


def test_a_refusal_and_a_failure_are_no_proof():
    assert engines(EngineImplementation(name="a", numbers=3), refusal="cut off").engines == "different"
    assert compiled(CompiledProgram(name="a", numbers=3), failures=("silent",)).compiled == "different"
