"""From a program to what the compiled loop runs: a table of integers, constants laid out for it, and its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba import opcodes as codes
from axonnx.runtime.engines.numba.bounds import Pools, check_rows
from axonnx.runtime.engines.numba.layout import LANES, Layout, blocked, conv_rows, linear_rows, padded
from axonnx.runtime.engines.numba.pools import Pool, aligned, bit_positions
from axonnx.runtime.engines.numba.storage import Storage, is_synapse
from axonnx.runtime.engines.reference.numpy_ops import move
from axonnx.runtime.format.values import SPIKES
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Conv,
    Instruction,
    Linear,
    Move,
    Neurons,
    PoolPairs,
    Program,
    RecurrentActivity,
    StepRow,
)

DENSE_ABOVE = 0.42  # share of active inputs from which a convolution is faster dense
NEVER = float(np.finfo(np.float32).max)  # the threshold of neurons that are only padding
NO_BIAS, ADD_TO_SUM = -1, -2


class Plan:
    """A program laid out for the compiled loop."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.storage = Storage(program)
        self.floats, self.integers = Pool(), Pool()
        self.integers.add(bit_positions())
        self.rows: list[tuple[int, ...]] = []
        self.at_start = 0  # the first rows list the states' events, once a chunk
        self.row_of: dict[str, int] = {}  # instruction -> its row
        self.trace_places: dict[str, tuple[int, str]] = {}
        self.trace_size = self.outside_size = 0
        self._lower()
        self.table = self._table(self.rows)
        self.synapse_rows = [self.row_of[name] for name in program.synapses]
        self.constants = aligned(self.floats.size, np.float32)
        self.constants[:] = np.concatenate(self.floats.parts) if self.floats.parts else 0.0
        self.tables = np.concatenate(self.integers.parts).astype(np.int32)
        check_rows(self.rows, self.pools, self.tables, program.name)

    @property
    def firing(self) -> list[Neurons]:
        """The layers that spike."""
        return [i for i in self.program.instructions if isinstance(i, Neurons) and i.spike_op != "LeakySum"]

    @property
    def listed(self) -> set[str]:
        """Buffers whose events are needed."""
        synapses = [i for i in self.program.instructions if is_synapse(i)]
        return {self.storage.root(i.reads[0]) for i in synapses}

    def _lower(self) -> None:
        listed = [name for name in self.program.states if self.storage.root(name) in self.listed]
        self.rows += [self._scan(name) for name in listed]
        self.at_start = len(listed)
        for name in (self.program.input, *self.program.noises):
            self._load(name)
        self.rows.append(self._scan_input(self.program.input))
        for instruction in self.program.instructions:
            self._instruction(instruction)
        self._copy_states()

    def _copy_states(self) -> None:
        """Take the new states over as if all at once: what another state was is put aside first."""
        sources = {}
        for state in self.storage.copied:
            source, size = self.program.after[state], self._layout(state).size
            sources[state] = self._at(source)
            if self.storage.root(source) in self.storage.carried and self.storage.root(source) != state:
                sources[state] = self.storage.room(size)
                self.rows.append((codes.COPY, sources[state], self._at(source), size))
        for state, at in sources.items():
            self.rows.append((codes.COPY, self._at(state), at, self._layout(state).size))
            if self.storage.root(state) in self.listed:
                self.rows.append(self._scan(state))

    def _instruction(self, instruction: Instruction) -> None:
        rules: dict[type, Callable[[Any], tuple[int, ...] | None]] = {
            Linear: self._linear,
            Conv: self._conv,
            Neurons: self._neurons,
            Arithmetic: self._arithmetic,
            Move: self._move,
            PoolPairs: self._pool_pairs,
            AveragePool: self._average_pool,
            RecurrentActivity: self._activity,
            StepRow: self._step_row,
        }
        row = rules[type(instruction)](instruction)
        if row is None:
            return
        self.row_of[instruction.name] = len(self.rows)
        self.rows.append(row)
        fired = isinstance(instruction, Neurons) and instruction.spike_op != "LeakySum"
        for name in () if fired else instruction.writes:
            if self.storage.root(name) in self.listed and row[0] not in (codes.LINEAR, codes.CONV):
                self.rows.append(self._scan(name))

    def _at(self, name: str) -> int:
        return self.storage.place(name)

    def _layout(self, name: str) -> Layout:
        return self.storage.layouts[name]

    def _load(self, name: str) -> None:
        layout = self._layout(name)
        channels, pixels = (layout.shape[0], layout.pixels) if layout.image else (1, layout.elements)
        pitch = layout.pitch if layout.image else 1
        self.rows.append((codes.LOAD, self.outside_size, channels, pixels, pitch, self._at(name)))
        self.outside_size += layout.elements

    def _scan(self, name: str) -> tuple[int, ...]:
        events = self.storage.list_of(name)
        return (codes.SCAN, self._at(name), self._layout(name).size, events.at, events.starts)

    def _scan_input(self, name: str) -> tuple[int, ...]:
        return (codes.SCAN_INPUT, *self._scan(name)[1:], self.storage.list_of(name).plain)

    def _synapse(self, i: Linear | Conv, rows: NDArray[np.float32]) -> tuple[int, ...]:
        """The first numbers of a synapse's row: what it reads, its weights, where it adds to, what it begins at."""
        events, graded = self.storage.list_of(i.reads[0]), self.program.buffers[i.reads[0]].values != SPIKES
        begin = self._begin(i)
        out = self._at(i.writes[0])
        return (self._at(i.reads[0]), events.at, events.starts, int(graded), self.floats.add(blocked(rows)), out, begin)

    def _begin(self, i: Linear | Conv) -> int:
        """Where a sum's first values are; of two synapses with one sum, the first brings both biases."""
        together = [i]
        total = self.storage.sums.get(i.writes[0])
        if total is not None:
            together = [s for s in self.program.instructions if is_synapse(s) and s.writes[0] in total.reads]  # type: ignore[misc]
            if i is not together[0]:
                return ADD_TO_SUM
        biases = [self.program.constants[s.bias] for s in together if s.bias is not None]
        if not biases:
            return NO_BIAS
        values = np.zeros(padded(len(biases[0])), np.float32)
        for bias in biases:
            values[: len(bias)] += bias  # exact, as their sum is certified together
        return self.floats.add(values)

    def _linear(self, i: Linear) -> tuple[int, ...]:
        weight = self.program.constants[i.weight]
        first = self._synapse(i, linear_rows(weight))
        events = self.storage.list_of(i.reads[0])
        return (
            codes.LINEAR,
            *first,
            padded(weight.shape[1]) + 1,
            padded(len(weight)),
            events.count,
            len(weight),
            events.plain,
        )

    def _conv(self, i: Conv) -> tuple[int, ...]:
        weight = self.program.constants[i.weight]
        first = self._synapse(i, conv_rows(weight, i.group))
        x, y = self._layout(i.reads[0]), self._layout(i.writes[0])
        inside = (x.shape[1], x.shape[2], x.shape[0], x.pitch, y.shape[1], y.shape[2], y.pitch)
        window = (*weight.shape[2:], *i.strides, i.pads[0], i.pads[1], *i.dilations)
        events = self.storage.list_of(i.reads[0])
        limit = int(DENSE_ABOVE * x.elements)
        zeros = self.storage.room(x.pitch)
        room = [self.storage.window_list(weight.shape[2] * weight.shape[3] * x.pitch) for _ in range(2)]
        return (
            codes.CONV,
            *first,
            *inside,
            *window,
            events.count,
            limit,
            len(weight) // i.group,
            *room,
            zeros,
            events.plain,
        )

    def _neurons(self, i: Neurons) -> tuple[int, ...]:
        layout = self._layout(i.writes[0])
        at = {key: self._at(name) for key, name in i.operands.items()}
        params = {
            key: self._parameter(name, layout, NEVER if key == "threshold" else 0.0)
            for key, name in i.parameters.items()
        }
        if i.spike_op == "LeakySum":
            after, total = (self._at(name) for name in i.writes)
            return (
                codes.LEAKY_SUM,
                layout.size,
                at["current"],
                at["membrane"],
                at["total"],
                after,
                total,
                *params["decay"],
            )
        noisy = "noise" in at
        kind = 0 if "membrane" not in at else 2 if i.spike_op.endswith("ToZero") else 1
        events = self.storage.list_of(i.writes[-1])
        membrane = self._at(i.writes[0]) if kind else -1
        variance = self._at(i.writes[1]) if kind and noisy else -1
        arriving = at.get("arriving_variance", at.get("variance", -1))
        reads = (
            at["current"],
            arriving,
            at.get("noise", -1),
            at.get("membrane", -1),
            at.get("variance", -1),
            at.get("spikes", -1),
        )
        writes = (membrane, variance, self._at(i.writes[-1]))
        constants = [
            number for key in ("decay", "threshold", "base_variance") for number in params.get(key, (0, LANES))
        ]
        code = codes.FIRE_NOISY if noisy else codes.FIRE
        return (code, kind, layout.size, events.at, events.starts, *reads, *writes, *constants, *self._trace(i, kind))

    def _trace(self, i: Neurons, kind: int) -> tuple[int, int]:
        places = []
        for key, name in (("spikes", i.writes[-1]), ("membrane", i.writes[0])):
            if key == "membrane" and not kind:
                places.append(-1)
                continue
            self.trace_places[f"{key}/{i.layer}"] = (self.trace_size, name)
            places.append(self.trace_size)
            self.trace_size += self._layout(name).size
        return places[0], places[1]

    def _parameter(self, name: str, layout: Layout, padding: float) -> tuple[int, int]:
        """Where a constant begins and after how many floats it repeats over a buffer of this layout."""
        values = np.broadcast_to(self.program.constants[name], layout.shape)
        full = layout.pack(values[None], padding)[0]
        for period in (LANES, layout.pitch):
            if period < layout.size and (full.reshape(-1, period) == full[:period]).all():
                return self.floats.add(full[:period]), period
        return self.floats.add(full), layout.size

    def _arithmetic(self, i: Arithmetic) -> tuple[int, ...] | None:
        if any(name in self.storage.sums for name in i.reads):
            return None
        layout = self._layout(i.writes[0])
        operands = [number for name in i.reads for number in self._operand(name, layout)]
        return (codes.ARITHMETIC, ("Add", "Sub", "Mul").index(i.kind), self._at(i.writes[0]), layout.size, *operands)

    def _operand(self, name: str, layout: Layout) -> tuple[int, int, int]:
        """Whether it is a constant, where it begins, and after how many floats it repeats."""
        if name not in self.program.buffers:
            return (1, *self._parameter(name, layout, 0.0))
        own = self._layout(name)
        if own.shape == layout.shape:
            return 0, self._at(name), layout.size
        if layout.image and own.shape == (layout.shape[0], 1, 1):
            return 0, self._at(name), layout.pitch
        return 0, self._spread(name, own, layout), layout.size

    def _spread(self, name: str, own: Layout, layout: Layout) -> int:
        """A copy of a buffer in a larger shape."""
        out = self.storage.room(layout.size)
        self._gather(np.broadcast_to(own.places + self._at(name), layout.shape), layout, out)
        return out

    def _gather(self, sources: NDArray[np.int64], layout: Layout, out: int) -> None:
        table = np.full(layout.size, -1, np.int32)
        table[layout.places.ravel()] = sources.ravel()
        self.rows.append((codes.MOVE, self.integers.add(table), layout.size, out))

    def _move(self, i: Move) -> None:
        out = i.writes[0]
        if out in self.storage.shared:
            return
        sources = move(i, [(self._layout(name).places + self._at(name))[None] for name in i.reads], empty=-1)[0]
        self._gather(sources, self._layout(out), self._at(out))
        if self.storage.root(out) in self.listed:
            self.rows.append(self._scan(out))

    def _pool_pairs(self, i: PoolPairs) -> tuple[int, ...]:
        y = self._layout(i.writes[0])
        return (codes.POOL_PAIRS, self._at(i.reads[0]), self._at(i.writes[0]), y.shape[1], y.shape[2], y.pitch)

    def _average_pool(self, i: AveragePool) -> tuple[int, ...]:
        y = self._layout(i.writes[0])
        return (
            codes.AVERAGE_POOL,
            self._at(i.reads[0]),
            self._at(i.writes[0]),
            y.shape[1],
            y.shape[2],
            y.pitch,
            *i.window,
        )

    def _activity(self, i: RecurrentActivity) -> tuple[int, ...]:
        y = self._layout(i.writes[0])
        return (codes.ACTIVITY, self._at(i.reads[0]), self._at(i.writes[0]), y.elements, y.size)

    def _step_row(self, i: StepRow) -> tuple[int, ...]:
        table, layout = self.program.constants[i.table], self._layout(i.writes[0])
        return (codes.ROW, self._at(i.writes[0]), self.floats.add(layout.pack(table)), layout.size)

    @property
    def pools(self) -> Pools:
        """How large everything is that kernels read and write."""
        return Pools(
            memory=self.storage.memory,
            constants=self.constants.size,
            events=self.storage.events + 16,
            tables=self.tables.size,
            outside=self.outside_size,
            trace=self.trace_size,
            steps=self.program.steps_known or 0,
        )

    def _table(self, rows: list[tuple[int, ...]]) -> NDArray[np.int64]:
        table = np.zeros((len(rows), codes.COLUMNS), np.int64)
        for number, row in enumerate(rows):
            table[number, : len(row)] = row
        return table
