"""The compiled engine: the whole chunk in one call, event lists, several threads over a batch."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.numba import interpreter as compiled
from axonnx.runtime.engines.numba.plan import Plan
from axonnx.runtime.engines.numba.pools import aligned
from axonnx.runtime.engines.reference.interface import Activity, Chunk, check_input, trace_sources
from axonnx.runtime.engines.reference.state import State, check_clock, check_state
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
NO_TRACE = np.zeros(0, np.float32)


class PackedState(State):
    """A state in the order of the compiled engine's memory [B, kept]; arrays are made of it when asked for."""

    def __init__(self, step: int, memory: Floats, plan: Plan) -> None:
        self._step, self.memory, self.plan, self.made_by = step, memory, plan, plan.program

    @cached_property
    def arrays(self) -> Mapping[str, Floats]:
        """One array [B, …] for each state."""
        storage = self.plan.storage
        found = {}
        for name in self.plan.program.states:
            layout, at = storage.layouts[name], storage.place(name)
            found[name] = layout.unpack(self.memory[:, at : at + layout.size])
        return found

    @property
    def batch(self) -> int:
        """Samples."""
        return len(self.memory)


class CountedActivity(Activity):
    """Counts of one chunk [B, rows], sorted by layer and synapse when asked for."""

    def __init__(self, counts: Counts, plan: Plan) -> None:
        self.counts, self.plan = counts, plan

    @cached_property
    def spikes(self) -> Mapping[str, Counts]:
        """Of each layer."""
        return {i.layer: self.counts[:, self.plan.row_of[i.name]] for i in self.plan.firing}

    @cached_property
    def operations(self) -> Mapping[str, Counts]:
        """Of each synapse."""
        return {name: self.counts[:, self.plan.row_of[name]] for name in self.plan.program.synapses}

    def total_operations(self) -> int:
        """Of all synapses and samples, without sorting them first."""
        return int(self.counts[:, self.plan.synapse_rows].sum())

    def plus(self, other: Activity) -> Activity:
        """Of two chunks, without sorting them first."""
        if isinstance(other, CountedActivity) and other.plan is self.plan:
            return CountedActivity(self.counts + other.counts, self.plan)
        return super().plus(other)


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


