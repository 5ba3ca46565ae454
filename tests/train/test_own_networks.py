"""One's own network trains, resumes and is read back with the very code it was trained with; faults are named."""

import hashlib
import importlib
import re
from pathlib import Path

import pytest
import torch

import axonnx
from axonnx import Run
from axonnx.base.errors import AxonnxError
from axonnx.base.progress import Progress
from axonnx.cli import main
from axonnx.export.exporting import export_network
from axonnx.models import SpikingNetwork
from axonnx.train.config import own as own_code
from axonnx.train.config.read import read_config
from axonnx.train.run import train_run
from axonnx.train.trained import open_run

from .own_sources import GOOD, wired, write_network
from .tiny_runs import same_bits, tiny_config, tiny_network, weights_of, write_config

USUAL = "return self.readout(self.neuron(self.synapse(x.flatten(-3), run), run), run)"
OWN = {"network": "my_network.py:Net", "arguments": {"hidden": 6}}


class Stops(Progress):
    """Interrupts a run after its first epoch."""

    epochs = 0

    def figures(self, line, last=False):
        self.epochs += 1
        if self.epochs == 2:
            raise KeyboardInterrupt


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def own(frames, source, **model):
    return tiny_config(frames, model={"network": f"{source}:Net", **model})


def refusal(frames, source, **model) -> str:
    with pytest.raises(AxonnxError) as fault:
        tiny_network(own(frames, source, **model))
    return str(fault.value)


def test_a_run_keeps_the_code_it_was_trained_with(frames, here):
    source = write_network(here)
    train_run(own(frames, source, arguments={"hidden": 6}), "run")
    source.write_text("raise RuntimeError('changed since')", "utf-8")
    kept = here / "run" / "network.py"
    trained = open_run("run")
    assert type(trained.network).__name__ == "Net"
    assert trained.config.model.network == "network.py:Net"
    assert trained.config.model.network_sha256 == hashlib.sha256(kept.read_bytes()).hexdigest()
    assert "network.py:Net" in trained.provenance().config
    assert str(here) not in trained.provenance().config.replace(str(frames), "")


def test_a_stopped_run_goes_on_to_the_same_bits_without_the_original(frames, here):
    config = own(frames, write_network(here), arguments={"hidden": 6})
    train_run(config, "whole")
    with pytest.raises(KeyboardInterrupt):
        train_run(config, "stopped", progress=Stops())
    (here / "my_network.py").unlink()
    train_run(out="stopped", resume=True)
    assert same_bits(weights_of(here / "whole"), weights_of(here / "stopped"))
    assert "changed since" not in (here / "stopped" / "log.txt").read_text("utf-8")


def test_the_configuration_of_a_run_repeats_it(frames, here):
    train_run(own(frames, write_network(here), arguments={"hidden": 6}), "run")
    train_run("run/config.toml", "again")
    assert same_bits(weights_of(here / "run"), weights_of(here / "again"))
    assert (here / "run" / "network.py").read_bytes() == (here / "again" / "network.py").read_bytes()


def test_a_changed_or_lost_copy_is_refused(frames, here):
    train_run(own(frames, write_network(here), arguments={"hidden": 6}), "run")
    copy, config = here / "run" / "network.py", here / "run" / "config.toml"
    code, settings = copy.read_bytes(), config.read_text("utf-8")
    copy.write_bytes(code + b"\n")
    for opening in (lambda: open_run("run"), lambda: train_run(out="run", resume=True)):
        with pytest.raises(AxonnxError, match=r"network.py: has sha256 .*the run was trained with"):
            opening()
    copy.unlink()
    with pytest.raises(AxonnxError, match=r"network.py: is missing; it is the code of the network Net"):
        open_run("run")
    copy.write_bytes(code)
    write_network(here / "run", GOOD, "other.py")
    for text in (settings.replace("network.py:", "other.py:"), settings.replace("network_sha256", "# ")):
        config.write_text(text, "utf-8")
        with pytest.raises(AxonnxError, match="a run folder names its own copy"):
            open_run("run")


