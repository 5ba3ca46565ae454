"""Frames and images through a network: a decision a sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.decision import Decision
from axonnx.runtime.engine import Engine
from axonnx.runtime.network_input import to_input
from axonnx.runtime.stream_noise import stream_noise
from axonnx.runtime.tally import Tally

BATCH = 16


class FrameRun:
    """Samples [N, T, …] of integers through an engine, several at a time; the noise of sample i is that of window i."""

    def __init__(self, engine: Engine, samples: NDArray[np.int64], *, seed: int = 0, first: int = 0) -> None:
        self.engine, self.samples, self.first = engine, samples, first
        self.tally, self.decided = Tally(), 0
        self._noise = stream_noise(engine.program, seed)

    def decisions(self) -> Iterator[Decision]:
        """One for each sample, in order."""
        for start in range(0, len(self.samples), BATCH):
            logits = self._logits(self.first + start, self.samples[start : start + BATCH])
            for number, member_logits in enumerate(logits.swapaxes(0, 1), self.first + start):
                self.decided += 1
                yield self._decision(number, member_logits)

    def _logits(self, first: int, samples: NDArray[np.int64]) -> NDArray[np.float32]:
        steps, contract = samples.shape[1], self.engine.program.contract
        x = to_input(samples.swapaxes(0, 1), contract.input)
        drawn = [self._noise(first + number, 0, steps) for number in range(len(samples))]
        noise = {name: np.concatenate([each[name] for each in drawn], axis=1) for name in self.engine.program.noises}
        chunk = self.engine.advance(self.engine.initial_state(len(samples)), x, noise)
        self.tally.count(steps * len(samples), chunk.activity)
        if contract.logits == "direct":
            return chunk.logits.copy()
        mean: NDArray[np.float32] = chunk.logits / np.float32(steps)
        return mean

    def _decision(self, number: int, member_logits: NDArray[np.float32]) -> Decision:
        steps, classes = self.samples.shape[1], self.engine.program.contract.classes
        return Decision(None, steps - 1, number, steps, member_logits, classes, final=True)

    def summary(self) -> dict[str, object]:
        """What it took."""
        return {
            "samples": len(self.samples),
            "decisions": self.decided,
            "spikes": dict(self.tally.spikes) or None,
            "operations": dict(self.tally.operations) or None,
        }
