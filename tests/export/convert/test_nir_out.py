"""Files of ours as NIR graphs: read back to the same bits, run by other libraries to the same spikes."""

import numpy as np
import pytest
import torch

import axonnx
from axonnx import load
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.export.convert.importing import fill, grid_weights
from axonnx.export.convert.nir_neurons import Assumed
from axonnx.export.convert.nir_out import write_nir
from axonnx.export.convert.nir_source import nir_source
from axonnx.export.exporting import export_network
from axonnx.models import LIFSettings, SpikingMLP, variant
from axonnx.models.described import DescribedNetwork
from axonnx.runtime.format.contract import InputContract

from .test_nir_files import CLASSES, DT, GRAPHS, nir

NAMES = [str(number) for number in range(CLASSES)]


def exported(graph, folder, stem):
    """A NIR file's network as a file of ours, without data."""
    nir_file = folder / f"{stem}.nir"
    if graph is not None:
        nir.write(nir_file, graph)
    source = nir_source(nir_file, DT)
    made = DescribedNetwork([layer.as_table() for layer in source.plan.layers], variant("sg-nbn-1"))
    arriving = InputContract(name="events", shape=source.plan.shapes["input"], steps=30, largest=1)
    return export_network(fill(made, source.plan), arriving, NAMES, folder / f"{stem}.onnx")


def arrays(path):
    graph = nir.read(path)
    found = {
        f"{name}.{key}": value
        for name, node in graph.nodes.items()
        for key, value in vars(node).items()
        if isinstance(value, np.ndarray)
    }
    return found, sorted(graph.edges)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_round_trip_gives_the_same_bits(name, tmp_path):
    first = exported(GRAPHS[name](), tmp_path, "a")
    write_nir(first.path, tmp_path / "b.nir", DT)
    second = exported(None, tmp_path, "b")
    if "delays" not in name:  # of which weights are taken apart
        write_nir(second.path, tmp_path / "c.nir", DT)
        (one, edges), (other, again) = arrays(tmp_path / "b.nir"), arrays(tmp_path / "c.nir")
        assert edges == again
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)
        before, after = (grid_weights(each.collapsed.network) for each in (first, second))
        assert len(before) == len(after) > 2
        assert all(torch.equal(a, b) for a, b in zip(before.values(), after.values(), strict=True))
    x = (np.random.default_rng(0).random((30, 4, *first.contract.input.shape)) < 0.2).astype(np.float32)
    engines = [load(path.path).engine for path in (first, second)]
    logits = [engine.advance(engine.initial_state(4), x, {}).logits for engine in engines]
    assert np.array_equal(*logits)
    assert logits[0].any()


def test_our_delays_become_delays_of_nir_and_back(tmp_path):
    """Three delays of one synapse are three nodes of weights; read back, their sum has the same bits."""
    settings = LIFSettings(reset="zero", decay=0.875)
    network = SpikingMLP(12, [9, 8], CLASSES, variant("sg-nbn-1"), settings, delays=[0, 2, 5], readout_decay=0.0)
    arriving = InputContract(name="events", shape=(1, 1, 12), steps=30, largest=1)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.7)
    first = export_network(network, arriving, NAMES, tmp_path / "a.onnx")
    write_nir(first.path, tmp_path / "b.nir", DT)
    kinds = [type(node).__name__ for node in nir.read(tmp_path / "b.nir").nodes.values()]
    assert (kinds.count("Delay"), kinds.count("Affine"), kinds.count("LIF")) == (4, 7, 2)
    second = exported(None, tmp_path, "b")
    x = (np.random.default_rng(0).random((30, 4, 1, 1, 12)) < 0.3).astype(np.float32)
    engines = [load(path.path).engine for path in (first, second)]
    logits = [engine.advance(engine.initial_state(4), x, {}).logits for engine in engines]
    assert np.array_equal(*logits)
    assert logits[0].any()


@pytest.mark.parametrize("library", ["snntorch", "spikingjelly", "norse"])
def test_other_libraries_read_the_same_spikes(library, tmp_path):
    pytest.importorskip(library, reason=f"{library} is not installed; see CONTRIBUTING.md")
    readers = pytest.importorskip("benchmarks.nir_readers")
    reader = next(name for name in readers.READERS if name.lower().startswith(library))
    assert readers.cell("Affine, LIF", reader, tmp_path).endswith("✓")


def subtracting(folder, decay=0.75):
    """A file whose spikes take the threshold, one step later, as the shipped configurations have it."""
    network = SpikingMLP(12, [9, 8], CLASSES, variant("sg-nbn-1"), LIFSettings(decay=decay), readout_decay=0.0)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.7)
    arriving = InputContract(name="events", shape=(1, 1, 12), steps=30, largest=1)
    return export_network(network, arriving, NAMES, folder / "a.onnx")