@pytest.fixture
def strange(frames, here, monkeypatch):
    """Return a run folder with code that somebody else put there; it leaves a mark if it is executed."""
    train_run(own(frames, write_network(here), arguments={"hidden": 6}), "run")
    monkeypatch.setattr(own_code, "_TRUSTED", set())
    code = (here / "run" / "network.py").read_bytes() + b"\nopen('mark', 'w').close()\n"
    (here / "run" / "network.py").write_bytes(code)
    config = (here / "run" / "config.toml").read_text("utf-8")
    before = re.search('network_sha256 = "(.*)"', config)[1]
    (here / "run" / "config.toml").write_text(config.replace(before, hashlib.sha256(code).hexdigest()), "utf-8")
    (here / "mark").unlink(missing_ok=True)
    return here


ASKED = r"run/network.py: opening this run would execute this Python code, .*trust_code=True\)"
OPENINGS = {
    "open_run": lambda: open_run("run"),
    "trained": lambda: Run("run").trained,
    "evaluate": lambda: Run("run").evaluate(passes=1),
    "export": lambda: Run("run").export("a.onnx", limit=4, passes=1),
    "resume": lambda: train_run(out="run", resume=True),
}


@pytest.mark.parametrize("opening", OPENINGS)
def test_code_of_a_strange_run_folder_is_not_executed_without_a_word(opening, strange):
    with pytest.raises(AxonnxError, match=ASKED):
        OPENINGS[opening]()
    assert not (strange / "mark").exists()


@pytest.mark.parametrize(
    "words", [["export", "run", "-o", "a.onnx"], ["eval", "run"], ["train", "-o", "run", "--resume"]]
)
def test_the_command_line_asks_too_and_says_which_file(words, strange, capsys):
    assert main([*words, "--quiet"]) == 2
    assert re.search(ASKED + r" \(--trust-code\)\n$", capsys.readouterr().err)
    assert not (strange / "mark").exists()


def test_trusted_code_is_executed(strange, capsys):
    assert Run("run", trust_code=True).trained.name == "run"
    assert (strange / "mark").exists()
    own_code._TRUSTED.clear()
    assert main(["eval", "run", "--trust-code", "--passes", "1", "--quiet"]) == 0, capsys.readouterr().err


def test_who_names_the_same_code_is_not_asked(frames, here, monkeypatch):
    source = write_network(here)
    with pytest.raises(KeyboardInterrupt):
        train_run(own(frames, source, arguments={"hidden": 6}), "run", progress=Stops())
    monkeypatch.setattr(own_code, "_TRUSTED", set())
    with pytest.raises(KeyboardInterrupt):
        train_run(f"{source}:Net", "run", resume=True, progress=Stops())
    open_run("run")  # in the process that trains
    monkeypatch.setattr(own_code, "_TRUSTED", set())
    write_network(here, GOOD + "\n# changed")
    with pytest.raises(AxonnxError, match=ASKED):
        train_run(f"{source}:Net", "run", resume=True)


def test_code_that_no_configuration_names_is_not_run(frames, here):
    train_run(tiny_config(frames), "run")
    (here / "run" / "network.py").write_text("raise RuntimeError('run')", "utf-8")
    open_run("run")


def test_the_path_counts_from_the_configuration_or_from_here(frames, here):
    folder = here / "elsewhere"
    folder.mkdir()
    config = write_config(folder / "my.toml", frames, model={"network": "my_network.py:Net"})
    with pytest.raises(AxonnxError, match=r"no file .*elsewhere/my_network.py nor my_network.py; the path counts"):
        train_run(config, "run")
    good = GOOD.replace("classes, hidden):", "classes, hidden=4):")
    write_network(here, good.replace("=4", "=5"))
    assert train_run(config, "one").training.network.synapse.posterior.raw_mean.shape[0] == 5
    write_network(folder, good)
    assert train_run(config, "two").training.network.synapse.posterior.raw_mean.shape[0] == 4


def test_a_module_may_be_named(frames, here, monkeypatch):
    package = here / "my_package_of_networks"
    package.mkdir()
    (package / "__init__.py").touch()
    write_network(package, GOOD, "nets.py")
    monkeypatch.syspath_prepend(here)
    model = {"network": "my_package_of_networks.nets:Net", "arguments": {"hidden": 3}}
    train_run(tiny_config(frames, model=model), "run")
    assert (here / "run" / "network.py").read_bytes() == (package / "nets.py").read_bytes()
    with pytest.raises(AxonnxError, match=r"no Python module 'my_package_of_networks.none' with a source file"):
        tiny_network(tiny_config(frames, model={"network": "my_package_of_networks.none:Net"}))


