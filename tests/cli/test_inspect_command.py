"""``axonnx inspect``: the contract, the certificates, the program and the sizes."""

import json

import pytest

from axonnx.cli import main
from axonnx.runtime.format.contract import Contract


def inspect(capsys, path, *words):
    assert main(["inspect", str(path), *words]) == 0
    return capsys.readouterr().out


def test_the_listing_says_what_the_file_promises(files, capsys):
    out = inspect(capsys, files["plain"])
    assert out.startswith(f"plain.onnx: spiking network, sequence form, {files['plain'].stat().st_size:,} bytes\n")
    assert "input       events: 5 frames of 2×6×8, |value| up to 3\n" in out
    assert "device      Send events (t, x, y, p) of a 8×6 sensor with polarities 0 and 1, t in microseconds" in out
    assert "classes     4: left, right, up, down\n" in out
    assert "collapse    mfa, weights stored as int16\n" in out
    assert "sizes       1,200 weights, 0.0 % of them zero; 12 neurons; 82 bytes of state\n" in out
    assert "hidden.0.neuron                   LIF" in out
    assert "hidden.0.synapse                       1,152    0.0%" in out
    assert "  LIF                  hidden.0.synapse:out, membrane/hidden.0.neuron" in out


def test_variants_are_named(files, capsys):
    assert "collapse    mfa, weights stored as float32\n" in inspect(capsys, files["fine"])
    assert "collapse    sampled of 3 members, seed 0" in inspect(capsys, files["ensemble"])
    assert "StochasticLIF" in inspect(capsys, files["noisy"])
    merged = inspect(capsys, files["merged"])
    assert "sums squares of 2×2 pixels, merges the polarities, stores 1 for any event in each of 5 bins" in merged
    images = inspect(capsys, files["images"])
    assert "input       events: images of 3×2×2, |value − 10| up to 20; x = (value − 10) · 2^-3\n" in images
    assert "device      Send images of " in images
    assert "bin 0 begins at the first event that is used" in inspect(capsys, files["first"])


@pytest.mark.parametrize("name", ["plain", "ensemble", "noisy", "recurrent", "clocked", "images"])
def test_json_holds_everything(files, engines, capsys, name):
    found = json.loads(inspect(capsys, files[name], "--json"))
    program = engines(name).program
    assert Contract.model_validate(found["contract"]) == program.contract
    assert found["bytes"] == files[name].stat().st_size
    assert len(found["certificates"]) == len(program.contract.synapses)
    assert all(0 < each["largest_sum"] < 1 for each in found["certificates"])
    assert found["sizes"]["neurons"] == sum(layer.size for layer in program.layers)
    assert found["sizes"]["weights"] == sum(each["weights"] for each in found["certificates"])
    assert len([line for line in found["program"] if "→" in line]) == found["sizes"]["instructions"]


def test_a_file_that_is_none_of_ours_ends_with_exit_code_2(tmp_path, capsys):
    (tmp_path / "text.onnx").write_text("no")
    for name in ("text.onnx", "missing.onnx"):
        assert main(["inspect", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.startswith("axonnx inspect: ")
