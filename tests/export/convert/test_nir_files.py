"""NIR files: read in, held against their own equations in double precision, refused where they are not exact."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.importing import fill, import_network
from axonnx.export.convert.nir_source import nir_source
from axonnx.export.convert.proof import compare, of_network
from axonnx.export.convert.source import torch_source
from axonnx.export.verify.stages import verify_file
from axonnx.models import variant
from axonnx.models.described import DescribedNetwork

nir = pytest.importorskip("nir", reason="the package nir is not installed; see CONTRIBUTING.md")

DT, INPUTS, HIDDEN, CLASSES = 1e-3, 12, 10, 4


def on_grid(rng, *shape, scale=1.0):
    return np.float32(np.round((rng.standard_normal(shape) + 0.15) * scale * 8) / 8)


def full(n, value):
    return np.full(n, value, np.float64)


def lif(n, leak=0.0, reset=0.0):
    spread = np.linspace(4e-3, 2e-2, n)
    return nir.LIF(
        tau=spread, r=spread / DT * 0.5, v_leak=full(n, leak), v_threshold=full(n, 1.0), v_reset=full(n, reset)
    )


def cuba(n):
    return nir.CubaLIF(
        tau_syn=full(n, 4e-3), tau_mem=full(n, 8e-3), r=full(n, 3.0), v_leak=full(n, 0.0), v_threshold=full(n, 0.5),
        w_in=full(n, 4.0),
    )  # fmt: skip


def chain(*nodes, shape=(INPUTS,)):
    names = [f"n{number}" for number in range(len(nodes))]
    wired = {"input": nir.Input(np.array(shape)), **dict(zip(names, nodes, strict=True))}
    wired["output"] = nir.Output(np.array([CLASSES]))
    order = ["input", *names, "output"]
    return nir.NIRGraph(wired, list(pairwise(order)), type_check=False)


def dense(hidden, last):
    rng = np.random.default_rng(0)
    first = nir.Affine(on_grid(rng, HIDDEN, INPUTS), on_grid(rng, HIDDEN, scale=0.2))
    return chain(first, hidden, nir.Linear(on_grid(rng, CLASSES, HIDDEN)), last)


def looped():
    rng, n = np.random.default_rng(1), HIDDEN
    back = nir.Affine(on_grid(rng, n, n, scale=0.1), full(n, -0.125))
    ends = {"input": nir.Input(np.array([n])), "output": nir.Output(np.array([n]))}
    edges = [("input", "lif"), ("lif", "back"), ("back", "lif"), ("lif", "output")]
    inner = nir.NIRGraph({**ends, "lif": cuba(n), "back": back}, edges, type_check=False)
    return chain(nir.Linear(on_grid(rng, n, INPUTS)), inner, nir.Linear(np.abs(on_grid(rng, CLASSES, n))), lif(CLASSES))


def maps():
    rng = np.random.default_rng(2)
    conv = nir.Conv2d((8, 8), on_grid(rng, 4, 2, 3, 3, scale=0.5), (1, 1), (1, 1), (1, 1), 1, np.zeros(4, np.float32))
    neurons = nir.IF(r=np.ones((4, 8, 8)), v_threshold=np.full((4, 8, 8), 1.0))
    pool = nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0]))
    flat = nir.Flatten({"input": np.array([4, 4, 4])}, 0)
    last = nir.Linear(on_grid(rng, CLASSES, 64, scale=0.2))
    return chain(conv, neurons, pool, flat, last, nir.IF(full(CLASSES, 1.0), full(CLASSES, 4.0)), shape=(2, 8, 8))


def late():
    """The input's channels each have a delay of their own, the hidden neurons all the same."""
    rng = np.random.default_rng(3)
    first = nir.Affine(on_grid(rng, HIDDEN, INPUTS), on_grid(rng, HIDDEN, scale=0.2))
    second = nir.Linear(on_grid(rng, CLASSES, HIDDEN))
    of_input, of_hidden = nir.Delay(np.arange(INPUTS) % 4 * DT), nir.Delay(full(HIDDEN, 5 * DT))
    return chain(of_input, first, lif(HIDDEN), of_hidden, second, lif(CLASSES))


