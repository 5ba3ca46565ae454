"""Files of every release give the bits that they gave when they were written, on every engine, for ever."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from axonnx.base.c_compiler import find_compiler
from axonnx.runtime import load

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("version-*/*.onnx"))
ENGINES = ("numpy", "numba", "ort", "auto", *(("c",) if find_compiler() else ()))


def test_files_of_every_kind_are_there():
    assert len(FILES) >= 7
    assert all(path.with_suffix(".npz").is_file() for path in FILES)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_released_file_keeps_its_bits(path, engine):
    kept = np.load(path.with_suffix(".npz"))
    found = load(path, engine).run(kept["x"], seed=int(kept["seed"])).member_logits
    assert found.dtype == kept["logits"].dtype == np.float32
    assert np.array_equal(found, kept["logits"])
    assert found.any()


@pytest.mark.parametrize(
    "path", [path for path in FILES if "mfa" in path.stem or "int8" in path.stem], ids=lambda path: path.stem
)
def test_stock_onnxruntime_runs_it(path):
    kept = np.load(path.with_suffix(".npz"))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(["logits"], {session.get_inputs()[0].name: kept["x"]})[0]
    assert np.array_equal(found, kept["logits"][0])
