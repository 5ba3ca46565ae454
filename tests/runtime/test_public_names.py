"""What `from axonnx.runtime import …` offers: every name is found, and none costs anything before it is used."""

import subprocess
import sys

import pytest

import axonnx.runtime as runtime

NAMES = {
    "Activity",
    "AxonnxError",
    "Chunk",
    "Contract",
    "Decision",
    "Engine",
    "Model",
    "ModelFile",
    "Program",
    "RunResult",
    "Session",
    "SessionState",
    "State",
    "compile_file",
    "load",
    "read_model_file",
}

FRESH = """
import sys
import axonnx.runtime
early = [name for name in ("numpy", "onnx", "onnxruntime", "pydantic", "torch") if name in sys.modules]
from axonnx.runtime import Decision, Session, SessionState, load
late = [name for name in ("onnxruntime", "torch") if name in sys.modules]
print(early, late)
"""


def test_the_public_names_are_these():
    assert set(runtime.__all__) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_name_is_what_its_module_defines(name):
    found = getattr(runtime, name)
    assert found.__name__ == name
    assert found.__module__.startswith(("axonnx.runtime.", "axonnx.base."))


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Sessions'"):
        runtime.Sessions  # noqa: B018


def test_nothing_heavy_is_imported_before_it_is_needed():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] []"
