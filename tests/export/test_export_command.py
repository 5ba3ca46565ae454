"""``axonnx export``: from a run folder to a file that tells all there is to know."""

from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from axonnx.cli import main
from axonnx.export.verify.constants_check import constants_of
from axonnx.train.checkpoint import read_index
from axonnx.train.trained import open_run

from .tiny_runs import STEPS, contract_of


@dataclass(frozen=True)
class Done:
    """A finished export: its run, its file, and what was said."""

    run: Path
    file: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def done(runs) -> Done:
    """One plain export, looked at by several tests."""
    file, out, err = runs["recurrent"].parent / "model.onnx", StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(["export", str(runs["recurrent"]), "-o", str(file), "--passes", "2"]) == 0
    return Done(runs["recurrent"], file, out.getvalue(), err.getvalue())


def synapse_rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:6]}


def test_a_table_a_file_and_what_to_do_next(done):
    lines = done.out.splitlines()
    assert lines[0].split() == ["synapse", "weights", "zeros", "grid", "largest", "sum"]
    names = ["hidden.0.synapse", "hidden.0.neuron", "hidden.1.synapse", "hidden.1.neuron", "readout"]
    rows = synapse_rows(done.out)
    assert sorted(rows) == sorted(names)
    weight = constants_of(onnx.load(done.file))["hidden.0.synapse.weight"]
    assert rows["hidden.0.synapse"][:2] == ["96", f"{100 * np.mean(weight == 0):.1f}%"]
    assert rows["hidden.0.neuron"][:2] == ["36", "16.7%"]  # the diagonal
    assert all(float(row[-1]) < 1.0 for row in rows.values())
    for row in ("bayesian (2 passes)", "mean-field, as trained", "sampled (2 members)", "stochastic (1 pass)"):
        assert any(line.startswith(row) for line in lines)
    assert any(line.startswith("this file: mfa, int16") for line in lines)
    assert f"wrote {done.file}: {done.file.stat().st_size:,} bytes" in lines
    for verb in ("run", "eval", "verify", "profile"):
        assert any(line.startswith(f"  axonnx {verb} {done.file}") for line in lines)
    assert "measuring the gap on" in done.err  # progress is not a result


def test_weights_are_int16_unless_the_finest_grid_is_asked_for(done, capsys):
    words = ["export", str(done.run), "-o", "fine.onnx", "--weights", "float32", "--passes", "2", "--quiet"]
    assert main(words) == 0
    out, contracts = capsys.readouterr().out, [contract_of(done.file), contract_of("fine.onnx")]
    rows = synapse_rows(out)
    assert rows["hidden.0.synapse"][:2] == ["96", "0.0%"]
    assert rows["hidden.0.neuron"][:2] == ["36", "16.7%"]  # the diagonal
    assert "this file: mfa  " in out
    assert [contract.collapse.weights for contract in contracts] == ["int16", "float32"]
    assert [{each.stored_as for each in contract.synapses} for contract in contracts] == [{"int16"}, {"float32"}]
    assert all(one.grid < other.grid for one, other in zip(*(c.synapses for c in contracts), strict=True))
    assert "unreduced" not in [entry.way for entry in contracts[1].accuracy]


def test_the_file_loads_and_decides_as_the_collapsed_network(done):
    trained = open_run(str(done.run))
    session = ort.InferenceSession(done.file, providers=["CPUExecutionProvider"])
    right = samples = 0
    for x, labels in trained.data("test", None):
        (logits,) = session.run(["logits"], {"events": x.numpy()})
        right += int((logits.argmax(-1) == labels.numpy()).sum())
        samples += len(labels)
    entry = contract_of(done.file).accuracy[-1]
    assert entry.way == "file"
    assert samples == entry.samples > 0
    assert right / samples == entry.accuracy


def test_the_contract_tells_input_gap_and_provenance(done):
    contract = contract_of(done.file)
    index = read_index(done.run / "checkpoint")
    assert contract.provenance.checkpoint == index["files"]["weights"]["sha256"]
    assert contract.provenance.data_digest == index["data_digest"]
    assert contract.provenance.versions == index["versions"]
    assert contract.provenance.config == (done.run / "config.toml").read_text("utf-8")
    assert contract.provenance.data.endswith("frames.npz")
    assert (contract.input.shape, contract.input.steps, contract.input.largest) == ((1, 4, 4), STEPS, 3)
    assert [(entry.way, entry.draws) for entry in contract.accuracy] == [
        ("bayesian", 2), ("mean_field", 1), ("sampled", 2), ("stochastic", 1), ("unreduced", 1), ("file", 1)
    ]  # fmt: skip
    for entry in contract.accuracy:
        assert 0 <= entry.interval[0] <= entry.accuracy <= entry.interval[1] <= 1
        assert entry.accuracy == entry.right / entry.samples


def test_the_same_command_writes_the_same_bytes(done):
    assert main(["export", str(done.run), "-o", "again.onnx", "--passes", "2", "--quiet"]) == 0
    assert Path("again.onnx").read_bytes() == done.file.read_bytes()


def test_baselines_and_binary_networks(runs):
    assert main(["export", str(runs["baseline"]), "-o", "b.onnx", "--quiet"]) == 0
    assert [entry.way for entry in contract_of("b.onnx").accuracy] == ["mean_field", "unreduced", "file"]
    assert main(["export", str(runs["binary"]), "-o", "c.onnx", "--collapse", "stochastic", "--passes", "2"]) == 0
    assert contract_of("c.onnx").kind == "binary"
    dims = onnx.load("c.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["B", 1, 4, 4]
