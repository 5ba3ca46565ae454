"""``axonnx import`` as a user runs it: the page's own example, what it leaves behind, and what it refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from axonnx import import_network, load
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.export.convert.source import torch_source
from axonnx.export.verify.stages import verify_file
from axonnx.train.run import train_run

PAGE = (Path(__file__).parents[3] / "docs/import.md").read_text("utf-8")
QUICK = {"samples": 4, "recordings": 2}

snntorch = pytest.importorskip("snntorch", reason="snnTorch is not installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A folder in which the page's network was imported; tests/repository runs the page as it stands."""
    folder = tmp_path_factory.mktemp("page")
    (code,) = re.findall(r'^```python title="nmnist_snn.py"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)
    (folder / "my_snn.py").write_text(code, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ["import", "my_snn.py:make", "-o", "net.onnx", "--shape", "2x34x34", "--samples", "8", "--steps", "20"]
        assert main(words) == 0
    return folder


def test_an_import_is_fine_tuned_with_noise(page, monkeypatch):
    monkeypatch.chdir(page)
    settings = {"model.begin": "net", "variant.name": "sbnn", "optimiser.epochs": 1, "eval_samples": 1}
    done = train_run("net/config.toml", "tuned", settings=settings)
    before = import_network(
        "my_snn.py:make", "again.onnx", shape=(2, 34, 34), limit=4, steps=5
    ).exported.collapsed.network
    after = dict(done.network.named_parameters())["layers.fc1.posterior.raw_mean"].detach()
    assert "layers.fc1.posterior.log_std" in dict(done.network.named_parameters())
    assert 0.0 < float((after - before.get_submodule("layers.fc1").weight).abs().mean()) < 0.05


def test_an_import_keeps_the_finest_grid_unless_asked_otherwise(page, monkeypatch):
    monkeypatch.chdir(page)
    words = ["import", "my_snn.py:make", "-o", "small.onnx", "--shape", "2x34x34", "--samples", "8", "--steps", "20"]
    assert main([*words, "--weights", "int16"]) == 0
    fine, small = (load(name).program.contract for name in ("net.onnx", "small.onnx"))
    assert {each.stored_as for each in fine.synapses} == {"float32"}
    assert {each.stored_as for each in small.synapses} == {"int16"}
    grids = [(one.grid, other.grid) for one, other in zip(fine.synapses, small.synapses, strict=True)]
    assert all(one >= other for one, other in grids)
    assert any(one > other for one, other in grids)  # where 16 bits are less than sums allow
    same = json.loads(Path("small/import.json").read_text("utf-8"))["same_weights"]
    assert (same["spikes_differing"], same["decisions_differing"]) == (0, 0)
    assert same["spikes"] > 0


class Two(nn.Module):
    """Two leaky layers, wired as the test wants."""

    def __init__(self, last, then):
        super().__init__()
        self.fc1, self.lif1, self.fc2, self.lif2 = nn.Linear(6, 5), snntorch.Leaky(beta=0.5), nn.Linear(5, 3), last
        self.then = then

    def forward(self, x):
        mem1, mem2, kept = self.lif1.reset_mem(), self.lif2.reset_mem(), []
        for step in x:
            spikes, mem1 = self.lif1(self.fc1(step), mem1)
            out, mem2 = self.lif2(self.fc2(spikes), mem2)
            kept.append((out, mem2))
        return self.then(kept)


def spikes(kept):
    return torch.stack([out for out, _ in kept])


REFUSED = {
    "still above": (snntorch.Leaky(beta=0.5, reset_delay=False), spikes, "lif2: this Leaky cannot be imported exactly"),
    "inhibition": (lambda: snntorch.Leaky(beta=0.5, inhibition=True), spikes, "one neuron of a layer fire alone"),
    "graded": (snntorch.Leaky(beta=0.5, graded_spikes_factor=2.0), spikes, "graded_spikes_factor"),
    "membrane": (snntorch.Leaky(beta=0.5), lambda kept: torch.stack([mem for _, mem in kept]), "spikes reset it"),
    "another kind": (snntorch.Lapicque(beta=0.5), spikes, "Lapicque of snnTorch has no exact form"),
}


@pytest.mark.parametrize("name", list(REFUSED))
@pytest.mark.filterwarnings("ignore:Inhibition")
def test_what_is_not_exact_is_refused_by_name(name):
    last, then, text = REFUSED[name]
    last = last if isinstance(last, nn.Module) else last()
    with pytest.raises(AxonnxError, match=re.escape(text)):
        torch_source(Two(last, then), (1, 1, 6))


def test_a_layer_of_torch_that_is_not_known_is_named():
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), snntorch.Leaky(beta=0.5, init_hidden=True))
    with pytest.raises(AxonnxError, match=r"1: a torch.nn.modules.activation.ReLU has no exact form"):
        torch_source(network, (1, 1, 6))