def test_a_constructor_gets_what_it_names(frames, here):
    text = GOOD.replace("inputs, classes, hidden", "shape, steps, classes, variant, settings, inputs, hidden=4")
    text = text.replace(
        "super().__init__()", "super().__init__(); self.given = shape, steps, variant, settings, inputs"
    )
    network, prepared = tiny_network(own(frames, write_network(here, text), decay=0.5))
    shape, steps, variant, settings, inputs = network.given
    assert (shape, steps, inputs) == (prepared.shape[-3:], prepared.steps, 16)
    assert (variant.spread, settings.decay) == ("learned", 0.5)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ({}, "Net needs hidden; give model.arguments = { hidden = … } (by themselves come inputs, shape, classes,"),
        ({"arguments": {"hiden": 3}}, "model.arguments.hiden: Net has no such argument; did you mean 'hidden'?"),
        ({"arguments": {"hidden": 3, "inputs": 3}}, "model.arguments.inputs: follows from the data"),
        ({"hidden": [3]}, "model.hidden is for shipped networks; put it into model.arguments"),
        ({"arguments": {"hidden": 3}, "decay": 0.5}, "model.decay means nothing to Net: let its constructor take"),
        ({"arguments": {"hidden": "x"}}, "my_network.py, line 9: Net(inputs, classes, hidden) failed: TypeError"),
    ],
)
def test_a_constructor_that_does_not_fit(model, text, frames, here):
    assert text in refusal(frames, write_network(here), **model)


def test_a_variant_that_the_network_would_ignore(frames, here):
    config = tiny_config(frames, model=OWN, variant={"name": "sg-bn"})
    write_network(here)
    with pytest.raises(AxonnxError, match="variant means nothing to Net"):
        tiny_network(config)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class Other(SpikingNetwork): pass", "has no class 'Net'; its networks are Other"),
        ("Net = nn.Linear", "Net is no network; derive it from axonnx.models.SpikingNetwork"),
        ("class Net(BinaryNetwork): pass", "the data has a time axis, so Net must be an axonnx.models.SpikingNetwork"),
        ("import no_such_module_at_all", "line 5: its code failed: ModuleNotFoundError: No module named"),
        ("1 / 0", "my_network.py, line 5: its code failed: ZeroDivisionError"),
        ("(", "its code failed: SyntaxError"),
        ("raise SystemExit", "its code failed: SystemExit"),
    ],
)
def test_code_that_is_no_network(text, found, frames, here):
    assert found in refusal(frames, write_network(here, text))


@pytest.mark.parametrize(
    ("layers", "compute", "text"),
    [
        ("", "return self.readout(self.neuron(x.flatten(-3), run), run)", "the neurons 'neuron' got a plain tensor"),
        ("", "return self.readout(self.synapse(x.flatten(-3), run), run)", "the layer 'readout' got a Current"),
        ("self.more = nn.Linear(6, 6)", USUAL, "'more' is a torch.nn.modules.linear.Linear with parameters of its own"),
        ("self.more = nn.Linear(6, 6)", USUAL, "use axonnx.models.Linear, called as self.layer(x, run)"),
        ("self.more = nn.Conv2d(1, 1, 1)", USUAL, "use axonnx.models.Conv2d, called as self.layer(x, run)"),
        ("self.more = nn.MaxPool1d(2)", USUAL, "'more' is a torch.nn.MaxPool1d, which has no form that gives the same"),
        (
            "self.more = nn.ReLU()",
            USUAL,
            "known are ModuleList, ModuleDict, Sequential, Identity, Flatten",
        ),
        ("self.scale = nn.Parameter(torch.ones(1))", USUAL, "which have no exported form; use layers of axonnx.models"),
        ("self.more = LeakyReadout(6, classes)", USUAL, "2 read-outs (readout, more); expected one"),
        ("del self.readout", "return x.sum((0, 2, 3, 4))", "the network has no read-out; expected one"),
        ("self.readout = LeakyReadout(6, 7)", USUAL, "logits of [2, 7] for 2 samples; expected [2, 3]"),
        ("", USUAL + " * 2", "compute() changes what its read-out returns"),
        (
            "",
            USUAL.replace(", run), run), run)", ", run)), run)"),
            "layers of axonnx.models are called as layer(x, run)",
        ),
        ("", "run.state_of(self.neuron).spikes", "run.state_of(layer) is None at the first step: begin with zeros"),
        ("", "self.none", "my_network.py, line 15: a trial pass of Net failed: AttributeError"),
        (
            "",
            "x = x.flatten(-3)\nself.sum = getattr(self, 'sum', 0) + x\n" + USUAL.replace("x.flatten(-3)", "self.sum"),
            "keeps a state outside of its layers, where each time step finds it missing",
        ),
    ],
)
def test_wiring_that_cannot_be_right(layers, compute, text, frames, here):
    assert text in refusal(frames, write_network(here, wired(layers, compute)))


