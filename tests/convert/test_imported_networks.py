"""Networks of other libraries beside what they become: every spike over long random input, ties among them."""

import pytest
import torch

from axonnx.convert.importing import fill
from axonnx.convert.proof import compare, of_network
from axonnx.convert.source import torch_source
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
    if CASES[name].exact:
        assert found.spikes_differing == 0, found.first
        assert found.decisions_differing == 0
    else:
        assert found.first is None or found.first.reason.startswith("rounding"), found.first
