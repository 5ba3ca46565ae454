"""What each implementation of one network does on the same input: spikes, membranes and logits, all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.models import MEAN_FIELD, Network, Observation, Replay
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.names import LOGITS, MEMBRANE, NOISE, SPIKES, TRACE, under
from axonnx.runtime.format.results import member_logits

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Observed:
    """Spikes and membranes [T, B, …] of every layer ([B, …] without time) and logits [members, B, classes].

    ``gaps``: membranes are given as h* − θ, which is what the training code keeps.
    """

    name: str
    spikes: Mapping[str, Floats]
    membranes: Mapping[str, Floats]
    logits: Floats
    gaps: bool = False

    def seen(self, timed: bool, thresholds: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
        """All of it by name, with a time axis; ``thresholds`` make gaps of membranes, in float32 as training does."""
        membranes = self.membranes
        if thresholds is not None:
            membranes = {layer: value - thresholds[layer] for layer, value in membranes.items()}
        found = {SPIKES + layer: value for layer, value in self.spikes.items()}
        found |= {MEMBRANE + layer: value for layer, value in membranes.items()}
        return {LOGITS: self.logits, **(found if timed else {name: value[None] for name, value in found.items()})}


def of_torch(
    name: str, networks: Mapping[str, Network], x: Floats, noise: Mapping[str, Floats], gaps: bool
) -> Observed:
    """Run a torch network (several: an ensemble, by prefix); training code keeps gaps, not membranes."""
    spikes, membranes, logits = {}, {}, []
    for prefix, network in networks.items():
        drawn = {layer.removeprefix(NOISE + prefix): torch.from_numpy(value) for layer, value in noise.items()}
        with torch.no_grad():
            output = network(torch.from_numpy(x), Replay(drawn) if drawn else MEAN_FIELD)
        for layer, seen in output.observations.items():
            spikes[prefix + layer] = seen.spikes.numpy()
            membranes[prefix + layer] = _told(network, layer, seen).numpy()
        logits.append(output.logits.numpy())
    return Observed(name, spikes, membranes, np.stack(logits), gaps)


def _told(network: Network, layer: str, seen: Observation) -> Tensor:
    """h* − θ, also of neurons whose threshold moves above their θ."""
    if seen.membrane is None:
        return seen.gap
    return seen.membrane - cast(Tensor, network.get_submodule(layer).threshold)


def of_engine(engine: Engine, x: Floats, noise: Mapping[str, Floats]) -> Observed:
    """One of the runtime's engines."""
    spiking = engine.program.contract.kind == "spiking"
    timed = x if spiking else x[None]
    drawn = noise if spiking else {name: value[None] for name, value in noise.items()}
    chunk = engine.advance(engine.initial_state(timed.shape[1]), timed, drawn, trace=True)
    traces = {key: value if spiking else value[0] for key, value in chunk.traces.items()}
    logits = engine.program.contract.logits_of(chunk.logits, len(timed))
    return Observed(engine.name, under(SPIKES, traces), under(MEMBRANE, traces), logits)


def of_file(name: str, run: Any, contract: Contract, x: Floats, noise: Mapping[str, Floats]) -> Observed:
    """Run a stock runtime on the file as it is: its outputs, and traces if the file has them.

    ``run(feeds)`` gives a mapping from output names to arrays.
    """
    found = run({contract.input.name: x, **noise})
    traces = under(TRACE, found)
    return Observed(name, under(SPIKES, traces), under(MEMBRANE, traces), member_logits(found))
