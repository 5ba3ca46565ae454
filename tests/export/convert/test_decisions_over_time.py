"""Networks that decide by their last time step or by a maximum over time: executed everywhere as their source does."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import torch
from torch import nn

import axonnx
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime.format.names import MEMBRANE, TOTAL
from axonnx.runtime.model import load
from axonnx.runtime.streams.windows import Rules, Windows

CLASSES = 5
SHAPE = (2, 4, 4)
RULES = ("last", "maximum")


class Looped(nn.Module):
    """A loop over time whose membranes are read out; what they come to is said by ``end``."""

    def __init__(self, library: str, end: str, inputs: int = 32) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.library, self.end = library, end
        self.fc1, self.fc2 = nn.Linear(inputs, 16), nn.Linear(16, CLASSES)
        if library == "snntorch":
            snntorch = pytest.importorskip("snntorch", reason="snnTorch is not installed")
            self.lif1 = snntorch.Leaky(beta=0.9)
            self.lif2 = snntorch.Leaky(beta=0.8, reset_mechanism="none")
        else:
            norse = pytest.importorskip("norse.torch", reason="Norse is not installed")
            self.lif1, self.lif2 = norse.LIFBoxCell(), norse.LICell()
        with torch.no_grad():
            self.fc1.weight.mul_(4.0 if library == "snntorch" else 30.0)
            self.fc2.weight.sub_(self.fc2.weight.mean(1, keepdim=True)).mul_(2.0)
            self.fc2.bias.fill_(-6.0)  # membranes below zero all the time: a maximum that begins at zero would show
            for layer in (self.fc1, self.fc2):
                for value in layer.parameters():
                    value.copy_(torch.round(value * 64) / 64)

    def forward(self, x):
        one = two = None
        read = []
        if self.library == "snntorch":
            one, two = self.lif1.reset_mem(), self.lif2.reset_mem()
        for step in range(x.shape[0]):
            hidden, one = self.lif1(self.fc1(x[step].flatten(1)), one)
            out, two = self.lif2(self.fc2(hidden), two)
            read.append(two if self.library == "snntorch" else out)
        ends = {
            "last": lambda: read[-1],
            "last of all": lambda: torch.stack(read)[-1],
            "maximum": lambda: torch.stack(read).max(0).values,
            "amax": lambda: torch.stack(read).amax(0),
            "every step": lambda: torch.stack(read),
            "first": lambda: torch.stack(read)[0],
            "mean of the maxima": lambda: torch.stack(read).amax(0) + torch.stack(read).mean(0),
        }
        return ends[self.end]()


def imported(folder, library, end, **options):
    network = Looped(library, end)
    return network, axonnx.import_network(network, folder / "net.onnx", shape=SHAPE, steps=12, limit=16, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file for each rule, of a live snnTorch network."""
    folders = {rule: tmp_path_factory.mktemp(rule) for rule in RULES}
    return {rule: (folders[rule], *imported(folders[rule], "snntorch", rule)) for rule in RULES}


def given(steps=12, samples=24):
    random = np.random.default_rng(7)
    return (random.random((steps, samples, *SHAPE)) < 0.3).astype(np.float32)


@pytest.mark.parametrize(("library", "end", "rule"), [
    ("snntorch", "last", "last"), ("snntorch", "last of all", "last"), ("snntorch", "maximum", "maximum"),
    ("snntorch", "amax", "maximum"), ("norse", "last", "last"), ("norse", "maximum", "maximum"),
])  # fmt: skip
def test_the_rule_of_a_live_network_is_found_and_executed(tmp_path, library, end, rule):
    network, done = imported(tmp_path, library, end)
    assert done.proof.equal, done.proof.lines()
    contract = done.exported.contract
    assert (contract.decision.rule, contract.logits) == (rule, "total")
    with torch.no_grad():
        expected = network(torch.from_numpy(given())).numpy()
    assert expected.max() < 0
    bits = []
    for engine in ("numpy", "native", "ort"):
        logits = load(done.exported.path, engine).run(given()).logits
        assert np.array_equal(logits.argmax(1), expected.argmax(1))
        assert np.allclose(logits, expected, atol=1e-5)  # Norse computes its decay in another order
        bits.append(logits.view(np.uint32))
    assert len(set(expected.argmax(1))) > 1
    assert all(np.array_equal(bits[0], other) for other in bits[1:])


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_decide_differently(made, rule):
    """Otherwise equality of decisions would prove nothing."""
    _, _, done = made[rule]
    means = Looped("snntorch", "every step")
    with torch.no_grad():
        mean = means(torch.from_numpy(given(samples=200))).mean(0).numpy().argmax(1)
    assert not np.array_equal(load(done.exported.path).run(given(samples=200)).logits.argmax(1), mean)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_can_be_stated_if_all_steps_are_returned(tmp_path, made, rule):
    _, done = imported(tmp_path, "snntorch", "every step", decision=rule)
    _, _, other = made[rule]
    assert done.proof.equal
    bits = [load(each.exported.path).run(given()).logits.view(np.uint32) for each in (done, other)]
    assert np.array_equal(*bits)


