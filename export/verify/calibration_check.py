"""Calibrated thresholds against what they are for: rates as with noise, by the training network alone.

Neither the collapse nor the calibration is asked. Layer by layer, in the order of the pass, the mean distance of its
neurons' rates from those with noise is measured with the file's thresholds and without them, and with the threshold
that one plain step proposes: the value that a share of its membranes exceeds which is the noisy neuron's rate. The
file's thresholds must be as good as the better of the two, within what rates are known to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from axonnx.models import MEAN_FIELD, Fire, Network, Sample, SpikingNetwork
from axonnx.models.collapsing import hold
from axonnx.models.neurons import Neurons

CALIBRATED_ON = 256  # samples of the training part
PASSES = 4  # noisy ones
LEAST = 0.05  # of a spiking neuron's threshold
MOST = 100_000  # membranes of a neuron that are looked at


class Rates(NamedTuple):
    """How often each neuron (or channel) fired, of how many steps of all samples."""

    share: Tensor
    counted: int

    @property
    def error(self) -> float:
        """The standard error of such a share, on average."""
        return float((self.share * (1 - self.share) / self.counted).sqrt().mean())

    def distance(self, other: Rates) -> float:
        """Mean over neurons."""
        return float((self.share - other.share).abs().mean())


@torch.no_grad()
def check_calibration(
    network: Network,
    plain: Network,
    thresholds: Mapping[str, Tensor],
    inputs: Sequence[Tensor],
    seed: int,
) -> Iterator[str]:
    """Every layer that is not calibrated.

    ``plain``: the network as the file reduces it, without noise and with the thresholds of training.
    """
    for name, noisy in _rates(network, Sample(torch.Generator().manual_seed(seed)), [*inputs] * PASSES).items():
        neuron = cast(Neurons, plain.get_submodule(name))
        distances = []
        own = neuron.threshold.expand(thresholds[name].shape)
        for threshold in (own, _proposed(plain, name, noisy, inputs), thresholds[name]):
            hold(neuron, threshold=threshold.reshape(thresholds[name].shape))
            distances.append(_rates(plain, MEAN_FIELD, inputs)[name].distance(noisy))  # the file's is last, and stays
        before, one_step, after = distances
        if not after <= max(noisy.error, min(before, one_step)) + noisy.error:
            yield (
                f"layer {name!r}: with the file's thresholds its rates are {after:.4f} from those with noise; without "
                f"calibration {before:.4f}, after one plain step of it {one_step:.4f}"
            )


def _proposed(plain: Network, name: str, noisy: Rates, inputs: Sequence[Tensor]) -> Tensor:
    """θ_i: a share of the membranes of neuron i exceeds it that is its rate with noise; silent ones keep theirs."""
    gaps = torch.cat([_per_channel(plain, plain(x).observations[name].gap) for x in inputs], 1)
    own = cast(Tensor, plain.get_submodule(name).threshold).flatten().expand(len(gaps))
    rows = gaps[:, :: 1 + gaps.shape[1] // MOST].sort().values
    rank = ((1 - noisy.share) * rows.shape[1]).round().long().clamp(max=rows.shape[1] - 1)
    levels = own + rows.gather(1, rank[:, None])[:, 0]
    levels = levels.clamp(min=LEAST) if isinstance(plain, SpikingNetwork) else levels
    return torch.where(noisy.share > 0, levels, own)


def _rates(network: Network, fire: Fire, inputs: Sequence[Tensor]) -> dict[str, Rates]:
    """Of every layer, in the order of the pass."""
    fired: dict[str, Tensor] = {}
    counted: dict[str, int] = {}
    for x in inputs:
        for name, seen in network(x, fire).observations.items():
            spikes = _per_channel(network, seen.spikes)
            fired[name] = fired.get(name, torch.zeros(())) + spikes.sum(1)
            counted[name] = counted.get(name, 0) + spikes.shape[1]
    return {name: Rates(total / counted[name], counted[name]) for name, total in fired.items()}


def _per_channel(network: Network, values: Tensor) -> Tensor:
    """[(T,) B, C, …] as [C, the rest]."""
    return values.movedim(2 if isinstance(network, SpikingNetwork) else 1, 0).flatten(1)