class NumbaEngine:
    """Runs a plan of the program; any number of calls may run at once."""

    name = "numba"

    def __init__(self, program: Program, threads: int = 1) -> None:
        self.program, self.threads = program, threads
        self.plan = Plan(program)
        self._workspaces: list[Workspace] = []
        names = program.logits or program.totals
        self._results = [self.plan.storage.place(name) for name in names]
        self._classes = len(program.contract.classes)

    def initial_state(self, batch: int) -> State:
        """All-zero state."""
        return PackedState(0, np.zeros((batch, self.plan.storage.kept), np.float32), self.plan)

    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """The whole chunk in one compiled call for each thread."""
        steps, batch = x.shape[0], x.shape[1]
        memory = self.pack(state, batch)
        check_clock(self.program, state.step, steps)
        outside = self._outside(x, noise)
        counts = np.zeros((batch, len(self.plan.table)), np.int64)
        seen = np.empty((steps, batch, self.plan.trace_size), np.float32) if trace else NO_TRACE
        arrays = (outside, memory, counts, seen.reshape(-1), steps)
        refused = self._part(arrays, state.step, 0, batch) if self.threads == 1 else self._parts(arrays, state.step)
        if refused >= 0:
            check_input(self.program, x)
            raise AssertionError("the compiled engine refused an input that the contract admits")
        after = PackedState(state.step + steps, memory, self.plan)
        traces = self._traces(seen) if trace else {}
        return Chunk(after, self.logits(memory), CountedActivity(counts, self.plan), traces)

    def stepper(self, state: State) -> NumbaStepper:
        """Steps with the state kept inside."""
        return NumbaStepper(self, state)

    def _parts(self, arrays: tuple[Any, ...], step: int) -> int:
        """The batch in equal parts, a thread each."""
        batch = len(arrays[1])
        parts = min(self.threads, batch)
        cuts = [batch * part // parts for part in range(parts + 1)]
        if parts == 1:
            return self._part(arrays, step, 0, batch)
        with ThreadPoolExecutor(parts) as pool:
            jobs = [pool.submit(self._part, arrays, step, low, high) for low, high in pairwise(cuts)]
            return max(job.result() for job in jobs)

    def _part(self, arrays: tuple[Any, ...], step: int, low: int, high: int) -> int:
        """Samples low … high − 1; the compiled loop runs without the interpreter's lock."""
        work = self._workspace()
        outside, memory, counts, seen, steps = arrays
        refused: int = compiled.run(work.fixed, outside, memory, counts, seen, steps, step, low, high, 0)
        self._workspaces.append(work)
        return refused

    def _workspace(self) -> Workspace:
        try:
            return self._workspaces.pop()
        except IndexError:  # asking first is no help: another thread may take the last one in between
            return Workspace(self.plan)

    def _outside(self, x: Floats, noise: Mapping[str, Floats]) -> Floats:
        """Input and noise of each step side by side, [T, B, …] flat."""
        if not self.program.noises:
            return np.ascontiguousarray(x).reshape(-1)
        parts = [x, *(noise[name] for name in self.program.noises)]
        return np.concatenate([part.reshape(*x.shape[:2], -1) for part in parts], axis=2).reshape(-1)

    def pack(self, state: State, batch: int) -> Floats:
        """A copy of any state in the order of memory."""
        if self.program.states and state.batch != batch:
            raise AxonnxError(f"{self.program.name}: a state of {state.batch} samples and an input of {batch}")
        if type(state) is PackedState and state.plan is self.plan:
            return state.memory.copy()
        storage, arrays = self.plan.storage, check_state(self.program, state).arrays
        memory = np.zeros((batch, storage.kept), np.float32)
        for name in self.program.states:
            layout, at = storage.layouts[name], storage.place(name)
            memory[:, at : at + layout.size] = layout.pack(arrays[name])
        return memory

    def logits(self, memory: Floats) -> Floats:
        """A view of the new state; states are never changed once made."""
        if len(self._results) == 1:
            return memory[None, :, self._results[0] : self._results[0] + self._classes]
        return np.stack([memory[:, at : at + self._classes] for at in self._results])

    def _traces(self, seen: Floats) -> dict[str, Floats]:
        found = {}
        for name in trace_sources(self.program):
            at, buffer = self.plan.trace_places[name]
            layout = self.plan.storage.layouts[buffer]
            found[name] = layout.unpack(seen[..., at : at + layout.size])
        return found


class NumbaStepper:
    """One compiled call for each step. A single sample stays in the memory that the compiled loop works in."""

    def __init__(self, engine: NumbaEngine, state: State) -> None:
        self._engine, self._step = engine, state.step
        self._work, self._memory = Workspace(engine.plan), engine.pack(state, state.batch)
        self._counts = np.zeros((state.batch, len(engine.plan.table)), np.int64)
        self._shape, self._known = (state.batch, *engine.program.contract.input.shape), engine.program.steps_known
        self._call(np.zeros(0, np.float32), 0, 0)  # brings the state in and lists its events
        self._resident = int(state.batch == 1)
        if self._resident:
            self._memory = self._work.memory[None, : engine.plan.storage.kept]
        self._logits = engine.logits(self._memory)

    @property
    def state(self) -> State:
        """The state after the last step."""
        return PackedState(self._step, self._memory.copy(), self._engine.plan)

    def step(self, x: Floats) -> Floats:
        """One step; see ``Stepper``. What it returns may be overwritten by the next."""
        if x.shape != self._shape or x.dtype != np.float32:
            raise AxonnxError(f"an input of {x.dtype} {list(x.shape)}; expected float32 {list(self._shape)}")
        if self._known is not None and self._step >= self._known:
            check_clock(self._engine.program, self._step, 1)
        if self._call(x.reshape(-1), 1, self._resident) >= 0:
            check_input(self._engine.program, x[None])
        self._step += 1
        return self._logits if self._resident and len(self._logits) == 1 else self._engine.logits(self._memory)

    def _call(self, x: Floats, steps: int, resident: int) -> int:
        batch = self._shape[0]
        refused: int = compiled.run(
            self._work.fixed, x, self._memory, self._counts, NO_TRACE, steps, self._step, 0, batch, resident
        )
        return refused
