"""Unbiased gradients of small binary networks: the truth that estimators are measured against.

All of them leave d E[L] / d parameter in ``.grad``-shaped tensors, one for each parameter of the network. They
cost forward passes: all 2ⁿ spike patterns (``exact``), one (``reinforce``), two for each layer (``arm``) or two
for each neuron (``ram``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from axonnx.models.maths import normal
from axonnx.models.maths.firing import Forced, Sample, decide
from axonnx.models.network import BinaryNetwork, Output
from axonnx.models.run import Observation

Loss = Callable[[Tensor], Tensor]  # logits [B, classes] -> loss of each sample [B]
Gradients = dict[str, Tensor]
MAX_NEURONS = 16


def exact_gradient(network: BinaryNetwork, x: Tensor, loss: Loss) -> Gradients:
    """d/dw Σ_o p(o) L(o) for one input ``x`` [1, …], by enumerating every spike pattern o."""
    return _gradients(network, expected_loss(network, x, loss))


def expected_loss(network: BinaryNetwork, x: Tensor, loss: Loss) -> Tensor:
    """Σ_o p(o) L(o), differentiable in the network's parameters."""
    shapes = _layer_shapes(network, x)
    patterns = _all_patterns(sum(shapes.values()), x)
    spikes = dict(zip(shapes, patterns.split(list(shapes.values()), dim=1), strict=True))
    output = network(x.expand(len(patterns), *x.shape[1:]), Forced(spikes, Sample()))
    return (log_probability(output).exp() * loss(output.logits)).sum()


def log_probability(output: Output) -> Tensor:
    """Ln p(o | input) of the spikes of a pass, for each sample [B]."""
    terms = [_log_probability(seen).flatten(1).sum(1) for seen in output.observations.values()]
    return torch.stack(terms).sum(0)


def reinforce(network: BinaryNetwork, x: Tensor, loss: Loss, generator: torch.Generator) -> Gradients:
    """E[L · d ln p(o)] + E[dL]: the likelihood-ratio gradient, mean over the batch."""
    output = network(x, Sample(generator))
    held = _hold(network, x, output)
    losses = loss(held.logits)
    return _gradients(network, (losses.detach() * log_probability(held) + losses).mean())


def arm(network: BinaryNetwork, x: Tensor, loss: Loss, generator: torch.Generator) -> Gradients:
    """Augment-REINFORCE-merge: for each layer a pair of antithetic passes, in the logits of its neurons.

    d E[L]/d logit = E_u[(L(o = 1[u > 1−F]) − L(o = 1[u < F])) (u − ½)], layers before it as sampled, layers
    after it sampled anew.
    """
    sample = _hold(network, x, network(x, Sample(generator)))
    total = loss(sample.logits).mean()
    for name, seen in sample.observations.items():
        F = _probability(seen)
        u = torch.rand(F.shape, generator=generator, dtype=F.dtype, device=F.device)
        difference = _loss_with(network, x, loss, sample, name, (u > 1 - F).to(F.dtype), generator)
        difference = difference - _loss_with(network, x, loss, sample, name, (u < F).to(F.dtype), generator)
        weight = difference.reshape(-1, *(1,) * (F.dim() - 1)) * (u - 0.5)
        total = total + (weight.detach() * _logit(seen)).sum() / len(x)
    return _gradients(network, total)


def ram(network: BinaryNetwork, x: Tensor, loss: Loss, generator: torch.Generator) -> Gradients:
    """Reparameterisation and marginalisation: E[(L(o_i = 1) − L(o_i = 0)) dF_i] for each neuron i."""
    sample = _hold(network, x, network(x, Sample(generator)))
    total = loss(sample.logits).mean()
    for name, seen in sample.observations.items():
        F = _probability(seen).flatten(1)
        seed = int(torch.randint(2**62, (), generator=generator))
        for i in range(F.shape[1]):
            on = [_with_neuron(seen.spikes, i, value) for value in (1.0, 0.0)]
            # Common random numbers for the layers behind make the difference less noisy.
            fired, silent = (
                _loss_with(network, x, loss, sample, name, spikes, generator.clone_state().manual_seed(seed))
                for spikes in on
            )
            total = total + ((fired - silent).detach() * F[:, i]).sum() / len(x)
    return _gradients(network, total)