HEARS = """before = run.state_of(self.neuron)
heard = torch.zeros(x.shape[-4], 6) if before is None else before.spikes
current = self.synapse(x.flatten(-3), run) + self.feedback(heard.to(x.dtype), run)
return self.readout(self.neuron(current, run), run)"""


def test_a_layer_that_hears_a_later_one_needs_steps(frames, here):
    layers = "self.feedback = Linear(6, 6)"
    assert "(set layerwise = False)" in refusal(frames, write_network(here, wired(layers, HEARS)))
    tiny_network(own(frames, write_network(here, wired(layers, HEARS, "layerwise = False"))))


def test_a_trial_leaves_the_weights_and_the_random_numbers_alone(frames, here):
    network, _ = tiny_network(own(frames, write_network(here), arguments={"hidden": 6}))
    after = torch.rand(3)
    torch.manual_seed(0)
    alone = type(network)(16, 3, hidden=6)
    assert same_bits(network.state_dict(), alone.state_dict())
    assert torch.equal(after, torch.rand(3))
    assert network.training


def test_shipped_networks_take_no_arguments(frames):
    with pytest.raises(AxonnxError, match=r"model.arguments is for one's own networks; 'spiking-mlp' takes hidden"):
        tiny_network(tiny_config(frames, model={"network": "spiking-mlp", "hidden": [4], "arguments": {"a": 1}}))


def test_a_network_is_shipped_or_a_file_and_a_class():
    with pytest.raises(AxonnxError, match=r"model.network: .*expected 'binary-mlp', .*or one's own, 'my_network.py"):
        read_config("digits-saccade", {"model.network": "spiking-mpl"})


def test_a_class_is_trained_resumed_and_exported_from_python(frames, here, monkeypatch):
    write_network(here, GOOD, "networks_of_this_test.py")
    monkeypatch.syspath_prepend(here)
    kind = importlib.import_module("networks_of_this_test").Net
    settings = {"model.arguments": {"hidden": 6}, "optimiser.epochs": 3, "optimiser.batch_size": 8, "eval_samples": 2}
    whole = train_run(kind, data=frames, settings=settings)
    assert whole.folder == Path("runs/Net")
    assert {path.name for path in whole.folder.iterdir()} >= {"network.py", "results.csv", "metrics.json"}
    with pytest.raises(KeyboardInterrupt):
        train_run(kind, "stopped", data=frames, settings=settings, progress=Stops())
    run = train_run(kind, "stopped", resume=True)
    assert same_bits(weights_of(whole.folder), weights_of(run.folder))
    file = export_network(run.network, run.arriving, run.classes, "mine.onnx")
    assert axonnx.load(file.path).contract.classes == run.classes


def test_a_class_may_be_named_by_its_file(frames, here):
    write_network(here, GOOD, "by_name.py")
    settings = {"model.arguments": {"hidden": 6}, "optimiser.epochs": 1, "optimiser.batch_size": 8, "eval_samples": 2}
    run = train_run("by_name.py:Net", data=frames, settings=settings)
    assert run.folder == Path("runs/by_name")
    assert type(run.network).__name__ == "Net"
    with pytest.raises(AxonnxError, match="has no class 'Nit'"):
        train_run("by_name.py:Nit", "other", data=frames, settings=settings)


def test_what_no_run_folder_could_make_again(frames, here):
    class Within(SpikingNetwork):
        pass

    for given, text in (
        (Within, "a run keeps the file of its network's class, and this one stands in"),
        (tiny_network(tiny_config(frames))[0], "give its class, SpikingMLP, and its arguments as settings="),
    ):
        with pytest.raises(AxonnxError, match=re.escape(text)):
            train_run(given, "run", data=frames)