def integrating():
    """A leaky integrator between two layers of weights, which have biases."""
    rng = np.random.default_rng(4)
    first, second = (
        nir.Affine(on_grid(rng, 6, INPUTS), on_grid(rng, 6)),
        nir.Affine(on_grid(rng, HIDDEN, 6), full(HIDDEN, 0.25)),
    )
    inner = nir.LI(full(6, 8e-3), full(6, 2.0), full(6, 0.0))
    return chain(first, inner, second, lif(HIDDEN), nir.Linear(on_grid(rng, CLASSES, HIDDEN)), lif(CLASSES))


def late_maps():
    """Channels of a map with delays of their own, before a convolution."""
    graph = maps()
    delay = nir.Delay(np.full((2, 8, 8), DT) * np.array([3, 1]).reshape(2, 1, 1))
    edges = [("input", "d"), ("d", "n0"), *(edge for edge in graph.edges if edge != ("input", "n0"))]
    return nir.NIRGraph({**graph.nodes, "d": delay}, edges, type_check=False)


GRAPHS = {
    "lif": lambda: dense(lif(HIDDEN), lif(CLASSES)),
    "leak and reset": lambda: dense(lif(HIDDEN, leak=0.125, reset=-0.25), lif(CLASSES)),
    "cuba": lambda: dense(cuba(HIDDEN), cuba(CLASSES)),
    "threshold": lambda: dense(nir.Threshold(full(HIDDEN, 1.0)), lif(CLASSES)),
    "integrator": lambda: dense(lif(HIDDEN), nir.LI(full(CLASSES, 1e-2), full(CLASSES, 2.0), full(CLASSES, 0.0))),
    "recurrent": looped,
    "maps": maps,
    "integrator between weights": integrating,
    "delays": late,
    "delays of maps": late_maps,
}


@pytest.fixture
def written(tmp_path):
    def write(graph):
        path = tmp_path / "network.nir"
        nir.write(path, graph)
        return path

    return write


@pytest.mark.parametrize("name", list(GRAPHS))
def test_every_spike_is_that_of_the_equations(name, written):
    source = nir_source(written(GRAPHS[name]()), DT)
    ours = DescribedNetwork([layer.as_table() for layer in source.plan.layers], variant("sg-nbn-1"))
    ours = fill(ours, source.plan).eval()
    shape = source.plan.shapes["input"]
    x = (torch.rand(400, 4, *shape, generator=torch.Generator().manual_seed(1)) < 0.15).float()
    seen = source.observe(x)
    found = compare(name, seen, of_network(ours, x), "the layers differ")
    rates = {layer: float(spikes.mean()) for layer, spikes in seen.spikes.items()}
    assert all(0.005 < rate < 0.95 for rate in rates.values()), rates
    assert found.first is None or found.first.reason.startswith("rounding"), found.first


def test_a_whole_import_is_equal_with_the_files_weights(written, tmp_path):
    done = import_network(written(GRAPHS["recurrent"]()), tmp_path / "r.onnx", dt=DT, samples=16)
    assert done.proof.equal
    assert done.proof.same_weights.spikes_differing == 0, done.proof.lines()
    assert any("Δt = 0.001" in note for note in done.notes)


def test_time_constants_need_a_time_step(written):
    with pytest.raises(AxonnxError, match="give the time step") as refusal:
        nir_source(written(GRAPHS["lif"]()), None)
    assert refusal.value.options == ("dt",)


def test_a_time_step_longer_than_a_time_constant_is_refused(written):
    with pytest.raises(AxonnxError, match="shorter than the time constant"):
        nir_source(written(GRAPHS["lif"]()), 1.0)


