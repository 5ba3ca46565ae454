"""The interface of all engines: advance a state through a chunk of time steps, with the same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.state import State, zero_state
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.layer_noise import draw_noise

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Activity:
    """The cost of a chunk: spikes of each layer and synaptic operations of each synapse, for each sample [B].

    One operation adds one weight for one active input: an accumulate for spikes, a multiply-accumulate for graded
    inputs.
    """

    spikes: Mapping[str, Counts]
    operations: Mapping[str, Counts]

    def plus(self, other: Activity) -> Activity:
        """Return the sum of two chunks with the same number of samples."""
        return Activity(_sum(self.spikes, other.spikes), _sum(self.operations, other.operations))


class Chunk(NamedTuple):
    """The result of a chunk of time steps, or of a batch of images."""

    state: State
    logits: (
        Floats  # [members, B, classes]: a spiking network's totals over all steps so far, or a binary network's logits
    )
    activity: Activity | None
    traces: Mapping[str, Floats] = MappingProxyType({})  # spikes/<layer>, membrane/<layer>: [T, B, …]


class Engine(Protocol):
    """An engine that runs one program."""

    name: str  # as in ``load(…, engine=name)``
    program: Program

    def initial_state(self, batch: int) -> State:
        """Return the state before the first step, all zeros."""
        return zero_state(self.program, batch)

    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """Run ``x`` [T, B, …] with noise [T, B, …]. Binary networks have T = 1 and an empty state."""
        ...


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


def _sum(a: Mapping[str, Counts], b: Mapping[str, Counts]) -> dict[str, Counts]:
    return {**a, **b, **{name: a[name] + b[name] for name in a if name in b}}


def check_input(program: Program, x: Floats) -> None:
    """Refuse an input that the contract does not allow, because its sums would not be exact."""
    contract = program.contract.input
    scaled = x / np.float32(contract.unit) if contract.shift else x  # exact, because the unit is a power of two
    fine = (np.abs(scaled) <= contract.largest) & (scaled == np.rint(scaled))
    if not fine.all():
        raise input_fault(program, x, ~fine)


def input_fault(program: Program, x: Floats, wrong: NDArray[np.bool_]) -> AxonnxError:
    """Return an error that states which number of the input violates the contract."""
    contract = program.contract.input
    index = tuple(int(axis[0]) for axis in np.nonzero(wrong))
    grid = "integers" if contract.shift == 0 else f"multiples of 2^-{contract.shift}"
    return AxonnxError(
        f"{program.name}: the input {list(index)} is {float(x[index])!r}; the contract allows {grid} up to "
        f"±{contract.x_max:g} ({int(wrong.sum())} of {x.size} numbers are wrong). Bin or clip "
        f"the input as the contract states"
    )
