"""The profile's figures against NeuroBench's definitions, recomputed from traces, and the command around them."""

import itertools
import json

import numpy as np
import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.cli import main
from axonnx.evaluating import profile_model
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import LIF, AveragePool2d, Conv2d, LeakyReadout, LIFSettings, Linear, SpikingNetwork, variant
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.jobs.work import SerialPool
from axonnx.runtime.measure.energy import Hardware, read_hardware
from axonnx.runtime.measure.profile import profile
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.readers import write_npz
from axonnx.train.checkpoint import read_index
from axonnx.train.data.registry import load_data_set


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
    assert found.totals.activation_sparsity == pytest.approx(zeros, abs=1e-12)
    weights = [program.constants[f"{name}.weight"] for name in ("hidden.0.synapse", "hidden.1.synapse", "readout")]
    samples = x.shape[1]
    met = [(x != 0).sum() * len(weights[0]), spikes[0].sum() * len(weights[1]), spikes[1].sum() * len(weights[2])]
    by_name = {entry.name: entry for entry in found.synapses}
    assert by_name["hidden.0.synapse"].multiply_accumulates == pytest.approx(met[0] / samples)
    assert by_name["hidden.0.synapse"].accumulates == 0  # counts are graded
    assert by_name["hidden.1.synapse"].accumulates == pytest.approx(met[1] / samples)
    assert by_name["readout"].accumulates == pytest.approx(met[2] / samples)
    assert found.totals.dense_operations == len(x) * sum(weight.size for weight in weights)
    assert found.totals.membrane_updates == len(x) * (24 + 16 + len(weights[2]))  # of the read-out too
    assert found.totals.events_in == pytest.approx(x.sum() / samples)
    assert found.totals.active_inputs == pytest.approx((x != 0).sum() / samples)
    assert found.totals.events_in > found.totals.active_inputs  # several events in some cells


def test_energy_is_operations_times_the_table(exported, tmp_path):
    program = compile_file(exported())
    table = tmp_path / "chip.toml"
    table.write_text(
        'name = "mine"\naccumulate_pj = 1.0\nmultiply_accumulate_pj = 10.0\nmembrane_update_pj = 100.0\n'
        "memory_pj_per_byte = 0.0\n"
    )
    x = some_input(program)
    found = profile(NumpyEngine(program), [(x, np.zeros(x.shape[1], np.int64))], read_hardware(str(table)))
    totals = found.totals
    expected = totals.accumulates + 10 * totals.multiply_accumulates + 100 * totals.membrane_updates
    assert found.energy.total_nj == pytest.approx(expected / 1000)
    assert found.energy.hardware.name == "mine"


@pytest.mark.parametrize(
    "text", ["accumulate = 1", "accumulate_pj = -1", "accumulate_pj = [", "\udcff", "a = " + "[" * 5000]
)
def test_wrong_tables_are_refused(text, tmp_path):
    table = tmp_path / "chip.toml"
    table.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(AxonnxError, match=r"chip\.toml: is not a table of energies"):
        read_hardware(str(table))


def test_early_exit_goes_from_the_first_step_to_the_last(exported):
    program = compile_file(exported())
    x = some_input(program, batch=8)
    exits = profile(NumpyEngine(program), [(x, np.zeros(8, np.int64))], Hardware()).early_exit
    steps = [entry.mean_steps for entry in exits]
    assert steps == sorted(steps)
    assert 1 <= steps[0] <= steps[-1] <= len(x)


def test_no_samples_is_an_error_not_a_zero(exported):
    with pytest.raises(AxonnxError, match="the data has no samples"):
        profile(NumpyEngine(compile_file(exported())), [], Hardware())


