"""Run single time steps on a network that keeps its state: the fast path of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.state import State
from axonnx.runtime.program.layer_noise import draw_noise

Floats = NDArray[np.float32]


class Stepper(Protocol):
    """Runs single steps; ``state`` returns the current state as a value."""

    @property
    def state(self) -> State:
        """State after the last step."""
        ...

    def step(self, x: Floats) -> Floats:
        """Run one step with x [B, …] float32; return the sums of the read-outs so far, [members, B, classes]."""
        ...


def make_stepper(engine: Engine, state: State, seed: int, samples: Sequence[int]) -> Stepper:
    """Return the engine's own stepper if it has one and the network has no noise; otherwise one for any engine."""
    made: Any = getattr(engine, "stepper", None)
    if made is not None and not engine.program.noises:
        stepper: Stepper = made(state)
        return stepper
    return PlainStepper(engine, state, seed, samples)


class PlainStepper:
    """Runs chunks of one step on any engine."""

    def __init__(self, engine: Engine, state: State, seed: int, samples: Sequence[int]) -> None:
        self._engine, self._state, self._seed, self._samples = engine, state, seed, samples

    @property
    def state(self) -> State:
        """State after the last step."""
        return self._state

    def step(self, x: Floats) -> Floats:
        """Run one step; see ``Stepper``."""
        noise = draw_noise(self._engine.program, self._seed, self._samples, self._state.step, 1)
        chunk = self._engine.advance(self._state, x[None], noise)
        self._state = chunk.state
        return chunk.logits