def test_what_is_neither_is_refused(tmp_path):
    with pytest.raises(AxonnxError, match=r"is a part, .* of the outputs of all time steps"):
        imported(tmp_path, "snntorch", "first")
    with pytest.raises(AxonnxError, match="made by maximum and mean"):
        imported(tmp_path, "snntorch", "mean of the maxima")
    with pytest.raises(AxonnxError, match="is by the last over time, and decision says mean"):
        imported(tmp_path, "snntorch", "last", decision="mean")


@pytest.mark.parametrize("rule", RULES)
def test_the_file_verifies_and_so_does_its_code(made, rule, tmp_path, capsys):
    _, _, done = made[rule]
    words = ["--run", str(done.folder), "--limit", "8", "--quiet"]
    assert main(["verify", str(done.exported.path), *words]) == 0, capsys.readouterr().out
    for target, tool in (("js", "node"), ("c", "gcc")):
        if shutil.which(tool) is not None:
            out = str(tmp_path / target)
            assert main(["compile", str(done.exported.path), "-o", out, "--target", target]) == 0
            if target == "js":
                words = ["--compiled", out, "--quiet"]
                assert main(["verify", str(done.exported.path), *words]) == 0, capsys.readouterr().out
            else:  # which ends with the self-test
                subprocess.run(["make", "-C", out], check=True, capture_output=True)


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    """A file for each rule that takes events."""
    found = {}
    for rule in RULES:
        network, folder = Looped("snntorch", rule, 512), tmp_path_factory.mktemp("streamed")
        network.fc2 = nn.Linear(16, 10)
        settings = {"data.bins": 12, "data.duration_ms": 300}
        done = axonnx.import_network(network, folder / "net.onnx", data="digits-saccade", settings=settings, limit=8)
        found[rule] = done.exported.path
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_stream_decides_after_each_bin_by_the_steps_so_far(streamed, rule, engine):
    """Also of a network that goes on through windows: membranes stay, the maximum begins anew."""
    model = load(streamed[rule], engine)
    frames = (np.random.default_rng(7).random((24, 2, 16, 16)) < 0.1).astype(np.uint8)
    for continuous in (False, True):
        windows = Windows(model.engine, lambda *_: {}, Rules(continuous))
        found = [outcome for half in (0, 12) for outcome in windows.pass_through(half, frames[half : half + 12])]
        readout = next(name for name in model.program.totals)
        state, held = model.engine.initial_state(1), []
        for at, frame in enumerate(frames):
            if at == 12 and not continuous:
                state = model.engine.initial_state(1)
            chunk = model.engine.advance(state, frame[None, None].astype(np.float32), {})
            state = chunk.state
            held.append(state.arrays[readout.replace(TOTAL, MEMBRANE)][0])
        for outcome in found:
            so_far = np.stack(held[outcome.bin - outcome.steps + 1 : outcome.bin + 1])
            expected = so_far[-1] if rule == "last" else so_far.max(0)
            assert np.array_equal(outcome.logits[0], expected), (outcome.bin, continuous)
        assert len(found) == 24


@pytest.mark.parametrize("field", ["logits", "rule"])
def test_a_file_that_says_another_rule_than_it_computes_is_refused(made, field, tmp_path, capsys):
    import onnx

    _, _, done = made["maximum"]
    model = onnx.load(done.exported.path)
    contract = json.loads(model.metadata_props[0].value)
    if field == "logits":
        contract["logits"] = "total / steps"
    else:
        contract["decision"]["rule"] = "last"
    model.metadata_props[0].value = json.dumps(contract)
    onnx.save(model, tmp_path / "other.onnx")
    assert main(["inspect", str(tmp_path / "other.onnx")]) == 2
    assert "maximum" in capsys.readouterr().err
