"""The same recurrent network in other libraries, as far as they are installed, held to the spikes of our file.

Their neurons take the threshold off at once, so that what was taken off decays with the rest; ours at the next step:

    theirs  h[t] = β·(h[t−1] − θ·o[t−1]) + I[t]          ours  h[t] = β·h[t−1] + I[t] − θ·o[t−1]

The difference, (1−β)·θ·o[t−1], is a connection of each neuron to itself. It stands on the diagonal of their recurrent
weights, which is zero in ours, and costs them nothing. Membranes are then rounded differently, so spikes are counted
instead of bits compared: a membrane next to its threshold may go the other way.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.export.collapsed import Collapsed

FORMS = {"Spyx": "spyx", "snnTorch": "snntorch", "sinabs": "sinabs", "Norse": "norse", "SpikingJelly": "spikingjelly"}
TOLERATED = 1e-3  # share of spikes that may go the other way
ROUNDING = 1e-5  # of logits, where all spikes are the same


@dataclass(frozen=True)
class Layer:
    """A recurrent layer's numbers, for neurons that reset at once."""

    synapse: nn.Linear
    recurrent: Tensor
    decay: float
    threshold: float


@dataclass(frozen=True)
class Peer:
    """A library's network: logits, and the spikes [T, B, neurons] of each hidden layer, from [T, B, inputs]."""

    name: str
    logits: Callable[[Tensor], Tensor]
    spikes: Callable[[Tensor], list[Tensor]]


def layers(collapsed: Collapsed, scale: Callable[[float], float] = lambda decay: 1.0) -> list[Layer]:
    """The hidden layers; ``scale`` says by what a library multiplies currents, for weights that undo it."""
    network: Any = collapsed.network
    found = []
    for layer in network.hidden:
        decay, threshold = float(layer.neuron.decay), float(layer.neuron.threshold.max())
        own = (1 - decay) * threshold * torch.eye(len(layer.neuron.recurrent_weight))
        recurrent, factor = layer.neuron.recurrent_weight - own, scale(decay)
        found.append(Layer(linear(layer.synapse, factor), recurrent / factor, decay, threshold))
    return found


def linear(synapse: Any, factor: float = 1.0) -> nn.Linear:
    """A torch layer with a synapse's weights, divided by ``factor``."""
    made = nn.Linear(synapse.weight.shape[1], synapse.weight.shape[0])
    made.weight.data.copy_(synapse.weight / factor)
    made.bias.data.copy_(synapse.bias / factor)
    return made.requires_grad_(False)


def installed(collapsed: Collapsed, example: Tensor) -> tuple[list[Peer], list[str]]:
    """The peers that can be imported, each in its best form, and what is to be said of the others."""
    found, absent = [], []
    for name, module in FORMS.items():
        try:
            form = import_module(f"benchmarks.peers.{module}_form")
        except ImportError as fault:
            absent.append(f"{name} ({fault})")
            continue
        for title, network in getattr(form, "FORMS", {name: form.Network}).items():
            made = network(collapsed).eval()
            titled = f"{name} {version(module)}{title.removeprefix(name)}"
            found.append(_fastest(titled, made, example) if isinstance(made, nn.Module) else _as_it_is(titled, made))
    return found, absent


def _as_it_is(name: str, network: Any) -> Peer:
    return Peer(name, torch.inference_mode()(network), torch.inference_mode()(network.spikes))


def _fastest(name: str, network: nn.Module, example: Tensor) -> Peer:
    """The network as it is, or traced and frozen where that works and is faster."""
    plain = _as_it_is(name, network)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        try:
            traced: Any = torch.jit.freeze(torch.jit.trace(network, example, check_trace=False).eval())
            changed = example.roll(1, -1)  # nothing of one input must be in the trace
            same = torch.allclose(traced(changed), plain.logits(changed), atol=ROUNDING)
        except Exception:  # what cannot be traced is timed as it is
            return plain
        for _ in range(3):  # torch compiles a trace while it is first used
            traced(example)
    if not same or _seconds(traced, example) > _seconds(network, example):
        return plain
    return Peer(f"{name}, traced", torch.inference_mode()(traced), plain.spikes)


@torch.inference_mode()
def _seconds(network: Callable[[Tensor], Tensor], x: Tensor) -> float:
    times = []
    for _ in range(5):
        began = time.process_time()
        network(x)
        times.append(time.process_time() - began)
    return min(times)


@torch.no_grad()
def check(peer: Peer, x: Tensor, ours: list[Tensor], logits: Tensor) -> str:
    """What a peer's results have in common with our file's; more than a few differences are a fault of the form."""
    wrong = sum(int((a != b).sum()) for a, b in zip(peer.spikes(x), ours, strict=True))
    spikes = sum(int(layer.sum()) for layer in ours)
    off = float((peer.logits(x) - logits).abs().max())
    assert spikes, "our file is silent here: nothing to compare"
    assert wrong <= TOLERATED * spikes, f"{peer.name}: {wrong} of {spikes} spikes differ"
    assert wrong or off <= ROUNDING, f"{peer.name}: all spikes are the same, but logits are off by {off}"
    return f"{peer.name}: {wrong} of {spikes:,} spikes differ, max |Δlogit| {off:.0e}"
