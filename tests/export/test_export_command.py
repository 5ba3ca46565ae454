"""``axonnx export``: from a run folder to a file, whole or not at all."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from axonnx.cli import main
from axonnx.export import command
from axonnx.export.command import load_trained
from axonnx.runtime.contract import METADATA_KEY, Contract, read_contract
from axonnx.train import run as train_run_module
from axonnx.train.checkpoint import read_index

from .tiny_runs import STEPS, make_run, write_frames

QUICK = ("--passes", "2", "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """Trained runs of several kinds; curves are not drawn."""
    folder = tmp_path_factory.mktemp("runs")
    frames = write_frames(folder / "frames.npz")
    images = write_frames(folder / "images.npz", time=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("AXONNX_DATA", raising=False)
        patch.setattr(train_run_module, "draw_curves", lambda *_: False)
        return {
            "spiking": make_run(folder / "spiking", frames, "spiking-mlp"),
            "recurrent": make_run(folder / "recurrent", frames, "recurrent-snn"),
            "baseline": make_run(folder / "baseline", frames, "spiking-mlp", "sg-bn"),
            "binary": make_run(folder / "binary", images, "binary-mlp"),
        }


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def contract_of(path: str | Path) -> Contract:
    texts = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    return read_contract(texts[METADATA_KEY], str(path))


def export(*words: str) -> int:
    return main(["export", *words, *QUICK])


def test_a_table_a_file_and_what_to_do_next(runs, capsys):
    assert main(["export", str(runs["spiking"]), "-o", "model.onnx", "--passes", "2"]) == 0
    seen = capsys.readouterr()
    lines = seen.out.splitlines()
    assert lines[0].split() == ["synapse", "weights", "zeros", "grid", "largest", "sum"]
    assert [line.split()[0] for line in lines[1:4]] == ["hidden.0.synapse", "hidden.1.synapse", "readout"]
    assert lines[1].split()[1:3] == ["96", "0.0%"]
    assert all(float(line.split()[-1]) < 1.0 for line in lines[1:4])
    for row in ("bayesian (2 passes)", "mean-field, as trained", "sampled (2 members)", "stochastic (1 pass)"):
        assert any(line.startswith(row) for line in lines)
    assert any(line.startswith("this file: mfa") for line in lines)
    assert f"wrote model.onnx: {Path('model.onnx').stat().st_size:,} bytes" in lines
    for verb in ("run", "verify", "profile"):
        assert any(line.startswith(f"  axonnx {verb} model.onnx") for line in lines)
    assert "measuring the gap on" in seen.err  # progress is not a result


def test_the_file_loads_and_decides_as_the_collapsed_network(runs):
    assert export(str(runs["recurrent"]), "-o", "model.onnx") == 0
    trained = load_trained(str(runs["recurrent"]))
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    right = samples = 0
    for x, labels in trained.data("test", None):
        (logits,) = session.run(["logits"], {"events": x.numpy()})
        right += int((logits.argmax(-1) == labels.numpy()).sum())
        samples += len(labels)
    entry = contract_of("model.onnx").accuracy["this file: mfa"]
    assert samples == entry["samples"] > 0
    assert right / samples == entry["accuracy"]


def test_the_contract_tells_input_gap_and_provenance(runs):
    assert export(str(runs["spiking"]), "-o", "model.onnx") == 0
    contract = contract_of("model.onnx")
    index = read_index(runs["spiking"] / "checkpoint")
    assert contract.provenance.checkpoint == index["files"]["weights"]["sha256"]
    assert contract.provenance.data_digest == index["data_digest"]
    assert contract.provenance.versions == index["versions"]
    assert contract.provenance.config == (runs["spiking"] / "config.toml").read_text("utf-8")
    assert contract.provenance.data.endswith("frames.npz")
    assert (contract.input.shape, contract.input.steps, contract.input.largest) == ((1, 4, 4), STEPS, 3)
    assert list(contract.accuracy) == [
        "bayesian (2 passes)",
        "mean-field, as trained",
        "sampled (2 members)",
        "stochastic (1 pass)",
        "this file: mfa",
    ]
    for entry in contract.accuracy.values():
        assert 0 <= entry["interval"][0] <= entry["accuracy"] <= entry["interval"][1] <= 1
        assert entry["samples"] > 0
    json.dumps(contract.accuracy)


def outputs_of(path: str) -> list[str]:
    return [output.name for output in onnx.load(path).graph.output]


def test_members(runs):
    assert export(str(runs["spiking"]), "-o", "m.onnx", "--collapse", "sampled", "--members", "3", "--seed", "4") == 0
    contract = contract_of("m.onnx")
    assert (contract.collapse.members, contract.collapse.seed) == (3, 4)
    assert outputs_of("m.onnx") == ["probabilities", "member_logits", "entropy", "mutual_information"]
    assert len(contract.synapses) == 9


def test_stochastic(runs):
    assert export(str(runs["recurrent"]), "-o", "m.onnx", "--collapse", "stochastic") == 0
    inputs = [value.name for value in onnx.load("m.onnx").graph.input]
    assert inputs == ["events", "noise/hidden.0.neuron", "noise/hidden.1.neuron"]


def test_prune_and_integers_report_before_and_after(runs, capsys):
    assert export(str(runs["spiking"]), "-o", "m.onnx", "--prune", "1.0", "--weights", "int8") == 0
    out = capsys.readouterr().out
    contract = contract_of("m.onnx")
    assert (contract.collapse.prune, contract.collapse.weights) == (1.0, "int8")
    assert "before pruning and rounding" in contract.accuracy
    assert "this file: mfa, int8, pruned below 1" in contract.accuracy
    zeros = [float(line.split()[2].rstrip("%")) for line in out.splitlines()[1:3]]
    assert min(zeros) > 5.0
    body = next(node for node in onnx.load("m.onnx").graph.node if node.op_type == "Scan").attribute[0].g
    kinds = {tensor.name: tensor.data_type for tensor in body.initializer}
    assert kinds["hidden.0.synapse.weight/int8"] == onnx.TensorProto.INT8


@pytest.mark.parametrize(("form", "traces"), [("step", 0), ("sequence", 4)])
def test_form_and_trace(runs, form, traces):
    options = ["--form", form, *(["--trace"] if traces else [])]
    assert export(str(runs["spiking"]), "-o", "m.onnx", *options) == 0
    names = outputs_of("m.onnx")
    assert contract_of("m.onnx").form == form
    assert len([name for name in names if name.startswith("trace/")]) == traces
    assert ("next/membrane/hidden.0.neuron" in names) == (form == "step")


def test_calibrate(runs, capsys):
    assert main(["export", str(runs["spiking"]), "-o", "m.onnx", "--calibrate", "--passes", "2"]) == 0
    contract = contract_of("m.onnx")
    assert contract.collapse.calibrated
    assert "this file: mfa, calibrated" in contract.accuracy
    assert all(min(np.atleast_1d(layer.threshold)) > 0 for layer in contract.layers if layer.op == "LIF")
    assert "hidden.0.neuron: rate" in capsys.readouterr().err


def test_baselines_and_binary_networks(runs):
    assert export(str(runs["baseline"]), "-o", "b.onnx") == 0
    assert list(contract_of("b.onnx").accuracy) == ["mean-field, as trained", "this file: mfa"]
    assert export(str(runs["binary"]), "-o", "c.onnx", "--collapse", "stochastic") == 0
    assert contract_of("c.onnx").kind == "binary"
    dims = onnx.load("c.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["B", 1, 4, 4]


def test_the_same_command_writes_the_same_bytes(runs):
    words = [str(runs["spiking"]), "--collapse", "sampled", "--members", "2"]
    assert export(*words, "-o", "one.onnx") == export(*words, "-o", "two.onnx") == 0
    assert Path("one.onnx").read_bytes() == Path("two.onnx").read_bytes()


@pytest.mark.parametrize(
    ("run", "options", "text"),
    [
        ("nowhere", [], "nowhere: no run here (config.toml is missing). Start one: axonnx train"),
        ("spiking", ["-o", "no/such/folder/m.onnx"], "no/such/folder/m.onnx: there is no such folder; make it first"),
        ("spiking", ["-o", "."], ".: a folder; name the file to write, e.g. ./model.onnx"),
        ("baseline", ["--collapse", "sampled"], "no posterior (a surrogate-gradient baseline): only --collapse mfa"),
        ("baseline", ["--calibrate"], "--calibrate needs a posterior; this network was trained without noise"),
        ("spiking", ["--calibrate", "--collapse", "sampled"], "only with --collapse mfa"),
        ("spiking", ["--members", "3"], "members is 3; an ensemble of several is for mode 'sampled' alone"),
        ("spiking", ["--collapse", "sampled", "--members", "0"], "members is 0"),
        ("spiking", ["--prune", "-1"], "prune is -1.0; expected a signal-to-noise ratio of zero or more"),
        ("spiking", ["--limit", "0"], "--limit is 0; expected 1 or more"),
        ("spiking", ["--passes", "0"], "--passes is 0; expected 1 or more"),
    ],
)
def test_wrong_use_is_told_and_leaves_nothing(runs, run, options, text, capsys):
    words = [str(runs.get(run, run)), *QUICK, *options]
    assert main(["export", *words]) == 2
    seen = capsys.readouterr()
    assert seen.err.startswith("axonnx export: ")
    assert text in seen.err
    assert "Traceback" not in seen.err
    assert seen.out == ""
    assert [entry for entry in os.listdir() if entry != "cache"] == []


def test_unknown_options_are_wrong_use(runs, capsys):
    with pytest.raises(SystemExit) as end:
        main(["export", str(runs["spiking"]), "--collapse", "best"])
    assert end.value.code == 2
    assert "invalid choice: 'best'" in capsys.readouterr().err


@pytest.mark.parametrize("existing", [None, b"an older file"])
@pytest.mark.parametrize("where", ["write", "replace"])
def test_a_failed_export_leaves_no_file_and_an_older_one_as_it_was(runs, monkeypatch, capsys, existing, where):
    if existing is not None:
        Path("model.onnx").write_bytes(existing)
    full = OSError(28, "No space left on device")

    def fail(*_paths: str) -> None:
        raise full

    def write_half(path: Path, data: bytes) -> int:
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
        raise full

    with monkeypatch.context() as patch:
        if where == "write":
            patch.setattr(Path, "write_bytes", write_half)
        else:
            patch.setattr(os, "replace", fail)
        assert export(str(runs["spiking"]), "-o", "model.onnx", "--limit", "5") == 2
    assert "axonnx export: model.onnx: cannot be written: No space left on device" in capsys.readouterr().err
    assert [entry for entry in os.listdir() if entry != "cache"] == ([] if existing is None else ["model.onnx"])
    assert existing is None or Path("model.onnx").read_bytes() == existing


def test_a_network_that_is_refused_leaves_nothing(runs, monkeypatch, capsys):
    def spoiled(run: str):
        trained = load_trained(run)
        with torch.no_grad():
            trained.network.readout.weight[0, 0] = float("inf")
        return trained

    monkeypatch.setattr(command, "load_trained", spoiled)
    monkeypatch.setattr(command, "gap_table", lambda *_args, **_options: [])
    assert export(str(runs["spiking"]), "-o", "model.onnx") == 2
    assert "readout.weight: they hold numbers that are not finite" in capsys.readouterr().err
    assert [entry for entry in os.listdir() if entry != "cache"] == []
