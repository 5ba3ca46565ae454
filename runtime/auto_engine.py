"""The engine that chooses: event-driven where there is silence, onnxruntime where nearly everything fires.

Both give the same bits, so the choice is one of speed alone and may change between chunks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engine import Activity, Chunk, Engine
from axonnx.runtime.program import Conv, Linear, Program
from axonnx.runtime.state import State

Floats = NDArray[np.float32]

DENSE_SHARE = 0.55  # of all synaptic operations, from which onnxruntime is faster on one sample
DENSE_SHARE_BATCHED = 0.25  # the same on batches, where it multiplies matrices
BATCHED = 8


class AutoEngine:
    """Begins event-driven; hands chunks to onnxruntime while the last one counted was dense."""

    name = "auto"

    def __init__(self, events: Engine, dense: Engine) -> None:
        self.program: Program = events.program
        self.events, self.dense = events, dense
        self._full = dense_operations(self.program)
        self._input_when_dense: float | None = None  # share of active inputs when the choice fell on the dense engine

    def initial_state(self, batch: int) -> State:
        """Silence."""
        return self.events.initial_state(batch)

    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """The chunk by the engine that should be faster on it."""
        if self._input_when_dense is not None:
            if np.count_nonzero(x) / x.size > 0.8 * self._input_when_dense:
                return self.dense.advance(state, x, noise, trace)
            self._input_when_dense = None
        chunk = self.events.advance(state, x, noise, trace)
        if self._full and self._is_dense(chunk.activity, x):
            self._input_when_dense = np.count_nonzero(x) / x.size
        return chunk

    def _is_dense(self, activity: Activity | None, x: Floats) -> bool:
        if activity is None:
            return False
        steps, batch = x.shape[:2]
        done = sum(int(counts.sum()) for counts in activity.operations.values())
        limit = DENSE_SHARE if batch < BATCHED else DENSE_SHARE_BATCHED
        return bool(done > limit * self._full * steps * batch)


def dense_operations(program: Program) -> int:
    """Synaptic operations of one step if every input were active."""
    total = 0
    for i in program.instructions:
        if isinstance(i, Linear):
            total += program.constants[i.weight].size
        elif isinstance(i, Conv):
            out = program.buffers[i.writes[0]].shape
            total += program.constants[i.weight].size * out[1] * out[2]
    return total
