"""The state of a network between two time steps, as a value that can be kept, copied and restored."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.values import SPIKES, Values
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]


LAST_STEP = 2**53  # every engine counts steps exactly up to here


class State:
    """The number of time steps so far, and one array [B, …] for each state of the program. Never changed.

    ``made_by`` is the program whose engine made the state. Any other program checks the state before it uses it.
    """

    def __init__(self, step: int, arrays: Mapping[str, Floats], made_by: Program | None = None) -> None:
        self._step, self._arrays, self.made_by = step, arrays, made_by

    @property
    def step(self) -> int:
        """Number of time steps so far."""
        return self._step

    @property
    def arrays(self) -> Mapping[str, Floats]:
        """Membranes, spikes, variances and totals by name, each [B, …]."""
        return self._arrays

    @property
    def batch(self) -> int:
        """Number of samples."""
        return len(next(iter(self.arrays.values())))


def zero_state(program: Program, batch: int) -> State:
    """Return the state before the first step."""
    zeros = {name: np.zeros((batch, *program.buffers[name].shape), np.float32) for name in program.states}
    return State(0, zeros, program)


def check_clock(program: Program, step: Any, steps: int) -> None:
    """Refuse a run that the program's tables have no rows for, or a wrong count of steps."""
    known = program.steps_known
    if not 0 <= step <= LAST_STEP - steps:
        raise AxonnxError(f"{program.name}: the state is after step {step}; expected 0 … 2⁵³")
    if known is not None and step + steps > known:
        limited = "normalisation has parameters" if program.clocked else "read-out's sum in integers is exact"
        raise AxonnxError(
            f"{program.name}: its {limited} for {known} time steps; this run reaches step "
            f"{step + steps}. Reset the state after {known} steps"
        )


def check_state(program: Program, state: State) -> State:
    """Return ``state`` after a check that it fits this program.

    Raises:
        AxonnxError: If the state belongs to another network or holds impossible values.
    """
    if state.made_by is program:
        return state
    _check_step(program, state.step)
    if set(state.arrays) != set(program.states):
        raise AxonnxError(
            f"{program.name}: the state has {sorted(state.arrays)}; expected {sorted(program.states)}. Use a state of "
            f"this file"
        )
    if not program.states:
        return state
    batch = len(np.atleast_1d(next(iter(state.arrays.values()))))
    for name, array in state.arrays.items():
        array = np.asarray(array)
        expected = (batch, *program.buffers[name].shape)
        if array.shape != expected or array.dtype != np.float32:
            raise AxonnxError(
                f"{program.name}: the state {name!r} is {array.dtype} {list(array.shape)}; "
                f"expected float32 {list(expected)}"
            )
        if not np.isfinite(array).all():
            raise AxonnxError(f"{program.name}: the state {name!r} holds NaN or infinity; expected finite numbers")
        if not _among(array, program.buffers[name].values):
            what = "0 and 1" if program.buffers[name].values == SPIKES else program.buffers[name].values
            raise AxonnxError(f"{program.name}: the state {name!r} holds other values than {what}")
    return state


def _among(array: Floats, values: Values) -> bool:
    """Return whether all numbers belong to the values for which sums are certified as exact."""
    if values == SPIKES:
        return bool(((array == 0) | (array == 1)).all())
    if not values.dyadic:
        return True
    scaled = array.astype(np.float64) * 2.0**values.bits
    return bool((np.abs(array) <= values.largest).all() and (scaled == np.rint(scaled)).all())


def _check_step(program: Program, step: Any) -> None:
    try:
        operator.index(step)
    except TypeError:
        raise AxonnxError(f"{program.name}: the state is after step {step!r}; expected a whole number") from None
    check_clock(program, step, 0)
