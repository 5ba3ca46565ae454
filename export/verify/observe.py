"""What each implementation of one network does on the same input: spikes, membranes and logits, all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.models import MEAN_FIELD, Network, Replay
from axonnx.runtime.engines.reference.interface import Engine
from axonnx.runtime.format.contract import Contract

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


def of_torch(
    name: str, networks: Mapping[str, Network], x: Floats, noise: Mapping[str, Floats], gaps: bool
) -> Observed:
    """A torch network's own pass (several: an ensemble, by prefix); the training code tells gaps, not membranes."""
    spikes, membranes, logits = {}, {}, []
    for prefix, network in networks.items():
        drawn = {layer.removeprefix(f"noise/{prefix}"): torch.from_numpy(value) for layer, value in noise.items()}
        with torch.no_grad():
            output = network(torch.from_numpy(x), Replay(drawn) if drawn else MEAN_FIELD)
        for layer, seen in output.observations.items():
            spikes[prefix + layer] = seen.spikes.numpy()
            membranes[prefix + layer] = seen.gap.numpy()
        logits.append(output.logits.numpy())
    return Observed(name, spikes, membranes, np.stack(logits), gaps)


def of_engine(engine: Engine, x: Floats, noise: Mapping[str, Floats]) -> Observed:
    """One of the runtime's engines."""
    spiking = engine.program.contract.kind == "spiking"
    timed = x if spiking else x[None]
    drawn = noise if spiking else {name: value[None] for name, value in noise.items()}
    chunk = engine.advance(engine.initial_state(timed.shape[1]), timed, drawn, trace=True)
    parts: dict[str, dict[str, Floats]] = {"spikes": {}, "membrane": {}}
    for key, value in chunk.traces.items():
        kind, _, layer = key.partition("/")
        parts[kind][layer] = value if spiking else value[0]
    logits = chunk.logits / np.float32(len(timed)) if spiking else chunk.logits
    return Observed(engine.name, parts["spikes"], parts["membrane"], logits)


def of_file(name: str, run: Any, contract: Contract, x: Floats, noise: Mapping[str, Floats]) -> Observed:
    """A stock runtime on the file as it is: its outputs, and traces where the file has them.

    ``run(feeds)`` gives a mapping from output names to arrays.
    """
    found = run({contract.input.name: x, **noise})
    logits = found["logits"][None] if "logits" in found else found["member_logits"]
    traces = {key.removeprefix("trace/"): value for key, value in found.items() if key.startswith("trace/")}
    spikes = {key.removeprefix("spikes/"): value for key, value in traces.items() if key.startswith("spikes/")}
    membranes = {key.removeprefix("membrane/"): value for key, value in traces.items() if key.startswith("membrane/")}
    return Observed(name, spikes, membranes, logits)
