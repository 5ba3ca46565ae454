"""A network on its way into a file: collapsed, captured and on the sum-exact grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.network import Mode, WeightChoice, collapse, needs_posterior
from axonnx.export.graph.capture import Captured, Member, capture
from axonnx.export.graph.grid import (
    DEFAULT_WEIGHTS,
    INTEGER_NETWORKS,
    Stored,
    put_on_grid,
    split_activities,
    width_of,
)
from axonnx.export.graph.integers import to_integers
from axonnx.export.graph.translate import check_operators
from axonnx.models import Network
from axonnx.runtime.format.contract import (
    InputContract,
    SynapseContract,
)
from axonnx.runtime.format.names import INPUT


@dataclass(frozen=True)
class CollapseSettings:
    """How a posterior is collapsed."""

    mode: Mode = "mfa"
    members: int = 1
    seed: int = 0
    prune: float | None = None
    weights: Stored = DEFAULT_WEIGHTS

    def __post_init__(self) -> None:
        if self.members < 1 or (self.members > 1 and self.mode != "sampled"):
            raise AxonnxError(f"members is {self.members}; an ensemble of several is for mode 'sampled' alone")
        if self.weights in INTEGER_NETWORKS and self.mode == "stochastic":
            raise AxonnxError(
                "neurons in integers have no noise; collapse with mfa or sampled, or store weights as int16",
                options=("weights",),
            )
        if self.prune is not None and not self.prune >= 0:
            raise AxonnxError(f"prune is {self.prune}; expected a signal-to-noise ratio of zero or more")

    @property
    def integers(self) -> bool:
        """Whether the whole network computes in integers."""
        return self.weights in INTEGER_NETWORKS


@dataclass(frozen=True)
class Collapsed:
    """A collapsed network on its grid (several for an ensemble), captured, with the certificate of every synapse."""

    members: tuple[Member, ...]
    settings: CollapseSettings
    input: InputContract
    certificates: tuple[SynapseContract, ...]
    calibrated: bool = False

    @property
    def networks(self) -> list[nn.Module]:
        """Ordinary torch modules that can be run, inspected and compared."""
        return [member.network for member in self.members]

    @property
    def network(self) -> Network:
        """The one network there is."""
        if len(self.members) != 1:
            raise AxonnxError(f"an ensemble has {len(self.members)} networks; see .networks")
        return self.members[0].network


def collapse_network(
    network: Network,
    input_contract: InputContract,
    settings: CollapseSettings | None = None,
    thresholds: Mapping[str, Tensor] | None = None,
) -> Collapsed:
    """Collapse ``network`` and put it on the grid; ``thresholds`` (of a calibration) replace the neurons' own."""
    settings = settings or CollapseSettings()
    if input_contract.name != INPUT:
        raise AxonnxError(f"the input is called {input_contract.name!r}; in a file it is always {INPUT!r}")
    if settings.mode != "mfa":
        needs_posterior(network)
    floats: Captured | None = None
    members: list[Member] = []
    certificates: list[SynapseContract] = []
    generator = torch.Generator().manual_seed(settings.seed) if settings.mode == "sampled" else None
    choice = WeightChoice(generator, settings.prune)
    for number in range(settings.members):
        prefix = f"member{number}/" if settings.members > 1 else ""
        collapsed = collapse(network, choice, stochastic=settings.mode == "stochastic")
        _set_thresholds(collapsed, thresholds or {})
        # Members differ in numbers alone: one capture is that of all.
        stored, placed = width_of(settings.weights), None
        if settings.integers:
            floats = floats or _capture(collapsed, input_contract)
            placed = to_integers(collapsed, floats, input_contract, stored)
        captured = members[0].captured if members else _capture(collapsed, input_contract)
        certificates += put_on_grid(collapsed, captured, input_contract, stored, prefix, placed)
        members.append(Member(collapsed, captured, prefix))
    return Collapsed(tuple(members), settings, input_contract, tuple(certificates), bool(thresholds))


def _capture(collapsed: Network, arriving: InputContract) -> Captured:
    """Capture the network's step, every operator of it known; sums of squares are short enough to be exact."""
    captured = capture(collapsed, arriving.shape)
    check_operators(captured)
    return capture(collapsed, arriving.shape) if split_activities(collapsed, captured, arriving) else captured


def _set_thresholds(network: Network, thresholds: Mapping[str, Tensor]) -> None:
    for name, threshold in thresholds.items():
        neuron: Any = network.get_submodule(name)
        neuron.threshold = threshold.detach().float().clone()
