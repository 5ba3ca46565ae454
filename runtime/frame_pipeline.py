"""Run frames and images through a network: one decision for each sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.model import Model
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.frame_files import read_frames
from axonnx.runtime.streams.sources import is_live
from axonnx.runtime.streams.tally import Tally

BATCH = 16


def open_frames(engine: Engine, source: str, *, index: int | None = None, seed: int = 0) -> FramePipeline:
    """Open a pipeline for the samples of an npz or npy file.

    Args:
        engine: Engine that runs the network.
        source: Path of an npz or npy file.
        index: Run only the sample with this index. Default: all samples.
        seed: Seed of the noise of a stochastic network.

    Returns:
        A pipeline; iterate over its ``decisions()``.

    Raises:
        AxonnxError: If ``source`` is a stream of events, or the file does not hold what the network takes.
    """
    entering = engine.program.contract.input
    if is_live(source):
        raise AxonnxError(
            f"{engine.program.name}: cannot run on the event stream {source}; this network expects "
            f"{describe_input(entering)} from an npz or npy file. Give such a file"
        )
    return FramePipeline(engine, read_frames(source, entering, index), seed=seed, first=index or 0)


class FramePipeline:
    """Samples [N, T, …] of integers that an engine processes in batches.

    Sample i gets the noise that a stream would give window i, so both ways give the same bits.
    """

    def __init__(self, engine: Engine, samples: NDArray[np.int64], *, seed: int = 0, first: int = 0) -> None:
        self.model, self.samples, self.seed, self.first = Model(engine.program, engine), samples, seed, first
        self.tally, self.decided = Tally(), 0

    def decisions(self) -> Iterator[Decision]:
        """Yield one decision for each sample, in order."""
        for start in range(0, len(self.samples), BATCH):
            logits = self._logits(self.first + start, self.samples[start : start + BATCH])
            for number, member_logits in enumerate(logits.swapaxes(0, 1), self.first + start):
                self.decided += 1
                yield self._decision(number, member_logits)

    def _logits(self, first: int, samples: NDArray[np.int64]) -> NDArray[np.float32]:
        spiking = self.model.contract.kind == "spiking"
        x = self.model.prepare(samples.swapaxes(0, 1) if spiking else samples[:, 0])
        result = self.model.run(x, seed=self.seed, samples=range(first, first + len(samples)))
        self.tally.count(samples.shape[1] * len(samples), result.activity)
        return result.member_logits

    def _decision(self, number: int, member_logits: NDArray[np.float32]) -> Decision:
        steps = self.samples.shape[1]
        contract = self.model.contract
        made = Decision(
            None, steps - 1, number, steps, member_logits, contract.classes, final=True, units=contract.units
        )
        return made if contract.certainty is None else replace(made, **Decision.certainty_of(contract, steps))

    def summary(self) -> dict[str, object]:
        """Return the counters of the run: samples, decisions and spikes."""
        return {"samples": len(self.samples), "decisions": self.decided, **self.tally.as_dict()}
