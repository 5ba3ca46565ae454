"""Lay out a program for the native core: a table of integers, constants, and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen import rows as kinds
from axonnx.runtime.codegen.bounds import Pools, check_rows
from axonnx.runtime.codegen.layout import LANES, Layout, padded
from axonnx.runtime.codegen.storage import Storage, is_synapse
from axonnx.runtime.codegen.weights import Weights, dense_channels, prepare_weights
from axonnx.runtime.format.names import MEMBRANE as MEMBRANE_OF
from axonnx.runtime.format.names import SPIKES as SPIKES_OF
from axonnx.runtime.format.opset import OPS, SpikeOp
from axonnx.runtime.format.values import UNITS
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Conv,
    Instruction,
    Linear,
    MaxPool,
    Move,
    Neurons,
    PoolPairs,
    Program,
    RecurrentActivity,
    StepRow,
)

NEVER = float(np.finfo(np.float32).max)  # the threshold of neurons that are only padding
CACHE_LINE = 64  # bytes; each synapse's weights begin at a multiple
MOST_PACKED = 2**22  # numbers of a padded image for dense products; larger images use events at any density


@dataclass
class Pool:
    """Constants of one type, one after the other, each aligned to a multiple of ``step``."""

    step: int
    parts: list[NDArray[Any]] = field(default_factory=list)
    size: int = 0

    def add(self, values: NDArray[Any]) -> int:
        """Append values and return their position."""
        filler = -values.size % self.step
        begin, self.size = self.size, self.size + values.size + filler
        self.parts += [values.ravel(), np.zeros(filler, values.dtype)]
        return begin


@dataclass
class WeightPool:
    """Weights of every width, one after the other, aligned to cache lines; sizes and positions count cache lines."""

    parts: list[NDArray[Any]] = field(default_factory=list)
    size: int = 0

    def add(self, values: NDArray[Any]) -> int:
        """Append values and return their position."""
        begin, each = self.size, CACHE_LINE // values.itemsize
        self.parts.append(np.concatenate([values, np.zeros(-values.size % each, values.dtype)]))
        self.size += self.parts[-1].nbytes // CACHE_LINE
        return begin


class Plan:
    """A program laid out for the native core.

    Args:
        program: Program to lay out.
        padding: Sizes of buffers are multiples of it: 16 for vectors, 1 for a microcontroller.
        dense: Store weights a second time, for dense products.
    """

    def __init__(self, program: Program, padding: int = LANES, dense: bool = True) -> None:
        self.program, self.padding, self.dense = program, padding, dense
        self.storage = Storage(program, padding)
        self.floats, self.integers, self.weights = Pool(padding), Pool(padding), WeightPool()
        self.packed_size = 0  # for the inputs of a dense layer
        self.rows: list[kinds.AnyRow] = []
        self.at_start = 0  # the first rows list the states' events, once per chunk
        self.row_of: dict[str, int] = {}  # instruction -> its row
        self.owners: list[str] = []  # for each row, the instruction that it belongs to; empty for the first rows
        self.trace_places: dict[str, tuple[int, str]] = {}
        self.trace_size = self.outside_size = 0
        self._lower()
        self.table = table_of(self.rows)
        self.constants = aligned(self.floats.parts, np.float32)
        self.tables = aligned(self.integers.parts, np.int32)
        check_rows(self.rows, self.pools, self.tables, program.name)

    @cached_property
    def weights_in_memory(self) -> NDArray[np.int8]:
        """All weights as bytes."""
        return aligned(self.weights.parts, np.int8)

    @property
    def firing(self) -> list[Neurons]:
        """Layers that fire."""
        return [i for i in self.program.instructions if isinstance(i, Neurons) and fires(i)]

    @property
    def listed(self) -> set[str]:
        """Buffers whose events are needed."""
        synapses = [i for i in self.program.instructions if is_synapse(i)]
        return {self.storage.root(i.reads[0]) for i in synapses}

    @property
    def pools(self) -> Pools:
        """Sizes of everything that kernels read and write."""
        return Pools(
            memory=self.storage.memory,
            constants=self.floats.size,
            weights=self.weights.size,
            events=self.storage.events,
            packed=self.packed_size,
            tables=self.integers.size,
            outside=self.outside_size,
            trace=self.trace_size,
            steps=self.program.steps_known or 0,
            slack=self.storage.slack,
        )

    def is_old(self, name: str) -> bool:
        """Return whether a name refers to the value of a state before the step."""
        new = set(self.program.after.values())
        while name not in new and name in self.storage.shared:
            name = self.storage.shared[name]
        return name not in new and name in self.program.states

    def _lower(self) -> None:
        listed = [name for name in self.program.states if self.storage.root(name) in self.listed]
        self.rows += [self._scan(name) for name in listed]
        self.at_start = len(listed)
        for name in (self.program.input, *self.program.noises):
            self._load(name)
        scanned = self._scan(self.program.input)._asdict() | {"code": kinds.CODE[kinds.ScanInput]}
        self.rows.append(kinds.ScanInput(**scanned, plain=self.storage.list_of(self.program.input).plain))
        self.owners = [""] * len(self.rows)
        for instruction in self.program.instructions:
            self._instruction(instruction)
            self.owners += [instruction.name] * (len(self.rows) - len(self.owners))
        self._copy_states()

    def _copy_states(self) -> None:
        """Replace all states at the same time: save a state first if another state takes its old value."""
        sources = {}
        for state in self.storage.copied:
            source, size = self.program.after[state], self._layout(state).size
            sources[state] = self._at(source)
            if self.storage.root(source) in self.storage.carried and self.storage.root(source) != state:
                sources[state] = self.storage.room(size)
                self._add(kinds.Copy, out=sources[state], source=self._at(source), size=size)
        for state, at in sources.items():
            self._add(kinds.Copy, out=self._at(state), source=at, size=self._layout(state).size)
            if self.storage.root(state) in self.listed:
                self.rows.append(self._scan(state))

    def _add(self, row: type[Any], /, **columns: int) -> None:
        self.rows.append(row(kinds.CODE[row], **columns))

    def _instruction(self, instruction: Instruction) -> None:
        rules: dict[type, Callable[[Any], None]] = {
            Linear: self._linear,
            Conv: self._conv,
            Neurons: self._neurons,
            Arithmetic: self._arithmetic,
            Move: self._move,
            PoolPairs: self._pool,
            AveragePool: self._pool,
            MaxPool: self._pool,
            RecurrentActivity: self._activity,
            StepRow: self._step_row,
        }
        if type(instruction) not in rules:
            raise AxonnxError(
                f"{self.program.name}: node {instruction.name!r} ({instruction.op}) is unknown to the native core; "
                f"known are {', '.join(rule.__name__ for rule in rules)}. Use another engine"
            )
        before = len(self.rows)
        rules[type(instruction)](instruction)
        if len(self.rows) == before:
            return
        if not isinstance(instruction, Move):
            self.row_of[instruction.name] = len(self.rows) - 1
        fired = isinstance(instruction, Neurons) and fires(instruction)
        for name in () if fired or is_synapse(instruction) else instruction.writes:
            if self.storage.root(name) in self.listed:
                self.rows.append(self._scan(name))

    def _at(self, name: str) -> int:
        return self.storage.place(name)

    def _layout(self, name: str) -> Layout:
        return self.storage.layouts[name]

    def _load(self, name: str) -> None:
        layout = self._layout(name)
        channels, pixels = (layout.shape[0], layout.pixels) if layout.image else (1, layout.elements)
        pitch = layout.pitch if layout.image else 1
        at, out = self.outside_size, self._at(name)
        self._add(kinds.Load, at=at, channels=channels, pixels=pixels, pitch=pitch, out=out)
        self.outside_size += layout.elements

    def _scan(self, name: str) -> kinds.Scan:
        events, layout = self.storage.list_of(name), self._layout(self.storage.root(name))
        return kinds.Scan(
            kinds.CODE[kinds.Scan],
            source=self._at(name),
            size=layout.size,
            pitch=layout.pitch,
            listed=events.at,
            starts=events.starts,
        )

    def _synapse(self, i: Linear | Conv, dense: bool) -> dict[str, int]:
        """Return the columns of both kinds of synapses: input, weights, output and initial sum."""
        events, x = self.storage.list_of(i.reads[0]), self.program.buffers[i.reads[0]].values
        weights = prepare_weights(i, self.program.constants[i.weight], x, self.padding, dense)
        return {
            "bias": self._begin(i),
            "out": self._at(i.writes[0]),
            "source": self._at(i.reads[0]),
            "listed": events.at,
            "starts": events.starts,
            "counted": events.count,
            "plain": events.plain,
            "graded": int(x.kind != "spikes"),
            "bits": x.bits,
            "old": int(self.is_old(i.reads[0])),
            **self._weights(weights),
        }

    def _weights(self, weights: Weights) -> dict[str, int]:
        return {
            "weights": self.weights.add(weights.rows),
            "stored": weights.stored,
            "unit": weights.unit,
            "dense": kinds.NOWHERE if weights.tiles is None else self.weights.add(weights.tiles),
            "dense_stored": weights.dense_stored,
        }

    def _begin(self, i: Linear | Conv) -> int:
        """Return the position of a sum's first values; of two synapses with one sum, the first adds both biases."""
        together = [i]
        total = self.storage.sums.get(i.writes[0])
        if total is not None:
            together = [s for s in self.program.instructions if is_synapse(s) and s.writes[0] in total.reads]  # type: ignore[misc]
            if i is not together[0]:
                return kinds.ADD_TO_SUM
        biases = [self.program.constants[s.bias] for s in together if s.bias is not None]
        if not biases:
            return kinds.NO_BIAS
        values = np.zeros(padded(len(biases[0]), self.padding), np.float32)
        for bias in biases:
            values[: len(bias)] += bias  # exact, because their sum is certified
        return self.floats.add(values)

    def _linear(self, i: Linear) -> None:
        outputs, inputs = self.program.constants[i.weight].shape
        inputs = padded(inputs, self.padding)
        if self.dense:
            self.packed_size = max(self.packed_size, inputs * kinds.SLOTS)
        size = padded(outputs, self.padding)
        self._add(kinds.Linear, **self._synapse(i, self.dense), inputs=inputs, size=size, outputs=outputs)

    def _conv(self, i: Conv) -> None:
        weight = self.program.constants[i.weight]
        x, y = self._layout(i.reads[0]), self._layout(i.writes[0])
        window, reach = weight.shape[2] * weight.shape[3] * x.pitch, _reach(i, weight, y)
        channels = dense_channels(i, weight)
        offsets = [
            (ky * i.dilations[0] * reach[1] + kx * i.dilations[1]) * channels for ky, kx in np.ndindex(weight.shape[2:])
        ]
        if not self.dense or reach[0] * reach[1] * channels > MOST_PACKED:
            reach = (0, 0)
        self.packed_size = max(self.packed_size, reach[0] * reach[1] * channels)
        self._add(
            kinds.Conv,
            **self._synapse(i, dense=reach != (0, 0)),
            height=x.shape[1],
            width=x.shape[2],
            channels=x.shape[0],
            pitch=x.pitch,
            out_height=y.shape[1],
            out_width=y.shape[2],
            out_pitch=y.pitch,
            window_height=weight.shape[2],
            window_width=weight.shape[3],
            stride_y=i.strides[0],
            stride_x=i.strides[1],
            top=i.pads[0],
            left=i.pads[1],
            dilation_y=i.dilations[0],
            dilation_x=i.dilations[1],
            outputs=len(weight) // i.group,
            rows=self.storage.window_list(window),
            sources=self.storage.window_list(window),
            scratch=self.storage.room(2 * y.shape[2] * y.pitch),
            dense_height=reach[0],
            dense_width=reach[1],
            dense_channels=channels,
            offsets=self.integers.add(np.array(offsets, np.int32)),
        )

    def _neurons(self, i: Neurons) -> None:
        """Add a layer; its constants follow each other in the order of the operator's inputs."""
        op, layout = OPS[i.spike_op], self._layout(i.writes[0])
        after = dict(zip(op.outputs, map(self._at, i.writes), strict=True))
        before = {name: self._at(i.operands[name]) for name in op.operands}
        packed = [self._packed(i.parameters[key], layout, _padding(op, key)) for key in op.parameters]
        same = all((full == full[0]).all() for full in packed)
        by_channel = all((full.reshape(-1, layout.pitch) == full[: layout.pitch]).all() for full in packed)
        period = self.padding if same else layout.pitch if by_channel else layout.size
        events = self.storage.list_of(i.writes[-1]) if op.spikes else None
        trace_spikes, trace_membrane = self._trace(i) if op.spikes else (kinds.NOWHERE, kinds.NOWHERE)
        self._add(
            kinds.Neurons,
            op=kinds.NEURONS.index(op),
            size=layout.size,
            pitch=layout.pitch,
            fires=int(op.spikes is not None),
            listed=events.at if events else 0,
            starts=events.starts if events else 0,
            constants=self.floats.add(np.concatenate([full[:period] for full in packed])),
            period=period,
            same=int(same),
            each=int(not by_channel),
            spikes=before.get("spikes", 0),
            next_spikes=after[op.spikes] if op.spikes else 0,
            membrane=after.get("next_membrane", 0),
            trace_spikes=trace_spikes,
            trace_membrane=trace_membrane,
            **{f"in_{number}": at for number, at in enumerate(before.values())},
            **{f"out_{number}": at for number, at in enumerate(after.values())},
        )

    def _trace(self, i: Neurons) -> tuple[int, int]:
        places = []
        for prefix, name in ((SPIKES_OF, i.writes[-1]), (MEMBRANE_OF, i.writes[0])):
            if prefix == MEMBRANE_OF and "next_membrane" not in OPS[i.spike_op].outputs:
                places.append(kinds.NOWHERE)
                continue
            self.trace_places[prefix + i.layer] = (self.trace_size, name)
            places.append(self.trace_size)
            self.trace_size += self._layout(name).size
        return places[0], places[1]

    def _packed(self, name: str, layout: Layout, padding: float) -> NDArray[np.float32]:
        """Return a constant, expanded to all elements of a buffer."""
        values = np.broadcast_to(self.program.constants[name], layout.shape)
        packed: NDArray[np.float32] = layout.pack(values[None], padding)[0]
        return packed

    def _arithmetic(self, i: Arithmetic) -> None:
        if any(name in self.storage.sums for name in i.reads):
            return
        layout = self._layout(i.writes[0])
        (a_constant, a, a_period), (b_constant, b, b_period) = (self._operand(name, layout) for name in i.reads)
        self._add(
            kinds.Arithmetic,
            kind={"Add": kinds.ADD, "Sub": kinds.SUB, "Mul": kinds.MUL}[i.kind],
            out=self._at(i.writes[0]),
            size=layout.size,
            a_constant=a_constant,
            a=a,
            a_period=a_period,
            b_constant=b_constant,
            b=b,
            b_period=b_period,
        )

    def _operand(self, name: str, layout: Layout) -> tuple[int, int, int]:
        """Return whether an operand is constant, its position, and its period in floats."""
        if name not in self.program.buffers:
            full = self._packed(name, layout, 0.0)
            period = _period(full, layout)
            return 1, self.floats.add(full[:period]), period
        own = self._layout(name)
        if own.shape == layout.shape:
            return 0, self._at(name), layout.size
        if layout.image and own.shape == (layout.shape[0], 1, 1):
            return 0, self._at(name), layout.pitch
        out = self.storage.room(layout.size)  # a copy with the larger shape
        self._gather(np.broadcast_to(own.places + self._at(name), layout.shape), layout, out)
        return 0, out, layout.size

    def _gather(self, sources: NDArray[np.int64], layout: Layout, out: int) -> None:
        table = np.full(layout.size, -1, np.int32)
        table[layout.places.ravel()] = sources.ravel()
        self._add(kinds.Move, table=self.integers.add(table), size=layout.size, out=out)

    def _move(self, i: Move) -> None:
        out = i.writes[0]
        if out in self.storage.shared:
            return
        sources = i.apply([(self._layout(name).places + self._at(name))[None] for name in i.reads], empty=-1)[0]
        self._gather(sources, self._layout(out), self._at(out))

    def _pool(self, i: PoolPairs | AveragePool | MaxPool) -> None:
        y, window = self._layout(i.writes[0]), (2, 2) if isinstance(i, PoolPairs) else i.window
        self._add(
            kinds.Pool,
            kind={PoolPairs: kinds.PAIRS, AveragePool: kinds.MEANS, MaxPool: kinds.LARGEST}[type(i)],
            source=self._at(i.reads[0]),
            out=self._at(i.writes[0]),
            height=y.shape[1],
            width=y.shape[2],
            pitch=y.pitch,
            rows=window[0],
            columns=window[1],
        )

    def _activity(self, i: RecurrentActivity) -> None:
        y, source, out = self._layout(i.writes[0]), self._at(i.reads[0]), self._at(i.writes[0])
        self._add(kinds.Activity, source=source, out=out, neurons=y.elements, size=y.size)

    def _step_row(self, i: StepRow) -> None:
        layout = self._layout(i.writes[0])
        table = self.floats.add(layout.pack(self.program.constants[i.table]))
        self._add(kinds.StepRow, out=self._at(i.writes[0]), table=table, size=layout.size)