def test_a_network_without_neurons_is_refused():
    with pytest.raises(AxonnxError, match="no layer of neurons"):
        torch_source(nn.Sequential(nn.Linear(6, 3)), (1, 1, 6))


def test_a_wrong_import_fails(tmp_path, monkeypatch):
    """Were a decay read wrongly, the proof would say so, and verify of the file would not."""
    from axonnx.export.convert import known_neurons

    read = known_neurons.snntorch_neuron
    monkeypatch.setattr(
        "axonnx.export.convert.known_neurons.LIBRARIES",
        {"snntorch": (known_neurons.KINDS_OF_SNNTORCH, lambda *given: _changed(read(*given)))},
    )
    torch.manual_seed(0)
    network = Two(snntorch.Leaky(beta=0.5), spikes)
    for module in (network.fc1, network.fc2):
        module.weight.data = module.weight.data * 3 + 0.3
    done = import_network(network, tmp_path / "wrong.onnx", limit=8)
    assert not done.proof.equal
    assert "no rounding explains this" in str(done.proof.imported.first)
    assert verify_file(tmp_path / "wrong.onnx", done.folder, **QUICK).verdict == "equal"


def _changed(neuron):
    from dataclasses import replace

    return replace(neuron, decay=neuron.decay * 0.9)


class Shown(nn.Module):
    """An image in twelve time steps, as snnTorch's tutorials have it: the loop is the network's own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.lif1 = nn.Conv2d(1, 4, 3), snntorch.Leaky(beta=0.875)
        self.fc, self.lif2 = nn.Linear(4 * 9, 3), snntorch.Leaky(beta=0.875)

    def forward(self, x):
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        spikes, membranes = [], []
        for _ in range(12):
            hidden, mem1 = self.lif1(nn.functional.max_pool2d(self.conv(x), 2), mem1)
            out, mem2 = self.lif2(self.fc(hidden.view(x.shape[0], -1)), mem2)
            spikes.append(out)
            membranes.append(mem2)
        return torch.stack(spikes), torch.stack(membranes)


def test_a_network_that_shows_its_image_by_itself(tmp_path, capsys):
    torch.manual_seed(0)
    network = Shown()
    with torch.no_grad():
        for value in network.parameters():
            value.copy_(torch.round(value * 160) / 64)
    done = import_network(network, tmp_path / "shown.onnx", shape=(1, 8, 8), limit=16)
    assert done.proof.equal
    assert done.proof.same_weights.spikes_differing == 0, done.proof.lines()
    assert (done.exported.contract.input.steps, done.exported.contract.input.repeated) == (12, True)
    assert verify_file(tmp_path / "shown.onnx", done.folder, **QUICK).verdict == "equal"
    image = np.random.default_rng(0).integers(0, 256, (1, 8, 8))
    np.save(tmp_path / "image.npy", image)
    assert main(["run", str(tmp_path / "shown.onnx"), str(tmp_path / "image.npy"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[0])
    with torch.no_grad():
        theirs = network(torch.from_numpy(image).float()[None] / 256)[0].mean(0)[0]
    assert np.array_equal(np.float32(found["logits"]), theirs.numpy())
    np.savez(tmp_path / "data.npz", frames=np.zeros((20, 1, 8, 8), np.uint8), labels=np.arange(20) % 3)
    with pytest.raises(AxonnxError, match="shows one image in 12 time steps by itself") as refusal:
        import_network(network, tmp_path / "x.onnx", data=tmp_path / "data.npz", settings={"data.repeat": 5})
    assert refusal.value.settings == {"data.repeat": 12}


def test_an_average_of_currents_is_refused_before_anything_is_written(tmp_path):
    hidden = {"beta": 0.5, "init_hidden": True}
    network = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.AvgPool2d(3), snntorch.Leaky(**hidden), nn.Flatten(), nn.Linear(16, 3),
        snntorch.Leaky(**hidden),
    )  # fmt: skip
    with pytest.raises(AxonnxError, match="1: averages currents over 3 × 3, which is not exact"):
        import_network(network, tmp_path / "x.onnx", shape=(2, 8, 8))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kind": "lif"}, "known are linear"),
        ({"outputs": -3}, "model.layers"),
        ({"outputs": 10**9}, "parameters"),
        ({"outputs": "many"}, "model.layers"),
        ({"of": ["nobody"]}, "hears"),
        ({"size": 3}, "wrong options"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(page, monkeypatch, change, text):
    monkeypatch.chdir(page)
    layers = [
        {"name": "flat", "kind": "flatten", "of": ["input"]},
        {"name": "fc", "kind": "linear", "of": ["flat"], "inputs": 2 * 34 * 34, "outputs": 10, **change},
        {"name": "readout", "kind": "readout", "of": ["fc"]},
    ]
    settings = {"model.layers": layers, "optimiser.epochs": 1}
    with pytest.raises(AxonnxError, match=text):
        train_run("net/config.toml", "refused", settings=settings)
