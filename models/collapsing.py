"""What layers ask for when they become constants: see `axonnx.export.collapse`, which answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor, nn

if TYPE_CHECKING:
    from axonnx.models.maths.posterior import GaussianPosterior
    from axonnx.models.synapses import Synapse


class Choice(Protocol):
    """How a posterior becomes constants."""

    stochastic: bool

    def operator(self, name: str) -> Callable[..., Any]:
        """Return the operator of ``ai.axonnx`` of that name, which keeps its name in a file."""

    def synapse(self, synapse: Synapse, **geometry: Any) -> nn.Module:
        """Make constant weights, with scale and bias in them."""

    def neurons(
        self, operators: Sequence[str], constants: Mapping[str, Tensor], recurrent: GaussianPosterior | None
    ) -> nn.Module:
        """Make neurons of their operators, with constants."""


def hold(module: nn.Module, **values: Tensor) -> None:
    """Make parameters of ``module`` constants."""
    for name, value in values.items():
        delattr(module, name)
        module.register_buffer(name, value.detach().clone())