def test_the_command_compares_modes_and_draws(exported, run_folder, tmp_path, capsys):
    models = [str(exported()), str(exported("--collapse", "stochastic"))]
    plot, kept = tmp_path / "plot.png", tmp_path / "profile.json"
    words = ["profile", *models, "--data", str(run_folder), "--limit", "16", "-o", str(plot), "--json", str(kept)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "energy nJ" in out
    assert plot.read_bytes()[:4] == b"\x89PNG"
    found = json.loads(kept.read_text())
    assert [entry["collapse"] for entry in found] == ["mfa", "stochastic"]
    assert [entry["file_sha256"] for entry in found] == [sha256_of(path) for path in models]
    index = read_index(run_folder / "checkpoint")
    assert {entry["checkpoint_sha256"] for entry in found} == {index["files"]["weights"]["sha256"]}
    assert {entry["data_sha256"] for entry in found} == {load_data_set("digits-saccade").test.digest}


def test_own_data_needs_no_run(exported, tmp_path, capsys):
    program = compile_file(exported())
    frames = some_input(program).swapaxes(0, 1).astype(np.uint8)
    np.savez(tmp_path / "own.npz", frames=frames, labels=np.arange(len(frames)))
    assert main(["profile", str(exported()), "--data", str(tmp_path / "own.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] == len(frames)
    assert found["data_sha256"] == sha256_of(tmp_path / "own.npz")
    assert found["checkpoint_sha256"] is None


def test_data_that_does_not_fit_is_refused(exported, tmp_path, capsys):
    np.savez(tmp_path / "own.npz", frames=np.zeros((2, 3, 4), np.uint8), labels=np.zeros(2))
    assert main(["profile", str(exported()), "--data", str(tmp_path / "own.npz")]) == 2
    assert "the network expects 15 frames of 2×16×16: one sample [15, 2, 16, 16]" in capsys.readouterr().err
    assert main(["profile", str(exported())]) == 2
    assert "which data?" in capsys.readouterr().err


def test_a_rate_is_spikes_over_neurons_steps_and_samples(exported):
    program = compile_file(exported())
    engine, x = NumpyEngine(program), some_input(program)
    labels = np.zeros(x.shape[1], np.int64)
    found = profile(engine, [(x[:, :2], labels[:2]), (x[:, 2:], labels[2:])], Hardware())
    traces = engine.advance(engine.initial_state(x.shape[1]), x, {}, trace=True).traces
    for layer in found.layers:
        spikes = traces[f"spikes/{layer.name}"]
        assert layer.rate == pytest.approx(spikes.mean(), rel=1e-6)
        assert layer.spikes_per_inference == pytest.approx(spikes.sum() / x.shape[1])
        by_step = list(layer.rate_over_time)
        assert by_step == pytest.approx(spikes.mean((1, 2)).tolist(), rel=1e-5, abs=1e-7)
        assert len(set(by_step)) > 1
    assert len(found.layers) == 2


def test_accuracy_and_calibration_are_those_of_the_last_step(exported):
    program = compile_file(exported())
    engine, x = NumpyEngine(program), some_input(program, batch=40)
    logits = engine.advance(engine.initial_state(40), x, {}).logits[0].astype(np.float64) / len(x)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    labels = np.where(np.arange(40) % 4 == 0, p.argmin(1), p.argmax(1))  # three of four are right
    found = profile(engine, [(x, labels)], Hardware())
    right, confidence = p.argmax(1) == labels, p.max(1)
    edges = np.linspace(0, 1, 16)
    inside = [(confidence >= low) & (confidence < high) for low, high in itertools.pairwise(edges)]
    by_hand = sum(abs(right[each].sum() - confidence[each].sum()) for each in inside if each.any()) / 40
    assert found.accuracy == 0.75
    assert found.ece == pytest.approx(by_hand, rel=1e-5)
    assert found.ece > 0.01


def test_pooled_spikes_are_graded(tmp_path):
    """A spike meets a weight by an addition; the mean of four spikes by a product."""

    class Pooled(SpikingNetwork):
        def __init__(self):
            super().__init__()
            kind, settings = variant("sbnn"), LIFSettings()
            self.conv, self.fire = Conv2d(1, 3, 3, kind, stride=1, padding=1), LIF(kind, settings)
            self.pool = AveragePool2d(2)
            self.flat, self.top = Linear(12, 6, kind), LIF(kind, settings)
            self.readout = LeakyReadout(6, 3, settings.decay)

        def compute(self, x, run):
            spikes = self.fire(self.conv(x, run), run)
            pooled = self.pool(spikes)
            return self.readout(self.top(self.flat(pooled.flatten(2 if run.sequence else 1), run), run), run)

    torch.manual_seed(0)
    arriving = InputContract(name="events", shape=(1, 4, 4), steps=6, largest=1)
    collapsed = collapse_network(Pooled(), arriving, CollapseSettings())
    write_model(build_model(collapsed, make_contract(collapsed, ("a", "b", "c"), "sequence")), tmp_path / "m.onnx")
    program = compile_file(tmp_path / "m.onnx")
    x = (np.random.default_rng(0).random((6, 5, 1, 4, 4)) < 0.7).astype(np.float32)
    engine = NumpyEngine(program)
    found = {e.name: e for e in profile(engine, [(x, np.zeros(5, np.int64))], Hardware()).synapses}
    spikes = engine.advance(engine.initial_state(5), x, {}, trace=True).traces["spikes/fire"]
    pooled = spikes.reshape(6, 5, 3, 2, 2, 2, 2).sum((4, 6))
    assert found["flat"].multiply_accumulates == 6 * (pooled != 0).sum() / 5 > 0
    assert found["flat"].accumulates == 0
    assert found["conv"].accumulates > 0 == found["conv"].multiply_accumulates  # the input is 0 or 1
    assert found["readout"].multiply_accumulates == 0


def test_the_default_table_is_that_of_45_nm():
    """Horowitz 2014: an addition 0.9 pJ, a product 3.7 pJ; decay, charge and reset are a product and two additions."""
    table = Hardware()
    assert table.accumulate("float32") == 0.9
    assert table.multiply_accumulate("float32") == pytest.approx(3.7 + 0.9)
    assert table.multiply_accumulate("int8") == pytest.approx(0.2 + 0.1)
    assert table.membrane_update_pj == pytest.approx(3.7 + 2 * 0.9)


def without_time(result):
    return result.model_copy(update={"latency_ms_per_step": 0.0})


@pytest.mark.parametrize("options", [(), ("--collapse", "stochastic")])
def test_figures_do_not_depend_on_who_counts(exported, run_folder, tmp_path, monkeypatch, options):
    """A run's data and one's own, in jobs of eight samples; noise follows from a sample's number."""
    test = load_data_set("digits-saccade").test
    for number in range(20):
        folder = tmp_path / "own" / str(test.labels[number])
        folder.mkdir(parents=True, exist_ok=True)
        write_npz(folder / f"{number}.npz", test[number], test.sensor)
    for given in ({"data": run_folder, "limit": 21}, {"data": tmp_path / "own", "limit": None}):
        monkeypatch.setattr("axonnx.evaluating.PIECES", 64)
        alone = profile_model(exported(*options), engine="numpy", **given)
        monkeypatch.setattr("axonnx.evaluating.PIECES", 8)
        by_jobs = profile_model(exported(*options), engine="numpy", pool=SerialPool(), **given)
        assert alone.samples == (given["limit"] or 20)
        assert without_time(by_jobs) == without_time(alone)