@pytest.mark.parametrize("decay", [0.75, 1.0])
def test_a_reset_by_subtraction_is_stated_and_read_back_to_the_same_bits(decay, tmp_path):
    first = subtracting(tmp_path, decay)
    write_nir(first.path, tmp_path / "b.nir", DT)
    nodes = [node for node in nir.read(tmp_path / "b.nir").nodes.values() if type(node).__name__ in ("LIF", "IF")]
    assert [node.metadata for node in nodes] == [{"reset": "late-subtract", "tie": "fires"}] * 2
    assert nir_source(tmp_path / "b.nir", DT).assumed == Assumed("late-subtract", "fires")
    second = exported(None, tmp_path, "b")
    x = (np.random.default_rng(0).random((30, 4, 1, 1, 12)) < 0.4).astype(np.float32)
    engines = [load(path.path).engine for path in (first, second)]
    logits = [engine.advance(engine.initial_state(4), x, {}).logits for engine in engines]
    assert np.array_equal(*logits)
    assert logits[0].any()
    with pytest.raises(AxonnxError, match="states reset late-subtract and tie fires; give no other reset"):
        nir_source(tmp_path / "b.nir", DT, Assumed("zero"))


def test_snntorch_fires_the_same_spikes_from_a_file_that_resets_by_subtraction(tmp_path):
    """snnTorch's reader forgets the reset, so its neurons are made here from what the node and its metadata say."""
    snntorch = pytest.importorskip("snntorch", reason="snntorch is not installed; see CONTRIBUTING.md")
    first = subtracting(tmp_path)
    write_nir(first.path, tmp_path / "b.nir", DT)
    graph = nir_source(tmp_path / "b.nir", DT).graph
    weights = [node for node in graph.nodes.values() if type(node).__name__ == "Affine"]
    neurons = [node for node in graph.nodes.values() if type(node).__name__ == "LIF"]
    leaky = [
        snntorch.Leaky(
            beta=torch.tensor(1 - DT / node.tau).float(),
            threshold=torch.tensor(node.v_threshold).float(),
            reset_mechanism="subtract",
        )
        for node in neurons
    ]
    x = (torch.rand(30, 4, 12, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    membranes, total = [each.reset_mem() for each in leaky], torch.zeros(4, CLASSES)
    fired = 0
    for value in x:
        for number, each in enumerate(leaky):
            current = value @ torch.tensor(weights[number].weight).T + torch.tensor(weights[number].bias)
            value, membranes[number] = each(current, membranes[number])
            fired += int(value.sum())
        total += value @ torch.tensor(weights[2].weight).T + torch.tensor(weights[2].bias)
    assert fired > 100
    engine = load(first.path).engine
    arriving = x.numpy().reshape(30, 4, 1, 1, 12)
    assert np.array_equal(total.numpy(), engine.advance(engine.initial_state(4), arriving, {}).logits[0])


def test_metadata_that_disagree_or_mean_nothing_are_refused(tmp_path):
    first = subtracting(tmp_path)
    for wrong, text in ((("zero", "fires"), "state different resets"), (("twice", "fires"), "reset is 'twice'")):
        write_nir(first.path, tmp_path / "b.nir", DT)
        graph = nir.read(tmp_path / "b.nir")
        node = next(node for node in graph.nodes.values() if type(node).__name__ == "LIF")
        node.metadata = dict(zip(("reset", "tie"), wrong, strict=True))
        nir.write(tmp_path / "b.nir", graph)
        with pytest.raises(AxonnxError, match=text):
            nir_source(tmp_path / "b.nir", DT)


def test_the_command_writes_one(tmp_path, capsys):
    first = exported(GRAPHS["lif"](), tmp_path, "a")
    assert main(["export", str(first.path), "-o", str(tmp_path / "b.nir")]) == 0
    assert "a NIR graph with time steps of 0.0001 s" in capsys.readouterr().out
    assert nir_source(tmp_path / "b.nir", 1e-4).plan.layers
    load(first.path).save(tmp_path / "c.nir", dt=DT)
    assert nir_source(tmp_path / "c.nir", DT).plan.layers
    assert main(["export", str(first.path), "-o", str(tmp_path / "d.onnx")]) == 2
    assert "is exported already" in capsys.readouterr().err


def test_a_run_that_nir_cannot_express_leaves_no_file(runs, tmp_path):
    with pytest.raises(AxonnxError, match="has no form in NIR"):
        axonnx.Run(runs["binary"]).export(tmp_path / "x.nir", limit=2, passes=1)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(AxonnxError, match="there is no such folder"):
        axonnx.Run(runs["binary"]).export(tmp_path / "none" / "x.nir")
