"""What a network says of its inputs: logits, probabilities and doubts."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.interface import Chunk
from axonnx.runtime.streams.probabilities import entropy, joint_logits, mean_probabilities, mutual_information, softmax

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


class RunResult:
    """What a network says: logits are its own bits; probabilities and doubts follow from them when asked for.

    ``activity`` is None where the engine does not count. ``traces`` are spikes/<layer> and membrane/<layer>, [T, B, …].
    """

    def __init__(self, chunk: Chunk, spiking: bool) -> None:
        self.state, self._results, self.activity, self.traces = chunk
        self._spiking = spiking

    @cached_property
    def member_logits(self) -> Floats:
        """[members, B, classes]: of each network; a spiking one's are its read-out's mean over all steps so far."""
        return self._results / np.float32(self.state.step) if self._spiking else self._results

    @property
    def logits(self) -> Floats:
        """[B, classes]: the network's, or of an ensemble the logarithm of its probabilities."""
        return joint_logits(self.member_logits)

    @cached_property
    def probabilities(self) -> Doubles:
        """[B, classes]: the mean over the members."""
        return mean_probabilities(self.member_logits)

    @cached_property
    def entropy(self) -> Doubles:
        """[B]: of the probabilities, in nats."""
        return entropy(self.probabilities)

    @cached_property
    def mutual_information(self) -> Doubles | None:
        """[B]: how far the members of an ensemble disagree, in nats; None for a single network."""
        if len(self.member_logits) == 1:
            return None
        return mutual_information(softmax(self.member_logits))
