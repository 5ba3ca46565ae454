"""Bias and variance of gradient estimators on networks so small that the truth is a sum over all spike patterns.

What is estimated is the gradient g of the expected loss by the currents of the first layer, the farthest from the
loss. For straight-through estimators nothing is sampled: E[ĝ] = Σ_o p(o) ĝ(o) and E[‖ĝ‖²] = Σ_o p(o) ‖ĝ(o)‖², each
pattern o made by noise that no membrane resists. The unbiased references need more than one pass, and are sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.models import BinaryNetwork, BinaryNeuron, Current, LinearReadout, Replay, Run, Variant
from axonnx.models.maths.estimators import Estimator, StraightThrough, make_estimator
from axonnx.train.shared_records import Job, Record
from experiments.measures.references import arm, exact_gradient, log_probability, ram, reinforce

REFERENCES: dict[str, Callable[..., dict[str, Tensor]]] = {"reinforce": reinforce, "arm": arm, "ram": ram}
INPUTS = 3
FIRST = "layers.0.bias"
STRONG = 1e6  # noise that decides, whatever the membrane


class FixedNoise(BinaryNetwork):
    """Dense layers whose neurons have unit noise whatever their input: the paper's F(h) = Φ(h/σ)."""

    def __init__(self, sizes: list[int], estimator: Estimator, scale: float, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.neurons = nn.ModuleList(BinaryNeuron(Variant(estimator=estimator)) for _ in self.layers)
        self.readout = LinearReadout(sizes[-1], 2)
        self.offset: Tensor | None = None  # added to the first layer's currents, so that each sample has a gradient
        for name, parameter in self.layers.named_parameters():
            nn.init.normal_(parameter, std=0.3 * scale if name.endswith("bias") else scale)
        self.double()

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Currents with unit noise, layer by layer."""
        for number, (layer, neuron) in enumerate(zip(self.layers, self.neurons, strict=True)):
            h = layer(x)
            if number == 0 and self.offset is not None:
                h = h + self.offset
            x = neuron(Current(h, torch.ones_like(h)), run)
        logits: Tensor = self.readout(x, run)
        return logits


def measure(job: Job, runs: Path) -> Record:
    """Every depth and scale of the options, on a network drawn from the seed."""
    options = job.options
    points = [_point(options, depth, scale, job.seed) for depth in options["depths"] for scale in options["scales"]]
    cosines = [point["cosine_of_one"] or 0.0 for point in points]
    return {"options": options, "points": points, "cosine_of_one": sum(cosines) / len(cosines)}


def _point(options: dict[str, Any], depth: int, scale: float, seed: int) -> dict[str, float | None]:
    name = options["estimator"]["name"]
    chosen = {key: value for key, value in options["estimator"].items() if key != "name"}
    estimator = StraightThrough() if name in REFERENCES else make_estimator(name, **chosen)
    network = FixedNoise([INPUTS] + depth * [options["width"]], estimator, scale, seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((1, INPUTS), generator=generator, dtype=torch.float64)
    exact = exact_gradient(network, x, cross_entropy)[FIRST]
    estimates, weights, square = all_estimates(network, x)
    if name in REFERENCES:
        estimates = sampled_estimates(REFERENCES[name], network, x, options["samples"], seed)
        weights = torch.full((len(estimates),), 1 / len(estimates), dtype=torch.float64)
    found = compare(estimates, weights, exact)
    if name in REFERENCES:  # unbiased: what a mean of draws differs from the truth by is variance
        found = {**found, "bias": None, "cosine": None}
    return {"depth": depth, "scale": scale, "square": square, **found}


def compare(estimates: Tensor, weights: Tensor, exact: Tensor) -> dict[str, float | None]:
    """Relative bias ‖E[ĝ] − g‖/‖g‖, relative variance E‖ĝ − E[ĝ]‖²/‖g‖², and cosines of E[ĝ] and of one ĝ with g."""
    mean = weights @ estimates
    scatter = weights @ (estimates - mean).square().sum(1)
    norm = exact.norm()
    lengths = estimates.norm(dim=1).clamp(min=1e-300)
    return {
        "bias": float((mean - exact).norm() / norm),
        "variance": float(scatter / norm**2),
        "cosine": float(mean @ exact / (mean.norm().clamp(min=1e-300) * norm)),
        "cosine_of_one": float(weights @ ((estimates @ exact) / (lengths * norm))),
    }


def all_estimates(network: FixedNoise, x: Tensor) -> tuple[Tensor, Tensor, float]:
    """ĝ(o) [2ⁿ, n₁] and p(o) [2ⁿ] of every spike pattern o, and E[(h/σ)²], mean over the neurons."""
    sizes = {name: seen.spikes.shape[1] for name, seen in network(x).observations.items()}
    neurons = sum(sizes.values())
    patterns = ((torch.arange(2**neurons)[:, None] >> torch.arange(neurons)) & 1).double()
    wanted = dict(zip(sizes, patterns.split(list(sizes.values()), dim=1), strict=True))
    network.offset = torch.zeros((len(patterns), next(iter(sizes.values()))), dtype=torch.float64, requires_grad=True)
    forced = Replay({name: STRONG * (2 * o - 1) for name, o in wanted.items()})
    output = network(x.expand(len(patterns), -1), forced)
    (estimates,) = torch.autograd.grad(cross_entropy(output.logits).sum(), network.offset)
    p = log_probability(output).exp().detach()
    squares = torch.cat([seen.gap.square() for seen in output.observations.values()], 1).detach()
    network.offset = None
    return estimates, p, float((p @ squares).mean())


def sampled_estimates(
    reference: Callable[..., dict[str, Tensor]], network: FixedNoise, x: Tensor, samples: int, seed: int
) -> Tensor:
    """Gradients of an unbiased reference, one draw each."""
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([reference(network, x, cross_entropy, generator)[FIRST] for _ in range(samples)])


def cross_entropy(logits: Tensor) -> Tensor:
    """Of class 0, for each sample."""
    return nnf.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64), reduction="none")
