"""The state of a network between two time steps, as a value: plain arrays that can be kept, copied and put back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.program import Program
from axonnx.runtime.values import SPIKES

Floats = NDArray[np.float32]


class State:
    """Time steps done so far, and one array [B, …] for each state of the program. Never changed once made."""

    def __init__(self, step: int, arrays: Mapping[str, Floats]) -> None:
        self._step = step
        self._arrays = arrays

    @property
    def step(self) -> int:
        """Time steps that led here."""
        return self._step

    @property
    def arrays(self) -> Mapping[str, Floats]:
        """Membranes, spikes, variances and totals by name, each [B, …]."""
        return self._arrays

    @property
    def batch(self) -> int:
        """Samples."""
        return len(next(iter(self.arrays.values())))


def zero_state(program: Program, batch: int) -> State:
    """The state before the first step."""
    return State(0, {name: np.zeros((batch, *program.buffers[name].shape), np.float32) for name in program.states})


def check_state(program: Program, state: State) -> State:
    """``state`` as it is, if it is one of this program; what is wrong with it otherwise."""
    if set(state.arrays) != set(program.states):
        raise AxonnxError(
            f"{program.name}: a state with {sorted(state.arrays)}; this network keeps {sorted(program.states)}"
        )
    if not program.states:
        return state
    batch = state.batch
    for name, array in state.arrays.items():
        expected = (batch, *program.buffers[name].shape)
        if array.shape != expected or array.dtype != np.float32:
            raise AxonnxError(
                f"{program.name}: the state {name!r} is {array.dtype} {list(array.shape)}; "
                f"expected float32 {list(expected)}"
            )
        spikes = program.buffers[name].values == SPIKES
        if not np.isfinite(array).all() or (spikes and not ((array == 0) | (array == 1)).all()):
            raise AxonnxError(
                f"{program.name}: the state {name!r} holds {'more than 0 and 1' if spikes else 'no numbers'}"
            )
    return state
