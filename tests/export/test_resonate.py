"""Resonate-and-fire neurons from training to every engine and target: a network of one's own, to the last bit."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.export.collapsed import CollapseSettings
from axonnx.models import LIF, Conv2d, LeakyReadout, Linear, ResonateAndFire, Run, SpikingNetwork
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.model import load
from axonnx.runtime.program.compilation import compile_file

from ..runtime.codegen.c.machine import Machine, needs_compiler
from ..runtime.codegen.js.node import needs_node, node
from ..runtime.engines.every import COMPILED, NAMES
from .running import Exported, export
from .small_networks import counts, stir
from .test_own_networks import compare
from .verify.test_collapse_check import check_of

ARRIVING = InputContract(name="events", shape=(2, 8, 8), steps=40, largest=7)
MODES = {
    "mfa": CollapseSettings(),
    "sampled": CollapseSettings("sampled", 2, seed=7),
    "int8": CollapseSettings(weights="int8"),
}


class Resonating(SpikingNetwork):
    """Maps of resonators, one frequency a channel; dense ones that hear themselves; neurons of another kind."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = Conv2d(2, 6, 3, stride=2, padding=1)
        tuned = torch.linspace(0.02, 0.3, 6).reshape(6, 1, 1)
        self.maps = ResonateAndFire(tuned, decay=0.8, threshold=0.75, learn_frequency=True)
        self.narrow = Linear(96, 21)
        self.memory = ResonateAndFire(torch.linspace(0.05, 0.45, 21), decay=0.9, learn_decay=True, recurrent=21)
        self.last, self.plain = Linear(21, 9), LIF()
        self.readout = LeakyReadout(9, 5)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        maps = self.maps(self.edges(x, run), run)
        memory = self.memory(self.narrow(maps.flatten(-3), run), run)
        return self.readout(self.plain(self.last(memory, run), run), run)


def made() -> SpikingNetwork:
    torch.manual_seed(11)
    network = Resonating()
    stir(network)
    return network.eval()


@pytest.fixture(scope="module", params=MODES)
def exported(request: pytest.FixtureRequest) -> Exported:
    return export(made(), ARRIVING, MODES[request.param])


def test_torch_onnxruntime_and_reference_agree(exported):
    compare(exported, 40).hold(("spikes", "membranes", "logits"))


def test_every_layer_fires_and_rests(exported):
    """A comparison of silent layers would prove little."""
    for name, value in exported.on_torch(counts(ARRIVING, 7, 40), {}).items():
        if "spikes/" in name:
            assert 0.01 < value.mean() < 0.99, name


def test_every_engine_and_target_gives_the_same_bits(exported, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(exported.model, path)
    program, x = compile_file(path), counts(ARRIVING, 3, 30).numpy()
    expected = NumpyEngine(program).advance(NumpyEngine(program).initial_state(3), x, {}, trace=True)
    logits, of_torch = expected.logits / np.float32(len(x)), exported.on_torch(torch.from_numpy(x), {})
    assert np.array_equal(logits, of_torch["member_logits"] if len(logits) > 1 else [of_torch["logits"]])
    for name in NAMES:
        found = load(path, name).run(x, trace=True)
        assert np.array_equal(found.member_logits, logits)
        assert all(np.array_equal(found.traces[key], trace) for key, trace in expected.traces.items())
    for make in COMPILED:  # every instruction set, by events, dense and as the engine chooses
        engine = make(program)
        found = engine.advance(engine.initial_state(3), x, {}, trace=True)
        assert all(np.array_equal(found.traces[key], trace) for key, trace in expected.traces.items())
        assert all(np.array_equal(found.state.arrays[key], value) for key, value in expected.state.arrays.items())
    for trace in targets(program):
        found = trace(x[:, 1])
        assert all(np.array_equal(found[key], value[:, 1]) for key, value in expected.traces.items())


def targets(program):
    """The program as plain C, as C with vectors and as JavaScript, where there is a compiler and a node."""
    for vectors in () if needs_compiler.args[0] else (False, True):
        yield lambda x, vectors=vectors: Machine({"net": program}, quick=True, vectors=vectors).trace("net", x, seed=0)
    if not needs_node.args[0]:
        yield lambda x: node().trace(program, x, seed=0)


def test_its_file_is_held_to_the_training_network():
    for mode in ("mfa", "int8"):
        found = check_of(made(), ARRIVING, MODES[mode]).found
        assert found.faults == []
        assert 0.01 < found.largest <= 1.0  # neither exceeded nor far above what rounding does


@pytest.mark.parametrize("name", ["kept", "turned", "threshold"])
def test_a_wrong_constant_is_found(name, monkeypatch):
    right = ResonateAndFire.constants

    def wrong(layer):
        return {
            key: value * (1.001 if key == name and layer.threshold.dtype == torch.float32 else 1.0)
            for key, value in right(layer).items()
        }

    monkeypatch.setattr(ResonateAndFire, "constants", wrong)  # in float32, which is what collapses
    faults = check_of(made(), ARRIVING, CollapseSettings()).found.faults
    assert any(f"'maps.{name}'" in line for line in faults)
    assert any("layer 'maps'" in line for line in faults)


def test_the_contract_says_what_it_is_and_no_angle_is_left_in_the_graph():
    exported = export(made(), ARRIVING)
    layer = next(layer for layer in exported.contract.layers if layer.name == "maps")
    assert (layer.op, layer.reset, layer.threshold) == ("ResonateAndFire", "subtract", 0.75)
    assert layer.states == ("membrane/maps", "spikes/maps", "resonance/maps")
    nodes = {node.op_type for function in exported.model.functions for node in function.node}
    assert not nodes & {"Cos", "Sin"}


def test_noise_in_a_file_is_refused():
    with pytest.raises(
        AxonnxError, match="ResonateAndFire neurons have no stochastic form in a file; collapse with mfa"
    ):
        export(made(), ARRIVING, CollapseSettings("stochastic"))


SOURCE = """
import torch
from axonnx.models import LeakyReadout, Linear, ResonateAndFire, SpikingNetwork

class Tuned(SpikingNetwork):
    def __init__(self, inputs, classes, variant):
        super().__init__()
        self.into = Linear(inputs, 24, variant)
        self.neurons = ResonateAndFire(torch.linspace(0.02, 0.2, 24), variant, learn_frequency=True, learn_decay=True)
        self.readout = LeakyReadout(24, classes)

    def compute(self, x, run):
        return self.readout(self.neurons(self.into(x.flatten(-3), run), run), run)
"""


def test_a_run_is_trained_exported_and_verified(tmp_path: Path, capsys):
    (tmp_path / "tuned.py").write_text(SOURCE, "utf-8")
    run, file = str(tmp_path / "run"), str(tmp_path / "tuned.onnx")
    network = ["--model.network", f"{tmp_path}/tuned.py:Tuned", "--optimiser.epochs", "1", "--data.bins", "12"]
    assert main(["train", "digits-saccade", "--out", run, "--quiet", *network]) == 0
    assert main(["export", run, "-o", file, "--limit", "16", "--passes", "1", "--quiet"]) == 0
    capsys.readouterr()
    few = ["--limit", "4"]
    code = main(["verify", file, "--run", run, "--json", "--quiet", *few])
    result = json.loads(capsys.readouterr().out)
    assert (code, result["verdict"], result["mismatches"]) == (0, "equal", 0), result["stages"]
    assert result["compared"]["spikes"] > 0
