"""Calibration: thresholds moved so that the deterministic network fires as often as the noisy one did.

Without its noise a network that was trained by sampling fires less, and the next layer sees another input than it
learned on. Layer by layer, in the order of the pass, each neuron's threshold moves towards the value that its membrane
exceeds as often as the noisy neuron fired. A threshold is also what a spike takes off the membrane, and through
recurrent weights it moves all others: so a step is kept only where it brings the layer's rates closer, is halved where
it does not, and nothing moves where the rates agree as well as they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.models import MEAN_FIELD, Network, Sample, SpikingNetwork
from axonnx.runtime.format.contract import InputContract

SAMPLES = 256  # of the training part
ROUNDS = 12
FIRST_STEP, LAST_STEP = 1.0, 1 / 16  # of the way to the proposed threshold
LEAST = 0.05  # threshold of a spiking neuron
MOST = 200_000  # membranes looked at for one neuron


def calibrated_thresholds(
    network: Network,
    arriving: InputContract,
    settings: CollapseSettings,
    inputs: Sequence[Tensor],
    tell: Callable[[str], None] = lambda _line: None,
) -> dict[str, Tensor]:
    """Find thresholds for ``network`` collapsed as ``settings`` say, which also give the seed of its noise."""
    plain = collapse_network(network, arriving, settings).network
    return calibrate(network, plain, inputs, seed=settings.seed, tell=tell)


@torch.no_grad()
def calibrate(
    noisy: Network,
    deterministic: Network,
    inputs: Sequence[Tensor],
    *,
    passes: int = 4,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _line: None,
) -> dict[str, Tensor]:
    """Return new thresholds for ``deterministic``, one for each neuron or channel; the network keeps them."""
    wanted = firing_rates(noisy, inputs, passes, seed)
    thresholds: dict[str, Tensor] = {}
    for name, rate in wanted.items():
        neuron: Any = deterministic.get_submodule(name)
        _match(deterministic, name, neuron, rate, inputs, passes)
        thresholds[name] = neuron.threshold
        reached = firing_rates(deterministic, inputs, 1, None)[name]
        tell(f"{name}: rate {float(rate.mean()):.4f} with noise, {float(reached.mean()):.4f} calibrated")
    return thresholds


def _match(network: Network, name: str, neuron: Any, rate: Tensor, inputs: Sequence[Tensor], passes: int) -> None:
    """Move one layer's thresholds until its rates are those wanted, or no step brings them closer."""
    membranes, reached, shape = _observed(network, name, inputs)
    neuron.threshold = neuron.threshold.flatten().expand(len(rate)).reshape(shape).clone()
    error, step = float((reached - rate).abs().mean()), FIRST_STEP
    known = float((rate * (1 - rate) / (passes * membranes.shape[1])).sqrt().mean())  # a measured rate's own error
    for _ in range(ROUNDS):
        if error <= known or step < LAST_STEP:
            return
        before = neuron.threshold
        proposed = _threshold_for(membranes, rate, before, isinstance(network, SpikingNetwork))
        neuron.threshold = before + step * (proposed.reshape(shape) - before)
        found, reached, _ = _observed(network, name, inputs)
        if (now := float((reached - rate).abs().mean())) < error:
            membranes, error = found, now
        else:
            neuron.threshold, step = before, step / 2


def _observed(network: Network, name: str, inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Return a layer's membranes [neurons or channels, the rest], its rates, and the shape of its thresholds."""
    seen = [network(x).observations[name] for x in inputs]
    membranes = _thinned(torch.cat([_per_channel(part.gap, network) for part in seen], 1))
    spikes = torch.cat([_per_channel(part.spikes, network) for part in seen], 1)
    spatial = seen[0].gap.dim() - (3 if isinstance(network, SpikingNetwork) else 2)
    return membranes, spikes.mean(1), (-1, *(1,) * spatial)


def firing_rates(network: Network, inputs: Sequence[Tensor], passes: int, seed: int | None) -> dict[str, Tensor]:
    """How often each neuron (or channel) of each layer fires, over all inputs and ``passes`` passes."""
    fire = MEAN_FIELD if seed is None else Sample(torch.Generator().manual_seed(seed))
    totals: dict[str, Tensor] = {}
    counts: dict[str, int] = {}
    for x in inputs:
        for _ in range(passes):
            for name, seen in network(x, fire).observations.items():
                spikes = _per_channel(seen.spikes, network)
                totals[name] = totals.get(name, torch.zeros(())) + spikes.sum(1)
                counts[name] = counts.get(name, 0) + spikes.shape[1]
    return {name: total / counts[name] for name, total in totals.items()}


def _per_channel(values: Tensor, network: Network) -> Tensor:
    """[(T,) B, C, …] as [C, the rest]."""
    axis = 2 if isinstance(network, SpikingNetwork) else 1
    return values.movedim(axis, 0).flatten(1)


def _threshold_for(membranes: Tensor, rate: Tensor, threshold: Tensor, spiking: bool) -> Tensor:
    """Find the value that a share ``rate`` of each neuron's membranes reaches; silent neurons stay silent.

    Halfway between two neighbouring values, so that no membrane lies on the new threshold.
    """
    ordered = membranes.sort(dim=1, descending=True).values
    count = (rate * ordered.shape[1]).round().long()
    inside = count.clamp(1, ordered.shape[1] - 1)[:, None]
    middle = 0.5 * (ordered.gather(1, inside - 1) + ordered.gather(1, inside))[:, 0]
    old = threshold.flatten().expand(len(rate))
    found = torch.where(count > 0, middle, torch.maximum(old, ordered[:, 0] + 1e-3))
    return found.clamp(min=LEAST) if spiking else found  # a reset by a negative threshold would charge the membrane


def _thinned(membranes: Tensor) -> Tensor:
    """At most some hundred thousand values for each neuron; a quantile needs no more."""
    return membranes[:, :: max(1, membranes.shape[1] // MOST)]
