"""What the regulariser is taken over, layer by layer, and how layers add up to one term of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from axonnx.models.maths.kl import Form, divergence_sum
from axonnx.models.maths.posterior import GaussianPosterior
from axonnx.models.run import Observation

if TYPE_CHECKING:
    from axonnx.models.network import Network, Output

Over = Literal["neuron", "current", "weight"]


class LayerTerm(NamedTuple):
    """A layer's sum for one sample, and over how many ratios (neurons × positions × steps, or weights) it goes."""

    value: Tensor
    ratios: int


@dataclass(frozen=True)
class Regulariser:
    """Σ_l λ_l Σ_i g(r_i), with g(r) = r² (``quadratic``) or ½ ln(1 + r²) (``log``).

    ``of`` says what r is: z = (h* − θ)/κ at every ``neuron`` and step, I/κ_I of the ``current`` that reaches it
    (the network must have ``keeps_currents`` set), or m/σ of every ``weight``. ``total``: with ``mean`` the sum is
    divided by the number of ratios in the whole network, so that λ means the same for every size; ``sum`` is the
    paper's.
    """

    form: Form = "quadratic"
    of: Over = "neuron"
    total: Literal["mean", "sum"] = "mean"

    def __call__(self, network: Network, output: Output) -> Tensor:
        """Return the term of the loss before its weight λ."""
        return self.added(self.terms(network, output), output.logits)

    def added(
        self, terms: Mapping[str, LayerTerm], like: Tensor, weights: Mapping[str, float | Tensor] | None = None
    ) -> Tensor:
        """Add up all layers, each with a λ of its own if ``weights`` are given."""
        if not terms:
            return like.new_zeros(())
        values = [
            term.value if weights is None else _weighted(weights[name], term.value) for name, term in terms.items()
        ]
        total = torch.stack(values).sum()
        return total / sum(term.ratios for term in terms.values()) if self.total == "mean" else total

    def terms(self, network: Network, output: Output) -> dict[str, LayerTerm]:
        """Return the sum of each layer that has noise."""
        return self._terms(network, output, self.form)

    @torch.no_grad()
    def mean_squares(self, network: Network, output: Output) -> dict[str, Tensor]:
        """Return the mean of r² in each layer."""
        return {name: term.value / term.ratios for name, term in self._terms(network, output, "quadratic").items()}

    def _terms(self, network: Network, output: Output, form: Form) -> dict[str, LayerTerm]:
        if self.of == "weight":
            return _of_weights(network, form)
        return _of_neurons(output, form) if self.of == "neuron" else _of_currents(output, form)


def _weighted(weight: float | Tensor, value: Tensor) -> Tensor:
    """λ · value, with the bits of a λ that is a number."""
    return (weight.to(value.dtype) if isinstance(weight, Tensor) else weight) * value


def _of_neurons(output: Output, form: Form) -> dict[str, LayerTerm]:
    batch = output.logits.shape[0]
    found: dict[str, LayerTerm] = {}
    for name, seen in output.observations.items():
        if seen.noisy:
            known = output.divergences.get(name)
            total = _divergence(seen, form) if known is None else known.of(form)
            found[name] = LayerTerm(total / batch, seen.spikes.numel() // batch)
    return found


def _divergence(seen: Observation, form: Form) -> Tensor:
    assert seen.variance is not None, "asked of layers with noise"
    return divergence_sum(seen.gap, seen.variance, form)


def _of_currents(output: Output, form: Form) -> dict[str, LayerTerm]:
    if output.currents is None:
        raise ValueError("a regulariser of currents needs a network that keeps them: set network.keeps_currents = True")
    batch = output.logits.shape[0]
    return {
        name: LayerTerm(divergence_sum(current.mean, variance, form) / batch, current.mean.numel() // batch)
        for name, current in output.currents.items()
        if (variance := current.variance) is not None
    }


def _of_weights(network: Network, form: Form) -> dict[str, LayerTerm]:
    """Return the terms of m/σ of all weights that exist."""
    posteriors = {name: part for name, part in network.named_modules() if isinstance(part, GaussianPosterior)}
    return {
        name: LayerTerm(divergence_sum(part.mean, part.variance, form), part.existing)
        for name, part in posteriors.items()
        if part.log_std is not None
    }