def _late(number, node):
    """A delay in one place of late()."""
    graph = late()
    graph.nodes[f"n{number}"] = node
    return graph


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (lambda: _late(3, nir.Delay(full(HIDDEN, 1.5 * DT))), "n3: a delay of 0.0015 s is no whole number of time"),
        (lambda: _late(5, nir.Delay(full(CLASSES, DT))), "n5: delays a current; delay the spikes before the weights"),
        (lambda: chain(nir.Delay(np.arange(4) * DT), shape=(CLASSES,)), "n0: delays that differ .* need weights"),
    ],
)
def test_other_delays_are_refused_by_name(graph, text, written):
    with pytest.raises(AxonnxError, match=text):
        nir_source(written(graph()), DT)


def test_what_has_no_exact_form_is_refused_by_name(written, monkeypatch):
    monkeypatch.setattr("axonnx.export.convert.nir_source.WEIGHTS", ("Affine",))
    with pytest.raises(AxonnxError, match="n2: a node of the kind Linear has no exact form here; known are Affine"):
        nir_source(written(dense(lif(HIDDEN), lif(CLASSES))), DT)


def test_an_integrator_between_weights_leaks_for_all_alike_and_feeds_them_alone(written):
    graph = integrating()
    graph.nodes["n1"] = nir.LI(np.linspace(4e-3, 8e-3, 6), full(6, 1.0), full(6, 0.0))
    with pytest.raises(AxonnxError, match=r"n1: its (gain|decay) differs from neuron to neuron"):
        nir_source(written(graph), DT)
    graph = integrating()
    nodes = {**graph.nodes, "side": nir.Linear(on_grid(np.random.default_rng(5), HIDDEN, 6))}
    beside = nir.NIRGraph(nodes, [*graph.edges, ("n1", "side"), ("side", "n3")], type_check=False)
    with pytest.raises(AxonnxError, match="an integrator between weights has them alone behind it"):
        nir_source(written(beside), DT)


def test_the_files_weights_go_back_through_an_integrator(written, tmp_path):
    done = import_network(written(integrating()), tmp_path / "i.onnx", dt=DT, samples=8, steps=20)
    assert done.proof.equal, done.proof.lines()
    assert any("stands in the weights before 'n1'" in note for note in done.notes)
    assert verify_file(tmp_path / "i.onnx", done.folder, samples=2, limit=4, recordings=2).verdict == "equal"


def subtracting(reset_delay=True):
    """A network of snnTorch whose spikes subtract, and the file that snnTorch makes of it, which does not say so."""
    snntorch = pytest.importorskip("snntorch", reason="snnTorch is not installed")
    rng, beta = np.random.default_rng(6), 0.75
    first, second = (
        nir.Affine(on_grid(rng, HIDDEN, INPUTS), on_grid(rng, HIDDEN)),
        nir.Affine(on_grid(rng, CLASSES, HIDDEN), on_grid(rng, CLASSES)),
    )
    tau = DT / (1 - beta)
    neurons = [nir.LIF(full(n, tau), full(n, tau / DT), full(n, 0.0), full(n, 1.0)) for n in (HIDDEN, CLASSES)]
    layers = []
    for affine in (first, second):
        layers.append(torch.nn.Linear(affine.weight.shape[1], affine.weight.shape[0]))
        layers[-1].weight.data, layers[-1].bias.data = torch.tensor(affine.weight), torch.tensor(affine.bias)
        layers.append(snntorch.Leaky(beta=beta, init_hidden=True))
    return chain(first, neurons[0], second, neurons[1]), torch.nn.Sequential(*layers)


