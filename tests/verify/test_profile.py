"""The profile's figures against NeuroBench's definitions, recomputed from traces, and the command around them."""

import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.compile_program import compile_file
from axonnx.runtime.energy import Hardware, read_hardware
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.numpy_engine import NumpyEngine
from axonnx.runtime.profile import profile


def some_input(program, batch=5, seed=0):
    random = np.random.default_rng(seed)
    contract = program.contract.input
    x = random.integers(0, contract.largest + 1, (contract.steps, batch, *contract.shape))
    return (x * (random.random(x.shape) < 0.1)).astype(np.float32)


def test_sparsity_and_effective_operations_are_those_of_the_definitions(exported):
    """NeuroBench: zeros over all activations; weights that met an input that was not zero, graded inputs apart."""
    program = compile_file(exported())
    engine = NumpyEngine(program)
    x = some_input(program)
    labels = np.zeros(x.shape[1], np.int64)
    found = profile(engine, [(x, labels)], Hardware())
    traces = engine.advance(engine.initial_state(x.shape[1]), x, {}, trace=True).traces
    spikes = [traces[f"spikes/{layer.name}"] for layer in program.layers]
    zeros = sum(float((each == 0).sum()) for each in spikes) / sum(each.size for each in spikes)
    assert found["totals"]["activation_sparsity"] == pytest.approx(zeros, abs=1e-12)
    weights = [program.constants[f"{name}.weight"] for name in ("hidden.0.synapse", "hidden.1.synapse", "readout")]
    samples = x.shape[1]
    met = [(x != 0).sum() * len(weights[0]), spikes[0].sum() * len(weights[1]), spikes[1].sum() * len(weights[2])]
    by_name = {entry["name"]: entry for entry in found["synapses"]}
    assert by_name["hidden.0.synapse"]["multiply_accumulates"] == pytest.approx(met[0] / samples)
    assert by_name["hidden.0.synapse"]["accumulates"] == 0  # counts are graded
    assert by_name["hidden.1.synapse"]["accumulates"] == pytest.approx(met[1] / samples)
    assert by_name["readout"]["accumulates"] == pytest.approx(met[2] / samples)
    assert found["totals"]["dense_operations"] == len(x) * sum(weight.size for weight in weights)
    assert found["totals"]["membrane_updates"] == len(x) * (24 + 16)
    assert found["totals"]["events_in"] == pytest.approx((x != 0).sum() / samples)


def test_energy_is_operations_times_the_table(exported, tmp_path):
    program = compile_file(exported())
    table = tmp_path / "chip.toml"
    table.write_text('name = "mine"\naccumulate_pj = 1.0\nmultiply_accumulate_pj = 10.0\nmembrane_update_pj = 100.0\n')
    x = some_input(program)
    found = profile(NumpyEngine(program), [(x, np.zeros(x.shape[1], np.int64))], read_hardware(str(table)))
    totals = found["totals"]
    expected = totals["accumulates"] + 10 * totals["multiply_accumulates"] + 100 * totals["membrane_updates"]
    assert found["energy"]["total_nj"] == pytest.approx(expected / 1000)
    assert found["energy"]["hardware"] == "mine"


@pytest.mark.parametrize("text", ["accumulate = 1", "accumulate_pj = -1", "accumulate_pj = ["])
def test_wrong_tables_are_refused(text, tmp_path):
    table = tmp_path / "chip.toml"
    table.write_text(text)
    with pytest.raises(AxonnxError, match=r"chip\.toml: not a table of energies"):
        read_hardware(str(table))


def test_early_exit_goes_from_the_first_step_to_the_last(exported):
    program = compile_file(exported())
    x = some_input(program, batch=8)
    exits = profile(NumpyEngine(program), [(x, np.zeros(8, np.int64))], Hardware())["early_exit"]
    steps = [entry["mean_steps"] for entry in exits]
    assert steps == sorted(steps)
    assert 1 <= steps[0] <= steps[-1] <= len(x)


def test_no_samples_is_an_error_not_a_zero(exported):
    with pytest.raises(AxonnxError, match="nothing to profile"):
        profile(NumpyEngine(compile_file(exported())), [], Hardware())


def test_the_command_compares_modes_and_draws(exported, run_folder, tmp_path, capsys):
    models = [str(exported()), str(exported("--collapse", "stochastic"))]
    plot, kept = tmp_path / "plot.png", tmp_path / "profile.json"
    words = ["profile", *models, "--run", str(run_folder), "--limit", "16", "--plot", str(plot), "-o", str(kept)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "energy nJ" in out
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert [entry["collapse"] for entry in json.loads(kept.read_text())] == ["mfa", "stochastic"]


def test_own_data_needs_no_run(exported, tmp_path, capsys):
    program = compile_file(exported())
    frames = some_input(program).swapaxes(0, 1).astype(np.uint8)
    np.savez(tmp_path / "own.npz", frames=frames, labels=np.arange(len(frames)))
    assert main(["profile", str(exported()), "--data", str(tmp_path / "own.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == len(frames)


def test_data_that_does_not_fit_is_refused(exported, tmp_path, capsys):
    np.savez(tmp_path / "own.npz", frames=np.zeros((2, 3, 4), np.uint8), labels=np.zeros(2))
    assert main(["profile", str(exported()), "--data", str(tmp_path / "own.npz")]) == 2
    assert "the file takes [15, 2, 16, 16]" in capsys.readouterr().err
    assert main(["profile", str(exported())]) == 2
    assert "which data?" in capsys.readouterr().err
