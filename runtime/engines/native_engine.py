"""The native engine: the program is a table of integers over flat memory, and the native core runs it.

One call processes all time steps of a chunk, without Python's global lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import REMEDY, address_of, needed_core
from axonnx.runtime.codegen.layout import LANES
from axonnx.runtime.codegen.order import Order
from axonnx.runtime.codegen.plan import Plan, aligned
from axonnx.runtime.codegen.rows import DENSE_FROM, layout
from axonnx.runtime.engines.float_mode import in_default_mode
from axonnx.runtime.engines.interface import Activity, Chunk, Engine, check_input
from axonnx.runtime.engines.state import State, check_clock, check_state
from axonnx.runtime.program.instructions import Program, trace_sources

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
NO_TRACE = np.zeros(0, np.float32)

POINTERS = ("table", "order", "groups", "tables", "constants", "weights", "memory", "events", "bits", "packed")
NUMBERS = (
    "rows", "turns", "parts", "at_start", "kept", "entering", "traced", "scale", "largest", "slots", "padding",
)  # fmt: skip


class CProgram(ctypes.Structure):
    """The struct ``program`` of native/program.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in NUMBERS),
        ("dense_from", ctypes.c_int64 * len(DENSE_FROM)),
    ]


class PackedState(State):
    """A state in the memory order of the native engine [B, kept]; its arrays are made on first access."""

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
        """Number of samples."""
        return len(self.memory)


class CountedActivity(Activity):
    """Counts of one chunk [B, rows], sorted by layer and synapse on first access."""

    counts: Counts
    plan: Plan

    def __init__(self, counts: Counts, plan: Plan) -> None:
        # A frozen class guards every assignment, and a stream makes two of these objects for each bin.
        self.__dict__.update(counts=counts, plan=plan)

    @cached_property
    def spikes(self) -> Mapping[str, Counts]:
        """Spikes of each layer."""
        return {i.layer: self.counts[:, self.plan.row_of[i.name]] for i in self.plan.firing}

    @cached_property
    def operations(self) -> Mapping[str, Counts]:
        """Operations of each synapse."""
        return {name: self.counts[:, self.plan.row_of[name]] for name in self.plan.program.synapses}

    def plus(self, other: Activity) -> Activity:
        """Return the sum of two chunks, without sorting first."""
        if isinstance(other, CountedActivity) and other.plan is self.plan:
            return CountedActivity(self.counts + other.counts, self.plan)
        return super().plus(other)


class CallArguments(NamedTuple):
    """The arrays of one call: input and noise, states [B, kept], counts [B, rows], trace, and the steps."""

    outside: Floats
    memory: Floats
    counts: Counts
    trace: Floats  # [T, B, …] flattened, or empty
    steps: int
    step: int  # number of the first step


