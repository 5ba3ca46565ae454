"""The training network with a file's own weights in it: what must give the file's bits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.export.collapse.layers import ConstantSynapse, OperatorNeurons
from axonnx.models import GaussianPosterior, LeakyReadout, LinearReadout, Network
from axonnx.models.collapsing import hold
from axonnx.models.neurons import Neurons
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.synapses import Recurrent, Synapse


@torch.no_grad()
def refill(network: Network, collapsed: Network) -> Network:
    """A copy of ``network`` whose posterior means, scales, biases and thresholds are the collapsed ones.

    Everything else is the training code: its layers, its pass through time, its firing decision.
    """
    filled = copy.deepcopy(network).cpu().float().eval()
    sources = dict(collapsed.named_modules())
    for name, module in list(filled.named_modules()):
        source: Any = sources.get(name)
        if isinstance(module, Synapse):
            _synapse(module, source)
        elif isinstance(module, Neurons):
            hold(module, threshold=source.threshold)
            if module.recurrent is not None and source.recurrent_weight is not None:
                module.recurrent.posterior.raw_mean.copy_(source.recurrent_weight)
                module.recurrent = _FileRecurrent(module.recurrent, source)
        elif isinstance(module, LeakyReadout | LinearReadout):
            module.weight.copy_(source.weight)
            module.bias.copy_(source.bias)
    return filled


def _synapse(module: Synapse, source: ConstantSynapse) -> None:
    """Weights that hold the scale already go with a scale of one; batch norm through time stays as it is."""
    if isinstance(module.norm, BatchNorm) and module.norm.steps is None:
        module.norm = ChannelScale(len(source.weight))
    if isinstance(module.norm, ChannelScale) and source.bias is not None:
        module.norm.scale.fill_(1.0)
        module.norm.bias.copy_(source.bias)
    module.posterior.raw_mean.copy_(source.weight)
    if source.gain is not None or source.spread is not None:
        module.posterior = _FilePosterior(module.posterior, source)


class _FilePosterior(GaussianPosterior):
    """A posterior whose variances are the file's a² σ², which hold the scale too."""

    def __init__(self, posterior: GaussianPosterior, source: ConstantSynapse) -> None:
        super().__init__(tuple(posterior.raw_mean.shape), posterior.granularity, posterior.spread)
        self.load_state_dict(posterior.state_dict())
        self._gain, self._spread = source.gain, source.spread

    def shared_gain(self, scale: Tensor | None = None) -> Tensor | None:
        """The file's gain."""
        return self._gain

    def noise_of(
        self, product: Callable[[Tensor, Tensor], Tensor], x: Tensor, scale: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """By the file's gain, or by its variances of single weights."""
        if self._spread is not None:
            return product(x.square(), self._spread), None
        return product(x.square(), torch.ones_like(self.raw_mean[:1])), self._gain


class _FileRecurrent(Recurrent):
    """Recurrent synapses with the file's variances, where it has some."""

    def __init__(self, recurrent: Recurrent, source: OperatorNeurons) -> None:
        nn.Module.__init__(self)
        self.posterior = recurrent.posterior
        filled = source.recurrent_gain if source.recurrent_spread is None else source.recurrent_spread
        self._variance = super().weights()[1] if filled is None else filled

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """Means and variances of the file."""
        return self.posterior.mean, self._variance
