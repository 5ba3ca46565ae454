"""What every engine does: carry a state through a chunk of time steps, to the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.state import State
from axonnx.runtime.program.instructions import Program, trace_sources

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]

__all__ = ["Activity", "Chunk", "Engine", "check_input", "input_fault", "trace_sources"]


@dataclass(frozen=True)
class Activity:
    """What a chunk cost: spikes of each layer and synaptic operations of each synapse, for each sample [B].

    An operation is one weight added up for one active input: an accumulate where inputs are spikes, a
    multiply-accumulate where they are graded.
    """

    spikes: Mapping[str, Counts]
    operations: Mapping[str, Counts]

    def total_operations(self) -> int:
        """Of all synapses and samples."""
        return sum(int(counts.sum()) for counts in self.operations.values())

    def plus(self, other: Activity) -> Activity:
        """Of two chunks of as many samples."""
        return Activity(_sum(self.spikes, other.spikes), _sum(self.operations, other.operations))


class Chunk(NamedTuple):
    """What comes out of a chunk of time steps (or of a batch of images)."""

    state: State
    logits: Floats  # [members, B, classes]: totals of spiking networks over all their steps so far, or a binary net's
    activity: Activity | None
    traces: Mapping[str, Floats] = MappingProxyType({})  # spikes/<layer>, membrane/<layer>: [T, B, …]


class Engine(Protocol):
    """Runs one program."""

    @property
    def name(self) -> str:
        """As in ``load(…, engine=name)``."""
        ...

    @property
    def program(self) -> Program:
        """What it runs."""
        ...

    def initial_state(self, batch: int) -> State:
        """All-zero state."""
        ...

    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """Go through ``x`` [T, B, …]; noises are [T, B, …] too. Binary networks have T = 1 and a state of nothing."""
        ...


def _sum(a: Mapping[str, Counts], b: Mapping[str, Counts]) -> dict[str, Counts]:
    return {**a, **b, **{name: a[name] + b[name] for name in a if name in b}}


def check_input(program: Program, x: Floats) -> None:
    """Refuse what the contract does not admit: sums of it would not be exact."""
    contract = program.contract.input
    scaled = x / np.float32(contract.unit) if contract.shift else x  # exact: a power of two
    fine = (np.abs(scaled) <= contract.largest) & (scaled == np.rint(scaled))
    if not fine.all():
        raise input_fault(program, x, ~fine)


def input_fault(program: Program, x: Floats, wrong: NDArray[np.bool_]) -> AxonnxError:
    """Says which number of an input is not as the contract promises."""
    contract = program.contract.input
    index = tuple(int(axis[0]) for axis in np.nonzero(wrong))
    grid = "integers" if contract.shift == 0 else f"multiples of 2^-{contract.shift}"
    return AxonnxError(
        f"{program.name}: its input {list(index)} is {float(x[index])!r}; the contract promises {grid} up to "
        f"±{contract.x_max:g} ({int(wrong.sum())} of {x.size} numbers are not). Bin or clip "
        f"the input as the contract says"
    )