class Workspace:
    """The memory of one thread: values, event lists and bits of spikes, and their addresses for the core."""

    def __init__(self, plan: Plan, order: Order, dense_from: Sequence[int]) -> None:
        entering = plan.program.contract.input
        self.memory = aligned((), np.float32, order.memory)
        self.arrays = (
            order.table,
            order.turns,
            order.groups,
            plan.tables,
            plan.constants,
            plan.weights_in_memory,
            self.memory,
            aligned((), np.int32, order.events),
            np.zeros(plan.storage.memory // LANES + 1, np.uint16),
            aligned((), np.int16, plan.packed_size),
        )
        self.program = CProgram(
            *(array.ctypes.data for array in self.arrays),
            rows=len(plan.rows),
            turns=len(order.turns),
            parts=len(order.groups) - 1,
            at_start=order.at_start,
            kept=plan.storage.kept,
            entering=plan.outside_size,
            traced=plan.trace_size,
            scale=entering.scale,
            largest=entering.largest,
            slots=order.slots,
            padding=plan.padding,
            dense_from=(ctypes.c_int64 * len(DENSE_FROM))(*dense_from),
        )
        self.address = ctypes.addressof(self.program)


class NativeEngine(Engine):
    """Runs a plan of the program; several calls may run at the same time.

    Args:
        program: Program to run.
        threads: Number of threads that share a batch.
        dense_from: Densities from which layers use dense products. The results do not depend on it.
        isa: Instruction set. Default: the processor's best one. The results do not depend on it.
    """

    name = "native"

    def __init__(
        self, program: Program, threads: int = 1, dense_from: Sequence[int] = DENSE_FROM, isa: str | None = None
    ) -> None:
        core = needed_core()
        if core.function("layout", ctypes.c_char_p)().decode() != layout():
            raise AxonnxError(f"the native core was built from other sources than this version of axonnx. {REMEDY}")
        types = [*[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 6]
        self._run = core.function("run", ctypes.c_int64, *types, isa=isa or core.isa)
        self.program, self.threads, self.dense_from = program, threads, dense_from
        self.plan = plan = Plan(program)
        self.order, self.single_steps = Order(plan), Order(plan, slots=1)
        self._workspaces: list[Workspace] = []
        self._results = [plan.storage.place(name) for name in program.logits or program.totals]
        self._classes = len(program.contract.classes)

    def call(self, work: Workspace, given: CallArguments, low: int, high: int, resident: int) -> int:
        """Run samples low … high − 1 in the core; return the first refused sample, or −1.

        A ``resident`` state with its lists of events is already in the workspace, and stays there.
        """
        outside, memory, counts, trace, steps, step = given
        where = (address_of(outside), address_of(memory), address_of(counts), address_of(trace) if trace.size else None)
        refused: int = self._run(work.address, *where, steps, step, len(memory), low, high, resident)
        return refused

    def initial_state(self, batch: int) -> State:
        """Return the state before the first step, all zeros."""
        return PackedState(0, np.zeros((batch, self.plan.storage.kept), np.float32), self.plan)

    @in_default_mode
    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """Run the whole chunk, with one compiled call for each thread."""
        steps, batch = x.shape[0], x.shape[1]
        memory = self.pack(state, batch)
        check_clock(self.program, state.step, steps)
        counts = np.zeros((batch, len(self.plan.rows)), np.int64)
        seen = np.empty((steps, batch, self.plan.trace_size), np.float32) if trace else NO_TRACE
        given = CallArguments(self._outside(x, noise), memory, counts, seen.reshape(-1), steps, state.step)
        refused = self._part(given, 0, batch) if self.threads == 1 else self._parts(given)
        if refused >= 0:
            check_input(self.program, x)
            raise AssertionError("the compiled engine refused an input that the contract allows")
        after = PackedState(state.step + steps, memory, self.plan)
        traces = self._traces(seen) if trace else {}
        return Chunk(after, self.logits(memory), CountedActivity(counts, self.plan), traces)

    def stepper(self, state: State) -> NativeStepper:
        """Return a stepper that keeps the state in the core."""
        return NativeStepper(self, state)

    def _parts(self, given: CallArguments) -> int:
        """Split the batch equally among the threads."""
        batch = len(given.memory)
        parts = min(self.threads, batch)
        cuts = [batch * part // parts for part in range(parts + 1)]
        if parts == 1:
            return self._part(given, 0, batch)
        with ThreadPoolExecutor(parts) as pool:
            jobs = [pool.submit(self._part, given, low, high) for low, high in pairwise(cuts)]
            return max(job.result() for job in jobs)

    @in_default_mode
    def _part(self, given: CallArguments, low: int, high: int) -> int:
        """Run samples low … high − 1; the compiled loop does not hold Python's global lock."""
        work = self._free_workspace()
        refused = self.call(work, given, low, high, 0)
        self._workspaces.append(work)
        return refused

    def _free_workspace(self) -> Workspace:
        try:
            return self._workspaces.pop()
        except IndexError:  # checking first would not help: another thread may take the last workspace in between
            return Workspace(self.plan, self.order, self.dense_from)

    def _outside(self, x: Floats, noise: Mapping[str, Floats]) -> Floats:
        """Return input and noise of each step side by side, [T, B, …] flattened."""
        if not self.program.noises:
            return np.ascontiguousarray(x).reshape(-1)
        parts = [x, *(noise[name] for name in self.program.noises)]
        return np.concatenate([part.reshape(*x.shape[:2], -1) for part in parts], axis=2).reshape(-1)

    def pack(self, state: State, batch: int) -> Floats:
        """Return a copy of any state in the order of the memory."""
        if self.program.states and state.batch != batch:
            raise AxonnxError(
                f"{self.program.name}: the state has {state.batch} samples, but the input has {batch}; use equal "
                f"numbers"
            )
        if type(state) is PackedState and state.plan is self.plan:
            return state.memory.copy()
        storage, arrays = self.plan.storage, check_state(self.program, state).arrays
        memory = np.zeros((batch, storage.kept), np.float32)
        for name in self.program.states:
            layout, at = storage.layouts[name], storage.place(name)
            memory[:, at : at + layout.size] = layout.pack(arrays[name])
        return memory

    def logits(self, memory: Floats) -> Floats:
        """Return a view of the new state; states are never changed after they are made."""
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


class NativeStepper:
    """Runs single steps with one compiled call each. A single sample stays in the memory of the compiled loop."""

    def __init__(self, engine: NativeEngine, state: State) -> None:
        self._engine, self._step = engine, state.step
        self._work, self._memory = (
            Workspace(engine.plan, engine.single_steps, engine.dense_from),
            engine.pack(state, state.batch),
        )
        self._counts = np.zeros((state.batch, len(engine.plan.rows)), np.int64)
        self._shape, self._known = (state.batch, *engine.program.contract.input.shape), engine.program.steps_known
        self._call(np.zeros(0, np.float32), 0, 0)  # loads the state and lists its events
        self._resident = int(state.batch == 1)
        if self._resident:
            self._memory = self._work.memory[None, : engine.plan.storage.kept]
        self._logits = engine.logits(self._memory)

    @property
    def state(self) -> State:
        """State after the last step."""
        return PackedState(self._step, self._memory.copy(), self._engine.plan)

    @in_default_mode
    def step(self, x: Floats) -> Floats:
        """Run one step, as ``Stepper`` states. The next step may overwrite the returned array."""
        if x.shape != self._shape or x.dtype != np.float32:
            raise AxonnxError(f"the input is {x.dtype} {list(x.shape)}; expected float32 {list(self._shape)}")
        if self._known is not None and self._step >= self._known:
            check_clock(self._engine.program, self._step, 1)
        if self._call(x.reshape(-1), 1, self._resident) >= 0:
            check_input(self._engine.program, x[None])
        self._step += 1
        return self._logits if self._resident and len(self._logits) == 1 else self._engine.logits(self._memory)

    def _call(self, x: Floats, steps: int, resident: int) -> int:
        given = CallArguments(x, self._memory, self._counts, NO_TRACE, steps, self._step)
        return self._engine.call(self._work, given, 0, self._shape[0], resident)