def _gradients(network: BinaryNetwork, objective: Tensor) -> Gradients:
    named = dict(network.named_parameters())
    found = torch.autograd.grad(objective, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for (name, parameter), gradient in zip(named.items(), found, strict=True)
    }


def _hold(network: BinaryNetwork, x: Tensor, output: Output) -> Output:
    """Repeat the pass with its spikes as constants, so that only p(o) and the read-out carry gradients."""
    spikes = {name: seen.spikes.detach() for name, seen in output.observations.items()}
    held: Output = network(x, Forced(spikes, Sample()))
    return held


@torch.no_grad()
def _loss_with(
    network: BinaryNetwork,
    x: Tensor,
    loss: Loss,
    sample: Output,
    name: str,
    spikes: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Return the loss of each sample with layer ``name`` forced to ``spikes``, earlier layers as sampled."""
    names = list(sample.observations)
    before = {other: sample.observations[other].spikes for other in names[: names.index(name)]}
    output = network(x, Forced({**before, name: spikes}, Sample(generator)))
    return loss(output.logits)


def _layer_shapes(network: BinaryNetwork, x: Tensor) -> dict[str, int]:
    if x.shape[0] != 1:
        raise ValueError(f"enumeration takes one input; x has a batch of {x.shape[0]}")
    with torch.no_grad():
        observations = network(x, Sample()).observations
    if bad := [name for name, seen in observations.items() if seen.spikes.dim() != 2]:
        raise ValueError(f"enumeration takes dense layers [B, neurons]; layer {bad[0]!r} has another shape")
    sizes = {name: seen.spikes.shape[1] for name, seen in observations.items()}
    if sum(sizes.values()) > MAX_NEURONS:
        raise ValueError(f"{sum(sizes.values())} neurons have 2^{sum(sizes.values())} patterns; at most {MAX_NEURONS}")
    return sizes


def _all_patterns(neurons: int, like: Tensor) -> Tensor:
    """Every 0/1 vector of that length, [2ⁿ, n]."""
    numbers = torch.arange(2**neurons, device=like.device)
    return ((numbers[:, None] >> torch.arange(neurons, device=like.device)) & 1).to(like.dtype)


def _z(seen: Observation) -> tuple[Tensor, Tensor]:
    """Z, and the mask of noisy neurons."""
    if seen.variance is None:
        raise ValueError("a network without a posterior has no firing probabilities")
    z, _, noisy = normal.standardise(seen.gap, seen.variance)
    return z, noisy


def _probability(seen: Observation) -> Tensor:
    """F = Φ(z); of a noiseless neuron what it will do, without a gradient."""
    z, noisy = _z(seen)
    return torch.where(noisy, normal.cdf(z), decide(seen.gap, None, None))


def _logit(seen: Observation) -> Tensor:
    """Ln(F/(1−F)); of a noiseless neuron nothing that a gradient could change."""
    z, noisy = _z(seen)
    return torch.where(noisy, normal.logit_cdf(z), 0.0)


def _log_probability(seen: Observation) -> Tensor:
    """Ln F where a neuron fired, ln(1 − F) where it did not; of a noiseless neuron, certainty or −∞."""
    z, noisy = _z(seen)
    certain = torch.where(seen.spikes == decide(seen.gap, None, None), 0.0, -torch.inf)
    return torch.where(noisy, torch.special.log_ndtr((2.0 * seen.spikes - 1.0) * z), certain)


def _with_neuron(spikes: Tensor, i: int, value: float) -> Tensor:
    changed = spikes.detach().clone()
    changed.flatten(1)[:, i] = value
    return changed
