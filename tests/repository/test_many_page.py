"""What docs/many.md shows about a fleet is run: the file with its batch in front has the bits of the file."""

import re
import shutil
from pathlib import Path

import numpy as np
import onnxruntime

PAGE = (Path(__file__).parents[2] / "docs" / "many.md").read_text("utf-8")
RELEASED = Path(__file__).parents[1] / "released" / "version-1" / "resnet-mfa.onnx"


def test_the_batch_can_stand_in_front(tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "batch_first.onnx" in block)
    monkeypatch.chdir(tmp_path)
    shutil.copy(RELEASED, "digits.onnx")
    exec(compile(code, "docs/many.md", "exec"), {"__name__": "page"})
    plain, front = (onnxruntime.InferenceSession(name) for name in ("digits.onnx", "batch_first.onnx"))
    steps, samples = 7, 5
    shape = plain.get_inputs()[0].shape[2:]
    assert front.get_inputs()[0].shape == ["B", "T", *shape]
    x = np.random.default_rng(0).integers(0, 2, (steps, samples, *shape)).astype(np.float32)
    (expected,) = plain.run(None, {"events": x})
    (found,) = front.run(None, {"events_by_sample": x.swapaxes(0, 1)})
    assert found.tobytes() == expected.tobytes()
    assert len(np.unique(expected)) > 1
