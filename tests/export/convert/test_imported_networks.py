"""Networks of other libraries beside what they become: every spike over long random input, ties among them."""

from dataclasses import replace

import pytest
import torch

from axonnx.export.convert import known_neurons
from axonnx.export.convert.importing import fill
from axonnx.export.convert.proof import compare, of_network, unexplained
from axonnx.export.convert.source import torch_source
from axonnx.models import variant
from axonnx.models.described import DescribedNetwork

from .foreign import CASES, CLASSES, made

STEPS, BATCH = 300, 4


def imported(name):
    network, shape = made(name)
    source = torch_source(network, shape)
    ours = DescribedNetwork([layer.as_table() for layer in source.plan.layers], variant("sg-nbn-1"))
    return source, fill(ours, source.plan).eval(), shape


def events(shape, steps=STEPS):
    drawn = torch.rand(steps, BATCH, *shape, generator=torch.Generator().manual_seed(1))
    rates = torch.tensor([0.02, 0.1, 0.3, 0.5]).reshape(1, BATCH, 1, 1, 1)
    frames = (drawn < rates).float()
    frames[100:130] = 0.0
    return frames


@pytest.mark.parametrize("name", list(CASES))
def test_every_spike_is_the_sources(name):
    source, ours, shape = imported(name)
    x = events(shape)
    seen = source.observe(x)
    found = compare(name, seen, of_network(ours, x), "the layers differ")
    rates = {layer: float(spikes.mean()) for layer, spikes in seen.spikes.items()}
    assert all(0.005 < rate < 0.95 for rate in rates.values()), rates
    assert seen.outputs.shape == (STEPS, BATCH, CLASSES)
    assert unexplained(ours, seen, x) == 0
    if CASES[name].exact:
        assert found.spikes_differing == 0, found.first
        assert found.decisions_differing == 0
    else:
        assert found.first is None or found.first.reason.startswith("rounding"), found.first


def read_as(library, **changes):
    """The libraries, of which one is read wrongly."""
    kinds, read = known_neurons.LIBRARIES[library]
    return {**known_neurons.LIBRARIES, library: (kinds, lambda *given: replace(read(*given), **changes))}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("spikingjelly-leaky_by_halves", {"gain": 1.0}),
        ("snntorch-synaptic", {"synaptic_decay": None}),
        ("snntorch-recurrent_leaky", {"bias": None}),
        ("norse-cells_with_currents", {"taken": 0.0}),
        ("norse-box_cells", {"decay": 0.745}),
    ],
)
def test_a_layer_that_is_read_wrongly_is_no_rounding(name, changes, monkeypatch):
    monkeypatch.setattr(known_neurons, "LIBRARIES", read_as(name.partition("-")[0], **changes))
    source, ours, shape = imported(name)
    x = events(shape)
    assert unexplained(ours, source.observe(x), x) > 0


def test_a_module_is_read_as_its_last_pass_left_it():
    """Membranes of a training step belong to its graph, which cannot be copied."""
    snntorch = pytest.importorskip("snntorch")
    network = torch.nn.Sequential(torch.nn.Linear(6, 4), snntorch.Leaky(beta=0.9, init_hidden=True))
    sum(network(step) for step in torch.ones(3, 2, 6)).sum().backward()
    kept = network[1].mem
    source = torch_source(network, (1, 1, 6))
    assert "neurons" in [layer.kind for layer in source.plan.layers]
    assert network[1].mem is kept
    assert kept.grad_fn is not None
