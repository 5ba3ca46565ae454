"""Our own neurons in a plain torch module, which calls them with a tensor and keeps no state for them."""

from __future__ import annotations

from torch import Tensor, nn

from axonnx.models import MEAN_FIELD, Current, Run, State
from axonnx.models.neurons import Neurons


class StandIn(nn.Module):
    """Neurons of ours that take plain tensors, one time step a call."""

    def __init__(self, neurons: Neurons) -> None:
        super().__init__()
        self.neurons = neurons
        self.state: State | None = None

    def reset(self) -> None:
        """Return to rest."""
        self.state = None

    def forward(self, x: Tensor) -> Tensor:
        """Spikes of the shape of the current ``x``."""
        run = Run(self, MEAN_FIELD, self.state)
        spikes: Tensor = self.neurons(Current(x), run)
        self.state = run.state(1)
        return spikes


def with_stand_ins(network: nn.Module) -> nn.Module:
    """Put a stand-in for each layer of our neurons into ``network``, and return it."""
    if isinstance(network, Neurons):
        return StandIn(network)
    for name, child in list(network.named_children()):
        if not isinstance(child, StandIn):
            setattr(network, name, with_stand_ins(child))
    return network
