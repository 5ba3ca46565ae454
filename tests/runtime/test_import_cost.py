"""Nothing heavy is imported before it is needed."""

import subprocess
import sys

FRESH = """
import sys
import axonnx.runtime
early = [name for name in ("numpy", "onnx", "onnxruntime", "pydantic", "torch") if name in sys.modules]
from axonnx.runtime.model import load
from axonnx.runtime.streams.session import Session
late = [name for name in ("onnxruntime", "torch") if name in sys.modules]
print(early, late)
"""


def test_nothing_heavy_is_imported_before_it_is_needed():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] []"
