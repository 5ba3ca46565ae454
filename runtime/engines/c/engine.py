"""The engine in C: the table of all compiled engines, run by a loop that the machine's own compiler has compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.c.library import CProgram, Needs, compiled
from axonnx.runtime.engines.c.order import Order
from axonnx.runtime.engines.table.engine import Given, TableEngine
from axonnx.runtime.engines.table.layout import LANES
from axonnx.runtime.engines.table.narrow import integer_weights
from axonnx.runtime.engines.table.plan import Plan
from axonnx.runtime.engines.table.pools import aligned
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]


class Workspace:
    """One thread's memory, event lists and bits of spikes, and where the compiled loop finds them."""

    def __init__(self, plan: Plan, order: Order) -> None:
        contract, layers = plan.program.contract.input, order.layered
        self.memory = aligned(plan.storage.memory if layers is None else layers.memory, np.float32)
        self.events = aligned((plan.storage.events if layers is None else layers.events) + LANES, np.int32)
        self.bits = np.zeros(plan.storage.memory // LANES + 1, np.uint16)
        arrays = (
            plan.table if layers is None else layers.table,
            order.turns,
            self.memory,
            plan.constants,
            self.events,
            self.bits,
            plan.shorts,
            plan.bytes,
            plan.tables,
            order.groups,
        )
        self.program = CProgram(
            *(array.ctypes.data for array in arrays),
            rows=len(plan.table),
            turns=len(order.turns),
            parts=len(order.groups) - 1,
            at_start=order.at_start,
            kept=plan.storage.kept,
            entering=plan.outside_size,
            traced=plan.trace_size,
            scale=2**contract.shift,
            largest=contract.largest,
            layered=0 if layers is None else len(layers.table),
        )
        self.address = ctypes.addressof(self.program)


class CEngine(TableEngine):
    """Needs a C compiler; ``flags`` are the compiler's, for tests of what other processors run."""

    name = "c"

    def __init__(self, program: Program, threads: int = 1, flags: Sequence[str] = ()) -> None:
        weights = integer_weights(program)
        library = compiled(Needs.of(program, weights), tuple(flags))
        self._run = library.axonnx_run
        super().__init__(Plan(program, library.axonnx_widest(), weights), threads)
        self.order = Order(self.plan)

    def workspace(self) -> Workspace:
        """One thread's memory and event lists."""
        return Workspace(self.plan, self.order)

    def memory_of(self, work: Workspace) -> Floats:
        """The floats of a workspace."""
        return work.memory

    def call(self, work: Workspace, given: Given, low: int, high: int, resident: int) -> int:
        """Samples low … high − 1; see ``TableEngine``."""
        outside, memory, counts, trace, steps, step = given
        where = (_address(outside), _address(memory), _address(counts), _address(trace) if trace.size else None)
        refused: int = self._run(work.address, *where, steps, step, len(memory), low, high, resident)
        return refused


def _address(array: NDArray[Any]) -> int:
    """Where an array begins; by a buffer, which takes a third of the time that numpy's own way does."""
    if array.size and array.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # an array is a buffer
    return int(array.ctypes.data)
