"""``axonnx verify FILE`` without a run: all engines on one file, without torch, and it bites."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.cli import main
from axonnx.runtime.engines import numpy_engine
from axonnx.runtime.engines.native_engine import NativeEngine
from axonnx.runtime.engines.ort_engine import OrtEngine
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.measure.engine_check import check_engines
from axonnx.runtime.measure.engine_inputs import KINDS, generated, input_of, on_thresholds
from axonnx.runtime.measure.engine_result import EngineResult
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.samples import open_samples
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.readers import write_npz

from ..runtime.streams.small_models import BINNING, SENSOR

WHOLE = {"onnxruntime, the file as it is", "onnx.reference, the file as it is"}
STEPWISE = {"native, step by step", "onnxruntime, step by step"}
ALL = {"native", "onnxruntime, steps in a loop", *STEPWISE, *WHOLE}


@pytest.mark.parametrize(
    "name",
    ["plain", "step", "binary", "ensemble", "noisy", "recurrent", "clocked", "frames", "images", "noisy_images"],
)
def test_every_engine_on_every_kind_of_file(files, name):
    found = check_engines(files[name])
    spiking = name not in ("binary", "images", "noisy_images")
    assert found.engines == "equal"
    assert {entry.name for entry in found.implementations} == (ALL if spiking else ALL - STEPWISE)
    assert all(entry.differing == 0 < entry.numbers for entry in found.implementations)
    assert (found.ties > 0) == spiking
    assert found.file_sha256 == sha256_of(files[name])
    assert found.data_sha256 is None


def test_generated_input_is_what_it_says(engines):
    contract = engines("plain").program.contract
    x = generated(contract, 0).x
    assert x.shape == (5, len(KINDS), *contract.input.shape)
    sparse, dense, silence, full = (x[:, kind] for kind in range(4))
    assert 0 < (sparse != 0).mean() < 0.1 < 0.6 < (dense != 0).mean() < 0.9  # a quarter of 0 … 3 is 0
    assert (silence == 0).all()
    assert (full == 3).all()
    assert (generated(contract, 0).x == x).all()
    assert (generated(contract, 1).x != x).any()
    images = engines("images").program.contract
    assert generated(images, 0).x.min() < 0  # pixels below the centre


def test_membranes_are_put_on_their_thresholds(engines):
    engine = engines("plain")
    x = generated(engine.program.contract, 0).x
    state, ties = on_thresholds(engine.program, x, {})
    chunk = engine.advance(state, x[:1], {}, trace=True)
    (layer,) = engine.program.layers
    (threshold,) = {entry.threshold for entry in engine.program.contract.layers if entry.name == layer.name}
    on = chunk.traces[f"membrane/{layer.name}"][0] == np.float32(threshold)
    assert ties == on.sum() > 0.8 * on.size
    assert (chunk.traces[f"spikes/{layer.name}"][0][on] == 1).all()


def test_a_tie_that_does_not_fire_is_found(files, monkeypatch):
    def strict(*given):
        membrane, spikes = (np.array(each) for each in FIRED(*given))
        return membrane, np.where(membrane == given[-1]["threshold"], np.float32(0), spikes)

    FIRED = numpy_engine.KERNELS["LIF"]
    monkeypatch.setitem(numpy_engine.KERNELS, "LIF", strict)
    found = check_engines(files["plain"])
    assert found.engines == "different"
    assert str(found.first_difference).startswith("native: layer 'hidden.0.neuron', time step 0, ")


@pytest.mark.parametrize(("engine", "name"), [(NativeEngine, "native"), (OrtEngine, "onnxruntime, steps in a loop")])
def test_one_wrong_spike_of_an_engine_is_found(files, capsys, monkeypatch, engine, name):
    advance = engine.advance

    def wrong(self, state, x, noise, trace=False):
        chunk = advance(self, state, x, noise, trace)
        traces = {key: np.array(value) for key, value in chunk.traces.items()}
        spikes = traces["spikes/hidden.0.neuron"]
        spikes[-1, 1, 4] = 1 - spikes[-1, 1, 4]
        return chunk._replace(traces=traces)

    monkeypatch.setattr(engine, "advance", wrong)
    assert main(["verify", str(files["plain"])]) == 1
    said = capsys.readouterr().out
    assert f"ENGINES DIFFER: {name}: layer 'hidden.0.neuron', time step 4, neuron [4], sample 1: spike " in said


@pytest.mark.parametrize(
    ("file", "name"), [("fine", "hidden.0.synapse.weight"), ("plain", "hidden.0.synapse.weight/step")]
)
def test_a_weight_off_its_grid_is_a_failure_of_the_structure(file, name, files, tmp_path, capsys):
    model = onnx.load(files[file])
    (scan,) = [node for node in model.graph.node if node.op_type == "Scan"]
    for graph in (model.graph, *(a.g for a in scan.attribute if a.HasField("g"))):
        for tensor in graph.initializer:
            if tensor.name == name:
                changed = numpy_helper.to_array(tensor).copy()
                changed.reshape(-1)[0] *= np.float32(1 + 2.0**-20)
                tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    onnx.save(model, tmp_path / "edited.onnx")
    assert main(["verify", str(tmp_path / "edited.onnx"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["engines"] == "different"
    assert "off the grid" in found["refusal"]
    assert main(["verify", str(tmp_path / "edited.onnx")]) == 1
    assert "FAILED structure: edited.onnx: " in capsys.readouterr().out


@pytest.fixture
def folder(tmp_path):
    """Recordings in folders of folders."""
    random = np.random.default_rng(0)
    for number in range(5):
        place = tmp_path / "data" / f"part{number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        t = np.sort(random.integers(0, 6000, 80))
        events = make_events(t, random.integers(0, 8, 80), random.integers(0, 6, 80), random.integers(0, 2, 80))
        write_npz(place / f"{number}.npz", events, SENSOR)
    return tmp_path / "data"


def test_the_users_own_recordings(files, engines, folder, tmp_path, capsys):
    words = ["verify", str(files["noisy"]), "--data", str(folder), "--json", str(tmp_path / "engines.json")]
    assert main(words) == 0
    said, found = capsys.readouterr().out, json.loads((tmp_path / "engines.json").read_text())
    assert f"input: {folder}" in said
    assert read_result(EngineResult, tmp_path / "engines.json").engines == "equal"
    with pytest.raises(AxonnxError, match=r"engines\.json: verdict"):
        read_result(VerifyResult, tmp_path / "engines.json")  # it is no verification for a report to show
    assert "the training network was not part of this" in said
    assert found["training_network"] == "not compared"
    assert found["engines"] == "equal"
    assert found["file_sha256"] == sha256_of(files["noisy"])
    by_name = {entry["name"]: entry for entry in found["implementations"]}
    assert by_name["onnxruntime, the file as it is"]["samples"] == 5
    assert by_name["onnx.reference, the file as it is"]["samples"] == 2
    contract = engines("noisy").program.contract
    few = input_of(open_samples(folder, contract, labelled=False), contract, 3)
    assert few.x.shape == (5, 3, *BINNING.frame_shape)
    assert few.sha256 == found["data_sha256"]
    recording = folder / "part0" / "0.npz"
    one = check_engines(files["plain"], lambda c: input_of(open_samples(recording, c, labelled=False), c, 9))
    assert (one.engines, one.data_sha256) == ("equal", sha256_of(folder / "part0" / "0.npz"))


def test_frames(files, tmp_path, capsys):
    np.save(tmp_path / "frames.npy", np.random.default_rng(0).integers(-10, 31, (20, 4, 2, 1, 3)))
    words = ["verify", str(files["frames"]), "--data", str(tmp_path / "frames.npy"), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data_sha256"] == sha256_of(tmp_path / "frames.npy")
    assert {entry["name"]: entry["samples"] for entry in found["implementations"]}["native"] == 20 + 16  # and ties


def test_wrong_use(files, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["verify", str(files["plain"]), "--limit", "0"])
    assert end.value.code == 2
    assert main(["verify", str(files["plain"]), "--data", str(tmp_path)]) == 2
    assert "there are no recordings in it" in capsys.readouterr().err


def test_it_needs_no_torch(files):
    words = ["verify", str(files["plain"]), "--json"]
    code = f"import sys\nsys.modules['torch'] = None\nfrom axonnx.cli import main\nsys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["engines"] == "equal"


def test_the_help_of_verify_names_it(capsys):
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    assert "Without it the engines are compared on this file, which needs no torch" in " ".join(
        capsys.readouterr().out.split()
    )
