"""The engine that chooses: event-driven where there is silence; where nearly everything fires, whichever was faster.

Both engines give the same bits, so the choice is one of speed alone and may change between chunks. A network that is
found busy is tried on onnxruntime too, and the clock decides, until its input grows quiet again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.reference.interface import Activity, Chunk, Engine
from axonnx.runtime.engines.reference.state import State
from axonnx.runtime.program.instructions import Conv, Linear, Program

Floats = NDArray[np.float32]

BUSY = 0.35  # share of all synaptic operations from which a dense engine may be faster on one sample
BUSY_BATCH = 0.15  # the same on batches, which a dense engine multiplies as matrices
BATCH = 8
TRIALS = 3  # of each engine; the first includes making it
SMALL = 2**20  # operations of a chunk if all inputs were active: done before a dense engine has begun
LOOK = 8  # every so many chunks it is looked whether a network is busy: looking takes time too
QUIETER = 0.7  # of the input's density when the network was found busy


@dataclass
class Busy:
    """What is known of a network since it was found busy: the input's density, and seconds a step and sample."""

    density: float
    events: float = np.inf
    dense: float = np.inf
    tried: int = 0
    dense_tried: int = 0

    @property
    def dense_next(self) -> bool:
        """Whether the dense engine takes the next chunk: each is tried, then the faster one stays."""
        if self.tried < TRIALS:
            return False
        return self.dense_tried < TRIALS or self.dense < self.events


class AutoEngine:
    """Begins event-driven. ``note`` says why the event-driven engine is not the fastest there could be."""

    name = "auto"

    def __init__(self, events: Engine, dense: Engine, note: str | None = None) -> None:
        self.program: Program = events.program
        self.note = note
        self.events, self.dense = events, dense
        self._full = dense_operations(self.program)
        self._busy: Busy | None = None
        self._chunks = 0  # of a network that was not found busy

    def initial_state(self, batch: int) -> State:
        """All-zero state."""
        return self.events.initial_state(batch)

    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """The chunk by the engine that should be faster on it."""
        busy = self._busy
        if self._full * x.shape[0] * x.shape[1] < SMALL or (busy is None and self._passes_by()):
            return self.events.advance(state, x, noise, trace)
        if busy is not None and np.count_nonzero(x) < QUIETER * busy.density * x.size:
            busy = self._busy = None
        engine = self.dense if busy is not None and busy.dense_next else self.events
        began = time.perf_counter()
        chunk = engine.advance(state, x, noise, trace)
        seconds = (time.perf_counter() - began) / (x.shape[0] * x.shape[1])
        if busy is not None and engine is self.dense:
            busy.dense, busy.dense_tried = min(busy.dense, seconds), busy.dense_tried + 1
        elif self._is_busy(chunk.activity, x):
            if busy is None:
                busy = self._busy = Busy(np.count_nonzero(x) / x.size)
            busy.events, busy.tried = min(busy.events, seconds), busy.tried + 1
        else:
            self._busy = None
        return chunk

    def stepper(self, state: State) -> object:
        """Single steps are the event-driven engine's."""
        made = getattr(self.events, "stepper", None)
        assert made is not None
        return made(state)

    def _passes_by(self) -> bool:
        """Whether a chunk is not looked at: the first is, and then every eighth."""
        self._chunks += 1
        return self._chunks % LOOK != 1

    def _is_busy(self, activity: Activity | None, x: Floats) -> bool:
        if activity is None:
            return False
        limit = BUSY if x.shape[1] < BATCH else BUSY_BATCH
        most = self._full * int(x.shape[0]) * int(x.shape[1])
        return activity.total_operations() > limit * most


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