def table_of(rows: list[kinds.AnyRow]) -> NDArray[np.int32]:
    """Return the rows as the native core reads them; the last columns of short rows are zero."""
    table = np.zeros((len(rows), kinds.COLUMNS), np.int32)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def aligned(parts: Sequence[NDArray[Any]], dtype: type[np.generic], size: int = 0) -> NDArray[Any]:
    """Return arrays one after the other, or ``size`` zeros, aligned to a cache line and followed by another line."""
    parts = [part.view(dtype) for part in parts]
    size, width = max(size, sum(part.size for part in parts)), np.dtype(dtype).itemsize
    line = CACHE_LINE // width
    raw = np.zeros(size + 2 * line, dtype)
    skip = (-raw.ctypes.data % CACHE_LINE) // width
    found = raw[skip : skip + size + line]
    if parts:
        np.concatenate(parts, out=found[: sum(part.size for part in parts)])
    return found


def _reach(i: Conv, weight: NDArray[np.float32], y: Layout) -> tuple[int, int]:
    """Return how many rows and columns of a padded image the windows of all outputs cover."""
    down, across = (
        (y.shape[1 + axis] - 1) * i.strides[axis] + (weight.shape[2 + axis] - 1) * i.dilations[axis] + 1
        for axis in (0, 1)
    )
    return down, across


def _padding(op: SpikeOp, parameter: str) -> float:
    """Return the value of a parameter where there is no neuron."""
    if parameter.endswith("scale"):
        return 1.0  # a divisor
    if parameter == "threshold":
        return UNITS if op.integers else NEVER
    return 0.0


def _period(full: NDArray[np.float32], layout: Layout) -> int:
    """Return a constant's period in floats: one for all, one for each channel, or one for each neuron."""
    for period in (layout.padding, layout.pitch):
        if period < layout.size and (full.reshape(-1, period) == full[:period]).all():
            return period
    return layout.size


def fires(neurons: Neurons) -> bool:
    """Return whether a layer fires; a read-out does not."""
    return OPS[neurons.spike_op].spikes is not None
