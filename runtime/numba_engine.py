"""The compiled engine: the whole chunk in one call, event lists, several threads over a batch."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engine import Activity, Chunk, check_input, trace_sources
from axonnx.runtime.numba_interpreter import run
from axonnx.runtime.numba_plan import Plan, aligned
from axonnx.runtime.program import Program
from axonnx.runtime.state import State, check_state

Floats = NDArray[np.float32]
NO_TRACE = np.zeros((0, 0, 0), np.float32)


class PackedState(State):
    """A state in the order of the compiled engine's memory [B, kept]; arrays are made of it when asked for."""

    def __init__(self, step: int, memory: Floats, plan: Plan) -> None:
        self._step, self.memory, self.plan = step, memory, plan

    @cached_property
    def arrays(self) -> Mapping[str, Floats]:  # type: ignore[override]
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


class NumbaEngine:
    """Runs a plan of the program; any number of calls may run at once."""

    name = "numba"

    def __init__(self, program: Program, threads: int = 1) -> None:
        self.program, self.threads = program, threads
        self.plan = Plan(program)
        self._workspaces: list[tuple[Floats, NDArray[np.int32]]] = []

    def initial_state(self, batch: int) -> State:
        """Silence."""
        return PackedState(0, np.zeros((batch, self.plan.storage.kept), np.float32), self.plan)

    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """The whole chunk in one compiled call for each thread."""
        steps, batch = x.shape[:2]
        memory = (
            state.memory.copy()
            if isinstance(state, PackedState) and state.plan is self.plan
            else self._pack(state, batch)
        )
        outside = self._outside(x, noise)
        counts = np.zeros((batch, len(self.plan.table)), np.int64)
        seen = np.empty((steps, batch, self.plan.trace_size), np.float32) if trace else NO_TRACE
        self._run(outside, memory, counts, seen, state.step, x)
        after = PackedState(state.step + steps, memory, self.plan)
        return Chunk(after, self._logits(memory), self._activity(counts), self._traces(seen) if trace else {})

    def _run(
        self, outside: Floats, memory: Floats, counts: NDArray[np.int64], seen: Floats, step: int, x: Floats
    ) -> None:
        batch = len(memory)
        parts = min(self.threads, batch)
        if parts <= 1:
            refused = [self._part(outside, memory, counts, seen, step, 0, batch)]
        else:
            cuts = [batch * part // parts for part in range(parts + 1)]
            with ThreadPoolExecutor(parts) as pool:
                jobs = [
                    pool.submit(self._part, outside, memory, counts, seen, step, low, high)
                    for low, high in pairwise(cuts)
                ]
                refused = [job.result() for job in jobs]
        if max(refused) >= 0:
            check_input(self.program, x)
            raise AssertionError("the compiled engine refused an input that the contract admits")

    def _part(
        self, outside: Floats, memory: Floats, counts: NDArray[np.int64], seen: Floats, step: int, low: int, high: int
    ) -> int:
        plan = self.plan
        work = self._workspaces.pop() if self._workspaces else self._workspace()
        refused: int = run(
            plan.table, plan.at_start, work[0], plan.constants, work[1], plan.tables, outside, memory, counts, seen,
            plan.limits, step, low, high,
        )  # fmt: skip
        self._workspaces.append(work)
        return refused

    def _workspace(self) -> tuple[Floats, NDArray[np.int32]]:
        return aligned(self.plan.storage.memory, np.float32), aligned(self.plan.storage.events + 16, np.int32)

    def _outside(self, x: Floats, noise: Mapping[str, Floats]) -> Floats:
        steps, batch = x.shape[:2]
        flat = np.ascontiguousarray(x).reshape(steps, batch, -1)
        if not self.program.noises:
            return flat
        parts = [noise[name].reshape(steps, batch, -1) for name in self.program.noises]
        return np.concatenate([flat, *parts], axis=2)

    def _pack(self, state: State, batch: int) -> Floats:
        storage, arrays = self.plan.storage, check_state(self.program, state).arrays
        memory = np.zeros((batch, storage.kept), np.float32)
        for name in self.program.states:
            layout, at = storage.layouts[name], storage.place(name)
            memory[:, at : at + layout.size] = layout.pack(arrays[name])
        return memory

    def _logits(self, memory: Floats) -> Floats:
        classes = len(self.program.contract.classes)
        places = [self.plan.storage.place(name) for name in self.program.logits or self.program.totals]
        return np.stack([memory[:, at : at + classes] for at in places])

    def _activity(self, counts: NDArray[np.int64]) -> Activity:
        rows = self.plan.row_of
        spikes = {i.layer: counts[:, rows[i.name]] for i in self.plan.firing}
        return Activity(spikes, {name: counts[:, rows[name]] for name in self.program.synapses})

    def _traces(self, seen: Floats) -> dict[str, Floats]:
        found = {}
        for name in trace_sources(self.program):
            at, buffer = self.plan.trace_places[name]
            layout = self.plan.storage.layouts[buffer]
            found[name] = layout.unpack(seen[..., at : at + layout.size])
        return found
