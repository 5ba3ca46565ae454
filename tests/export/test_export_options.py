"""The options of ``axonnx export``, its refusals, and that a file is written whole or not at all."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from axonnx.cli import main
from axonnx.export import exporting as command
from axonnx.export import ways
from axonnx.train.trained import open_run

from .tiny_runs import contract_of

QUICK = ("--passes", "2", "--quiet")


@pytest.fixture(autouse=True)
def _no_gap(monkeypatch):
    """The gap is measured on three more collapsed networks; here it is not the subject."""
    monkeypatch.setattr(ways, "score_training", lambda *_arguments, **_options: [])


def export(*words: str) -> int:
    return main(["export", *words, *QUICK])


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
    assert [entry.way for entry in contract.accuracy] == ["unreduced", "file"]
    assert "before pruning and rounding  " in out
    assert "this file: mfa, int8, pruned below 1  " in out
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
    contract, said = contract_of("m.onnx"), capsys.readouterr()
    assert contract.collapse.calibrated
    assert "this file: mfa, calibrated, int16  " in said.out
    assert all(min(np.atleast_1d(layer.threshold)) > 0 for layer in contract.layers if layer.op == "LIF")
    assert "hidden.0.neuron: rate" in said.err


@pytest.mark.parametrize(
    ("run", "options", "text"),
    [
        ("nowhere", [], "nowhere: no run here (config.toml is missing). Start one: axonnx train"),
        ("spiking", ["-o", "no/such/folder/m.onnx"], "no/such/folder/m.onnx: there is no such folder; make it first"),
        ("spiking", ["-o", "."], ".: a folder; name the file to write, e.g. ./model.onnx"),
        ("baseline", ["--collapse", "sampled"], "no posterior (a surrogate-gradient baseline): only the mode mfa"),
        ("baseline", ["--calibrate"], "calibration needs a posterior; this network was trained without noise"),
        ("spiking", ["--calibrate", "--collapse", "sampled"], "only with mode mfa"),
        ("spiking", ["--members", "3"], "members is 3; an ensemble of several is for mode 'sampled' alone"),
        ("spiking", ["--prune", "-1"], "prune is -1.0; expected a signal-to-noise ratio of zero or more"),
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


@pytest.mark.parametrize("option", ["--members", "--limit", "--passes"])
def test_numbers_begin_at_one(runs, capsys, option):
    with pytest.raises(SystemExit) as end:
        main(["export", str(runs["spiking"]), option, "0"])
    assert end.value.code == 2
    assert f"{option}: '0'; expected a whole number from 1 on" in capsys.readouterr().err


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
        trained = open_run(run)
        with torch.no_grad():
            trained.network.readout.weight[0, 0] = float("inf")
        return trained

    monkeypatch.setattr(command, "open_run", spoiled)
    assert export(str(runs["spiking"]), "-o", "model.onnx") == 2
    assert "readout.weight: they hold numbers that are not finite" in capsys.readouterr().err
    assert [entry for entry in os.listdir() if entry != "cache"] == []
