"""The result of running a network: logits, probabilities and uncertainty."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.interface import Chunk
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.streams.probabilities import (
    entropy,
    joint_logits,
    mean_probabilities,
    mutual_information,
    possible_classes,
    softmax,
)

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


class RunResult:
    """The result of a run. Logits are the network's own bits; all else is computed from them on first access.

    Attributes:
        state: State after the last step.
        activity: Spikes and synaptic operations. None if the engine does not count them.
        traces: Arrays spikes/<layer> and membrane/<layer>, [T, B, …], if the run recorded them.
    """

    def __init__(self, chunk: Chunk, contract: Contract) -> None:
        self.state, self._results, self.activity, self.traces = chunk
        self._contract = contract

    @cached_property
    def member_logits(self) -> Floats:
        """Logits [members, B, classes] of each member; a spiking network's are of all steps."""
        return self._contract.logits_of(self._results, self.state.step)

    @property
    def logits(self) -> Floats:
        """Logits [B, classes] of the network, or the logarithm of an ensemble's probabilities."""
        return joint_logits(self.member_logits)

    @cached_property
    def probabilities(self) -> Doubles:
        """Probabilities [B, classes], the mean over the members; a network that gives real values has none."""
        self._contract.needs_classes("this result", "a probability")
        certainty = self._contract.certainty
        return mean_probabilities(self.member_logits, 1.0 if certainty is None else certainty.scale)

    @cached_property
    def possible(self) -> NDArray[np.bool_] | None:
        """Which classes [B, classes] are possible with the coverage that the file states; None if it states none."""
        certainty = self._contract.certainty
        if certainty is None:
            return None
        return possible_classes(self.member_logits, certainty.margin(self.state.step))

    @cached_property
    def entropy(self) -> Doubles:
        """Entropy [B] of the probabilities in nats."""
        return entropy(self.probabilities)

    @cached_property
    def mutual_information(self) -> Doubles | None:
        """Disagreement [B] between the members of an ensemble in nats; None for a single network."""
        if len(self.member_logits) == 1:
            return None
        return mutual_information(softmax(self.member_logits))
