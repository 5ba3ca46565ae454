"""The engine that numba compiles: the whole chunk in one call, event lists, several threads over a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba import interpreter as compiled
from axonnx.runtime.engines.table.engine import Given, TableEngine
from axonnx.runtime.engines.table.plan import Plan
from axonnx.runtime.engines.table.pools import aligned
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]


class Workspace:
    """One thread's memory and event lists, and where the compiled loop finds them."""

    def __init__(self, plan: Plan) -> None:
        contract = plan.program.contract.input
        self.memory = aligned(plan.storage.memory, np.float32)
        self.events = aligned(plan.storage.events + 16, np.int32)
        arrays = {
            compiled.TABLE: plan.table,
            compiled.MEMORY: self.memory,
            compiled.CONSTANTS: plan.constants,
            compiled.EVENTS: self.events,
            compiled.TABLES: plan.tables,
        }
        self.fixed = np.zeros(compiled.FIXED, np.int64)
        for place, array in arrays.items():
            self.fixed[place : place + 2] = array.ctypes.data, len(array)
        self.fixed[compiled.AT_START :] = plan.at_start, 2**contract.shift, contract.largest


class NumbaEngine(TableEngine):
    """The table, interpreted by a loop that numba has compiled for its kinds of rows."""

    name = "numba"

    def __init__(self, program: Program, threads: int = 1) -> None:
        super().__init__(Plan(program), threads)
        self._run = compiled.run_for(frozenset(row[0] for row in self.plan.rows))

    def workspace(self) -> Workspace:
        """One thread's memory and event lists."""
        return Workspace(self.plan)

    def memory_of(self, work: Workspace) -> Floats:
        """The floats of a workspace."""
        return work.memory

    def call(self, work: Workspace, given: Given, low: int, high: int, resident: int) -> int:
        """Samples low … high − 1; see ``TableEngine``."""
        outside, memory, counts, trace, steps, step = given
        refused: int = self._run(work.fixed, outside, memory, counts, trace, steps, step, low, high, resident)
        return refused
