"""Files of ours as NIR graphs: read back to the same bits, run by other libraries to the same spikes."""

import numpy as np
import pytest
import torch

from axonnx import load
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.export.convert.importing import fill, grid_weights
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


def test_a_reset_by_subtraction_has_no_form(tmp_path):
    network = SpikingMLP(12, [8], CLASSES, variant("sg-nbn-1"))
    arriving = InputContract(name="events", shape=(1, 1, 12), steps=5, largest=1)
    export_network(network, arriving, NAMES, tmp_path / "x.onnx")
    with pytest.raises(AxonnxError, match=r"LIF: NIR's neurons are set to a value"):
        write_nir(tmp_path / "x.onnx", tmp_path / "x.nir")
    assert not (tmp_path / "x.nir").exists()


def test_the_command_writes_one(tmp_path, capsys):
    first = exported(GRAPHS["lif"](), tmp_path, "a")
    assert main(["export", str(first.path), "-o", str(tmp_path / "b.nir")]) == 0
    assert "a NIR graph with time steps of 0.0001 s" in capsys.readouterr().out
    assert nir_source(tmp_path / "b.nir", 1e-4).plan.layers
    load(first.path).save(tmp_path / "c.nir", dt=DT)
    assert nir_source(tmp_path / "c.nir", DT).plan.layers
    assert main(["export", str(first.path), "-o", str(tmp_path / "d.onnx")]) == 2
    assert "is exported already" in capsys.readouterr().err
