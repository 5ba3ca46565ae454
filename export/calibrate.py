"""Calibration: thresholds moved so that the deterministic network fires as often as the noisy one did.

Without its noise a network that was trained by sampling fires less, and the next layer sees another input than it
learned on. Layer by layer, in the order of the pass, each neuron's threshold is set to the value that its membrane
exceeds as often as the noisy neuron fired; a few rounds each, for a spike's reset changes the membrane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from axonnx.models import MEAN_FIELD, Network, Sample, SpikingNetwork

ROUNDS = 6
LEAST = 0.05  # threshold of a spiking neuron
MOST = 200_000  # membranes looked at for one neuron


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
    """New thresholds for the neurons of ``deterministic``, one for each neuron or channel; it keeps them."""
    wanted = firing_rates(noisy, inputs, passes, seed)
    thresholds: dict[str, Tensor] = {}
    for name, rate in wanted.items():
        neuron: Any = deterministic.get_submodule(name)
        for _ in range(ROUNDS):
            seen = [deterministic(x).observations[name].gap for x in inputs]
            neuron.threshold = _threshold_for(seen, rate, neuron.threshold, deterministic)
        thresholds[name] = neuron.threshold
        reached = firing_rates(deterministic, inputs, 1, None)[name]
        tell(f"{name}: rate {float(rate.mean()):.4f} with noise, {float(reached.mean()):.4f} calibrated")
    return thresholds


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


def _threshold_for(seen: list[Tensor], rate: Tensor, threshold: Tensor, network: Network) -> Tensor:
    """The value that a share ``rate`` of each neuron's membranes reaches; silent neurons stay silent.

    Halfway between two neighbouring values, so that no membrane lies on the new threshold.
    """
    membranes = _thinned(torch.cat([_per_channel(part, network) for part in seen], 1))
    ordered = membranes.sort(dim=1, descending=True).values
    count = (rate * ordered.shape[1]).round().long()
    inside = count.clamp(1, ordered.shape[1] - 1)[:, None]
    middle = 0.5 * (ordered.gather(1, inside - 1) + ordered.gather(1, inside))[:, 0]
    old = threshold.flatten().expand(len(rate))
    found = torch.where(count > 0, middle, torch.maximum(old, ordered[:, 0] + 1e-3))
    if isinstance(network, SpikingNetwork):  # a reset by a negative threshold would charge the membrane
        found = found.clamp(min=LEAST)
    spatial = seen[0].dim() - (3 if isinstance(network, SpikingNetwork) else 2)
    return found.reshape(-1, *(1,) * spatial)


def _thinned(membranes: Tensor) -> Tensor:
    """At most some hundred thousand values for each neuron; a quantile needs no more."""
    return membranes[:, :: max(1, membranes.shape[1] // MOST)]
