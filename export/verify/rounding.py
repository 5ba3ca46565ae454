"""Weights kept as integers, done to the training network plainly: fold, round, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from axonnx.export.verify.expected import fold, over_rows, through_time
from axonnx.models import LeakyReadout, LinearReadout, Network
from axonnx.models.neurons import Neurons
from axonnx.models.normalisation import ChannelScale
from axonnx.models.synapses import Synapse


def round_weights(network: Network, grids: Mapping[str, int]) -> None:
    """w ← round(w · 2^s) · 2^−s of every weight and bias, scale and bias folded in."""

    def rounded(value: Tensor, weight: str) -> Tensor:
        return torch.round(value * 2.0 ** grids[weight]) * 2.0 ** -grids[weight]

    for name, module in network.named_modules():
        if isinstance(module, Synapse):
            _round_synapse(module, f"{name}.weight", rounded)
        elif isinstance(module, Neurons) and module.recurrent is not None:
            mean = module.recurrent.posterior.raw_mean
            mean.copy_(rounded(mean, f"{name}.recurrent_weight"))
        elif isinstance(module, LeakyReadout | LinearReadout):
            module.weight.copy_(rounded(module.weight, f"{name}.weight"))
            module.bias.copy_(rounded(module.bias, f"{name}.weight"))


def _round_synapse(synapse: Synapse, weight: str, rounded: Callable[[Tensor, str], Tensor]) -> None:
    mean = synapse.posterior.raw_mean
    if through_time(synapse):
        mean.copy_(rounded(mean, weight))
        return
    scale, bias, _ = fold(synapse)
    mean.copy_(rounded(mean * over_rows(scale, mean), weight))
    if bias is not None:
        plain = ChannelScale(len(mean)).double().requires_grad_(False)
        plain.bias.copy_(rounded(bias, weight))
        synapse.norm = plain
    if synapse.posterior.log_std is not None:
        log_std = synapse.posterior.log_std.expand_as(mean) + torch.log(over_rows(scale, mean).abs())
        synapse.posterior.granularity = "weight"
        synapse.posterior.log_std = nn.Parameter(log_std, requires_grad=False)
