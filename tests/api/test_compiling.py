"""``compile_to``: a folder that gives a recording the decision and the bits of the file, or no folder at all."""

import json
import subprocess

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.compiling import TARGETS, compile_to
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.network_input import describe_device
from axonnx.runtime.model import load
from axonnx.runtime.readers import write_npz

from ..runtime.codegen.js.node import needs_node
from ..runtime.readers.event_files import random_events
from ..runtime.streams.small_models import export_all


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return export_all(tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "recording.npz"
    write_npz(path, random_events(300, 8, 6, 5000), Sensor(width=8, height=6))
    return path


def told(done: subprocess.CompletedProcess) -> tuple[str, np.ndarray]:
    """The label and the logits that a compiled program prints."""
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    assert second.startswith("logits ")
    return first.split("  ")[0], np.array(second.split()[1:], np.float32)


@needs_node
@pytest.mark.parametrize("name", ["plain", "merged", "recurrent", "clocked", "noisy", "binary", "first"])
def test_node_prints_the_decision_of_the_runtime(files, recording, tmp_path, name):
    compile_to(files[name], tmp_path / "out", "js")
    command = ["node", str(tmp_path / "out/run.mjs"), str(recording)]
    label, logits = told(subprocess.run(command, capture_output=True, text=True, check=False))
    expected = load(files[name], "numpy").predict(recording)
    assert label == expected.label
    assert np.array_equal(logits, expected.logits)


@needs_node
def test_node_says_what_is_wrong(files, tmp_path):
    compile_to(files["images"], tmp_path / "out", "js")
    (tmp_path / "a.csv").write_text("t,x\n1,2\n")
    for words, text in (
        ([], "usage"),
        (["a.csv"], "found 2 lines; expected 1, one frame in each"),
        (["none.csv"], "none.csv"),
    ):
        command = ["node", "out/run.mjs", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 2
        assert text in done.stderr


@pytest.mark.parametrize("target", ["verilog", "up5k"])
def test_a_network_in_floats_has_no_design_and_leaves_no_folder(files, tmp_path, target):
    with pytest.raises(AxonnxError, match=r"plain\.onnx: float dynamics has no form in Verilog: export the network"):
        compile_to(files["plain"], tmp_path / "out", target)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", sorted({*TARGETS} - {"verilog", "up5k"}))
def test_a_folder_says_what_it_was_made_of(files, tmp_path, target):
    found = compile_to(files["plain"], tmp_path / "out", target)
    record, readme = (
        json.loads((found.folder / "compiled.json").read_text()),
        (found.folder / "README.md").read_text(),
    )
    assert (record["sha256"], record["target"]) == (sha256_of(files["plain"]), target)
    assert record["sha256"] in readme
    assert describe_device(load(files["plain"]).contract.input) in " ".join(readme.split())
    assert "(t, x, y, p) of a 8×6 sensor" in readme
    assert len(readme.splitlines()) <= 20
    assert found.files == {path.name: path.stat().st_size for path in found.folder.iterdir()}


def test_code_without_weights_is_small(files, tmp_path):
    found = compile_to(files["noisy"], tmp_path / "out", "js")
    assert found.files["network.js"] < 60_000  # with its 1,200 weights and the table of normals
    assert found.files["index.html"] - found.files["network.js"] < 60_000  # the same again, and the panel


def test_what_cannot_be_compiled_leaves_no_folder(files, tmp_path):
    (tmp_path / "text.onnx").write_text("no")
    with pytest.raises(AxonnxError, match=r"text\.onnx"):
        compile_to(tmp_path / "text.onnx", tmp_path / "out")
    with pytest.raises(AxonnxError, match="target 'fpga'; expected one of c, js, cortex-m"):
        compile_to(files["plain"], tmp_path / "out", "fpga")
    assert [path.name for path in tmp_path.iterdir()] == ["text.onnx"]