@pytest.mark.parametrize(
    ("assumed", "verdict"),
    [
        ({"reset": "late-subtract"}, "equal"),
        ({}, "different"),
        ({"reset": "subtract"}, "different"),
        ({"reset": "late-zero"}, "different"),
        ({"reset": "late-subtract", "tie": "fires"}, "different"),
    ],
)
def test_a_witness_shows_whether_the_assumed_reset_is_the_networks(assumed, verdict, written, tmp_path):
    graph, network = subtracting()
    path, how = written(graph), {"dt": DT, "samples": 16, "steps": 20, **assumed}
    alone = import_network(path, tmp_path / "alone.onnx", **how)
    assert alone.proof.verdict == "equal to NIR's equations"
    assert any(f"reset {assumed.get('reset', 'value')}: a spike " in note for note in alone.notes)
    beside = import_network(path, tmp_path / "beside.onnx", witness=network, **how)
    assert beside.proof.verdict == verdict, beside.proof.lines()
    source = torch_source(network, (1, 1, INPUTS))
    x = (torch.rand(20, 6, 1, 1, INPUTS, generator=torch.Generator().manual_seed(2)) < 0.4).float()
    seen = source.observe(x)
    data = {
        name: spikes.swapaxes(0, 1).numpy() for name, spikes in zip(("n1", "n3"), seen.spikes.values(), strict=True)
    }
    data["input"] = x.flatten(2).swapaxes(0, 1).numpy()
    np.savez(tmp_path / "seen.npz", **data)
    gridded = {name: nir.TimeGriddedData(value > 0, DT) for name, value in data.items()}
    parts = {name: nir.NIRNodeData({"spikes": each.to_event(400)}) for name, each in gridded.items()}
    nir.write_data(tmp_path / "seen.nir", nir.NIRGraphData(parts))
    recorded_verdict = "equal but for rounding" if assumed.get("tie") else verdict  # a tie may be a rounding there
    for name in ("seen.npz", "seen.nir"):
        found = import_network(path, tmp_path / "r.onnx", witness=tmp_path / name, overwrite=True, **how)
        assert found.proof.verdict == recorded_verdict, found.proof.lines()


def test_a_witness_of_another_network_is_refused(written, tmp_path):
    graph, network = subtracting()
    with pytest.raises(AxonnxError, match=r"has 1 layers of weights \(.*\), the file 2"):
        import_network(written(graph), tmp_path / "x.onnx", dt=DT, witness=network[:2])
    np.savez(tmp_path / "seen.npz", input=np.zeros((2, 5, INPUTS)))
    with pytest.raises(AxonnxError, match="has no spikes of 'n1'; it has input"):
        import_network(written(graph), tmp_path / "x.onnx", dt=DT, witness=tmp_path / "seen.npz")
    with pytest.raises(AxonnxError, match="witness is for NIR files"):
        import_network(network, tmp_path / "x.onnx", witness=network)


def test_a_weight_that_is_no_number_is_refused_by_place(written):
    graph = GRAPHS["lif"]()
    graph.nodes["n2"].weight[0, 0] = np.nan
    with pytest.raises(AxonnxError, match="n2: 1 of its 40 weights are NaN or infinite"):
        nir_source(written(graph), DT)


def test_silence_is_searched_out_of_and_otherwise_not_proved(written, tmp_path):
    """A layer that random events leave silent fires on an input that is found; one that never can is not proved."""
    rng = np.random.default_rng(7)
    weights = np.abs(on_grid(rng, HIDDEN, INPUTS)) * np.where(np.arange(INPUTS) % 2, 1.0, -1.0)
    deep = [
        nir.Linear(np.float32(weights)),
        lif(HIDDEN),
        nir.Linear(np.abs(on_grid(rng, CLASSES, HIDDEN))),
        lif(CLASSES),
    ]
    deep[1].v_threshold = full(HIDDEN, 12.0)
    path, how = written(chain(*deep)), {"dt": DT, "samples": 4, "steps": 10}
    found = import_network(path, tmp_path / "deep.onnx", **how).proof
    assert found.verdict.startswith("equal to NIR's equations"), found.lines()
    deep[1].v_threshold = full(HIDDEN, 1000.0)
    found = import_network(written(chain(*deep)), tmp_path / "silent.onnx", **how).proof
    assert (found.verdict, found.equal) == ("not proved", False)
    assert [layer.lacking for layer in found.reached] == ["never fired", "never fired"]
    assert all(layer.crafted_ties for layer in found.reached)


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "x.nir").write_bytes(b"no")
    with pytest.raises(AxonnxError, match=r"x.nir: h5py cannot read it"):
        nir_source(tmp_path / "x.nir", DT)
