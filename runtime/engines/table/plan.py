"""From a program to what the compiled loop runs: a table of integers, constants laid out for it, and its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.reference.numpy_ops import move
from axonnx.runtime.engines.table import rows as kinds
from axonnx.runtime.engines.table.bounds import Pools, check_rows
from axonnx.runtime.engines.table.layout import LANES, WIDEST, Layout, blocked, padded, weight_rows
from axonnx.runtime.engines.table.narrow import BYTES, FLOATS, SHORTS, Narrow
from axonnx.runtime.engines.table.pools import CACHE_LINE, Pool, aligned, bit_positions
from axonnx.runtime.engines.table.storage import Storage, is_synapse
from axonnx.runtime.format.names import MEMBRANE as MEMBRANE_OF
from axonnx.runtime.format.names import SPIKES as SPIKES_OF
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import SPIKES
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

DENSE_ABOVE = 0.42  # share of active inputs from which a convolution is faster dense
NEVER = float(np.finfo(np.float32).max)  # the threshold of neurons that are only padding

Places = dict[str, int]
Parameters = dict[str, tuple[int, int]]  # where each begins, and after how many floats it repeats


class Plan:
    """A program laid out for a compiled loop, whose sums over ``widest`` outputs stay in registers.

    ``narrow``: the weights that the loop takes as integers, by the name of their synapse.
    """

    def __init__(self, program: Program, widest: int = WIDEST, narrow: Mapping[str, Narrow] | None = None) -> None:
        self.program, self.widest, self.narrow = program, widest, narrow or {}
        self.integer_weights: dict[int, Narrow] = {}  # by where the floats begin
        self.storage = Storage(program)
        self.floats, self.integers = Pool(), Pool()
        self.integers.add(bit_positions())
        self.rows: list[kinds.AnyRow] = []
        self.at_start = 0  # the first rows list the states' events, once a chunk
        self.row_of: dict[str, int] = {}  # instruction -> its row
        self.owners: list[str] = []  # of each row, the instruction that it is for; none for the first rows
        self.trace_places: dict[str, tuple[int, str]] = {}
        self.trace_size = self.outside_size = 0
        self._lower()
        self.table = self.table_of(self.rows)
        self.synapse_rows = np.zeros(len(self.rows), np.int64)  # 1 where a row is a synapse's
        self.synapse_rows[[self.row_of[name] for name in program.synapses]] = 1
        self.constants = aligned(self.floats.size, np.float32)
        self.constants[:] = np.concatenate(self.floats.parts) if self.floats.parts else 0.0
        self.shorts, self.bytes = self._integers(SHORTS, np.int16), self._integers(BYTES, np.int8)
        self.tables = np.concatenate(self.integers.parts).astype(np.int32)
        check_rows(self.rows, self.pools, self.tables, program.name)

    @property
    def firing(self) -> list[Neurons]:
        """The layers that spike."""
        return [i for i in self.program.instructions if isinstance(i, Neurons) and fires(i)]

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
        self.owners = [""] * len(self.rows)
        for instruction in self.program.instructions:
            self._instruction(instruction)
            self.owners += [instruction.name] * (len(self.rows) - len(self.owners))
        self._copy_states()

    def _copy_states(self) -> None:
        """Take the new states over as if all at once: what another state was is put aside first."""
        sources = {}
        for state in self.storage.copied:
            source, size = self.program.after[state], self._layout(state).size
            sources[state] = self._at(source)
            if self.storage.root(source) in self.storage.carried and self.storage.root(source) != state:
                sources[state] = self.storage.room(size)
                self.rows.append(kinds.Copy(kinds.COPY, out=sources[state], source=self._at(source), size=size))
        for state, at in sources.items():
            self.rows.append(kinds.Copy(kinds.COPY, out=self._at(state), source=at, size=self._layout(state).size))
            if self.storage.root(state) in self.listed:
                self.rows.append(self._scan(state))

    def _instruction(self, instruction: Instruction) -> None:
        rules: dict[type, Callable[[Any], kinds.AnyRow | None]] = {
            Linear: self._linear,
            Conv: self._conv,
            Neurons: self._neurons,
            Arithmetic: self._arithmetic,
            Move: self._move,
            PoolPairs: self._pool_pairs,
            AveragePool: self._window_pool,
            MaxPool: self._window_pool,
            RecurrentActivity: self._activity,
            StepRow: self._step_row,
        }
        row = rules[type(instruction)](instruction)
        if row is None:
            return
        self.row_of[instruction.name] = len(self.rows)
        self.rows.append(row)
        fired = isinstance(instruction, Neurons) and fires(instruction)
        for name in () if fired else instruction.writes:
            if self.storage.root(name) in self.listed and not isinstance(row, kinds.Linear | kinds.Conv):
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
        self.rows.append(kinds.Load(kinds.LOAD, at=at, channels=channels, pixels=pixels, pitch=pitch, out=out))
        self.outside_size += layout.elements

    def _scan(self, name: str) -> kinds.Scan:
        events, size = self.storage.list_of(name), self._layout(name).size
        return kinds.Scan(kinds.SCAN, source=self._at(name), size=size, listed=events.at, starts=events.starts)

    def _scan_input(self, name: str) -> kinds.ScanInput:
        fields = {**self._scan(name)._asdict(), "code": kinds.SCAN_INPUT}
        return kinds.ScanInput(**fields, plain=self.storage.list_of(name).plain)

    def _synapse(self, i: Linear | Conv) -> dict[str, int]:
        """What both kinds of synapse say: what it reads, its weights, where it adds to, what it begins at."""
        events, graded = self.storage.list_of(i.reads[0]), self.program.buffers[i.reads[0]].values != SPIKES
        rows = weight_rows(i, self.program.constants[i.weight])
        weights, narrow = self.floats.add(blocked(rows, self.widest), CACHE_LINE), self.narrow.get(i.name)
        if narrow is not None:
            self.integer_weights[weights] = narrow._replace(numbers=blocked(narrow.numbers, self.widest))
        return {
            "bias": self._begin(i),
            "out": self._at(i.writes[0]),
            "source": self._at(i.reads[0]),
            "listed": events.at,
            "starts": events.starts,
            "counted": events.count,
            "plain": events.plain,
            "graded": int(graded),
            "weights": weights,
            "stored": FLOATS if narrow is None else narrow.stored,
            "unit": 0 if narrow is None else narrow.unit,
        }

    def _begin(self, i: Linear | Conv) -> int:
        """Where a sum's first values are; of two synapses with one sum, the first brings both biases."""
        together = [i]
        total = self.storage.sums.get(i.writes[0])
        if total is not None:
            together = [s for s in self.program.instructions if is_synapse(s) and s.writes[0] in total.reads]  # type: ignore[misc]
            if i is not together[0]:
                return kinds.ADD_TO_SUM
        biases = [self.program.constants[s.bias] for s in together if s.bias is not None]
        if not biases:
            return kinds.NO_BIAS
        values = np.zeros(padded(len(biases[0])), np.float32)
        for bias in biases:
            values[: len(bias)] += bias  # exact, as their sum is certified together
        return self.floats.add(values)

    def _linear(self, i: Linear) -> kinds.Linear:
        weight = self.program.constants[i.weight]
        return kinds.Linear(
            kinds.LINEAR,
            **self._synapse(i),
            inputs=padded(weight.shape[1]) + 1,
            size=padded(len(weight)),
            outputs=len(weight),
        )

    def _conv(self, i: Conv) -> kinds.Conv:
        weight = self.program.constants[i.weight]
        first = self._synapse(i)
        x, y = self._layout(i.reads[0]), self._layout(i.writes[0])
        window = weight.shape[2] * weight.shape[3] * x.pitch
        return kinds.Conv(
            kinds.CONV,
            **first,
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
            dense_above=int(DENSE_ABOVE * x.elements),
            outputs=len(weight) // i.group,
            zeros=self.storage.room(x.pitch),
            rows=self.storage.window_list(window),
            inputs=self.storage.window_list(window),
        )

    def _neurons(self, i: Neurons) -> kinds.AnyRow:
        layout = self._layout(i.writes[0])
        at = {key: self._at(name) for key, name in i.operands.items()}
        code, _ = kinds.KERNELS[i.spike_op]
        if code == kinds.FIRE_GENERAL:
            return self._general(i, at, layout)
        params = {key: self._parameter(name, layout, _padding(key)) for key, name in i.parameters.items()}
        if code == kinds.LEAKY_CURRENT:
            return self._leaky_current(i, at, params)
        return self._fire(i, at, params) if fires(i) else self._leaky_sum(i, at, params)

    def _general(self, i: Neurons, at: Places, layout: Layout) -> kinds.General:
        """Neurons whose constants stand one after another, in the order of the operator's inputs."""
        code, kind = kinds.KERNELS[i.spike_op]
        adaptive, events = kind == kinds.ADAPTIVE, self.storage.list_of(i.writes[-1])
        packed = [
            self._packed(name, layout, NEVER if key == "threshold" else 0.0) for key, name in i.parameters.items()
        ]
        period = max(_period(full, layout) for full in packed)
        trace_spikes, trace_membrane = self._trace(i, with_memory=True)
        return kinds.General(
            code,
            kind=kind,
            size=layout.size,
            listed=events.at,
            starts=events.starts,
            current=at["current"],
            membrane=at["membrane"],
            adaptation=at.get("adaptation", kinds.NOWHERE),
            spikes=at["spikes"],
            next_membrane=self._at(i.writes[0]),
            next_adaptation=self._at(i.writes[1]) if adaptive else kinds.NOWHERE,
            next_spikes=self._at(i.writes[-1]),
            constants=self.floats.add(np.concatenate([full[:period] for full in packed])),
            period=period,
            trace_spikes=trace_spikes,
            trace_membrane=trace_membrane,
        )

    def _leaky_current(self, i: Neurons, at: Places, params: Parameters) -> kinds.LeakyCurrent:
        decay, period = params["synaptic_decay"]
        size, after = self._layout(i.writes[0]).size, self._at(i.writes[0])
        return kinds.LeakyCurrent(
            kinds.LEAKY_CURRENT, size=size, **at, next_synaptic=after, decay=decay, decay_period=period
        )

    def _leaky_sum(self, i: Neurons, at: Places, params: Parameters) -> kinds.LeakySum:
        decay, period = params["decay"]
        after, total = (self._at(name) for name in i.writes)
        return kinds.LeakySum(
            kinds.LEAKY_SUM,
            size=self._layout(i.writes[0]).size,
            **at,
            next_membrane=after,
            next_total=total,
            decay=decay,
            decay_period=period,
        )

    def _fire(self, i: Neurons, at: Places, params: Parameters) -> kinds.Fire:
        code, kind = kinds.KERNELS[i.spike_op]
        noisy, with_memory = code == kinds.FIRE_NOISY, kind != kinds.STATELESS
        events = self.storage.list_of(i.writes[-1])
        (decay, decay_period), (threshold, threshold_period), (base, base_period) = (
            params.get(key, (0, LANES)) for key in ("decay", "threshold", "base_variance")
        )
        trace_spikes, trace_membrane = self._trace(i, with_memory)
        return kinds.Fire(
            code,
            kind=kind,
            size=self._layout(i.writes[0]).size,
            listed=events.at,
            starts=events.starts,
            current=at["current"],
            arriving=at.get("arriving_variance", at.get("variance", kinds.NOWHERE)),
            noise=at.get("noise", kinds.NOWHERE),
            membrane=at.get("membrane", kinds.NOWHERE),
            variance=at.get("variance", kinds.NOWHERE),
            spikes=at.get("spikes", kinds.NOWHERE),
            next_membrane=self._at(i.writes[0]) if with_memory else kinds.NOWHERE,
            next_variance=self._at(i.writes[1]) if with_memory and noisy else kinds.NOWHERE,
            next_spikes=self._at(i.writes[-1]),
            decay=decay,
            decay_period=decay_period,
            threshold=threshold,
            threshold_period=threshold_period,
            base=base,
            base_period=base_period,
            trace_spikes=trace_spikes,
            trace_membrane=trace_membrane,
        )

    def _trace(self, i: Neurons, with_memory: bool) -> tuple[int, int]:
        places = []
        for prefix, name in ((SPIKES_OF, i.writes[-1]), (MEMBRANE_OF, i.writes[0])):
            if prefix == MEMBRANE_OF and not with_memory:
                places.append(kinds.NOWHERE)
                continue
            self.trace_places[prefix + i.layer] = (self.trace_size, name)
            places.append(self.trace_size)
            self.trace_size += self._layout(name).size
        return places[0], places[1]

    def _parameter(self, name: str, layout: Layout, padding: float) -> tuple[int, int]:
        """Where a constant begins and after how many floats it repeats over a buffer of this layout."""
        full = self._packed(name, layout, padding)
        period = _period(full, layout)
        return self.floats.add(full[:period]), period

    def _packed(self, name: str, layout: Layout, padding: float) -> NDArray[np.float32]:
        """A constant over all of a buffer."""
        values = np.broadcast_to(self.program.constants[name], layout.shape)
        packed: NDArray[np.float32] = layout.pack(values[None], padding)[0]
        return packed

    def _arithmetic(self, i: Arithmetic) -> kinds.Arithmetic | None:
        if any(name in self.storage.sums for name in i.reads):
            return None
        layout = self._layout(i.writes[0])
        (a_constant, a, a_period), (b_constant, b, b_period) = (self._operand(name, layout) for name in i.reads)
        return kinds.Arithmetic(
            kinds.ARITHMETIC,
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
        """Whether it is a constant, where it begins, and after how many floats it repeats."""
        if name not in self.program.buffers:
            return (1, *self._parameter(name, layout, 0.0))
        own = self._layout(name)
        if own.shape == layout.shape:
            return 0, self._at(name), layout.size
        if layout.image and own.shape == (layout.shape[0], 1, 1):
            return 0, self._at(name), layout.pitch
        return 0, self._enlarged(name, own, layout), layout.size

    def _enlarged(self, name: str, own: Layout, layout: Layout) -> int:
        """A copy of a buffer in a larger shape."""
        out = self.storage.room(layout.size)
        self._gather(np.broadcast_to(own.places + self._at(name), layout.shape), layout, out)
        return out

    def _gather(self, sources: NDArray[np.int64], layout: Layout, out: int) -> None:
        table = np.full(layout.size, -1, np.int32)
        table[layout.places.ravel()] = sources.ravel()
        self.rows.append(kinds.Move(kinds.MOVE, table=self.integers.add(table), size=layout.size, out=out))

    def _move(self, i: Move) -> None:
        out = i.writes[0]
        if out in self.storage.shared:
            return
        sources = move(i, [(self._layout(name).places + self._at(name))[None] for name in i.reads], empty=-1)[0]
        self._gather(sources, self._layout(out), self._at(out))
        if self.storage.root(out) in self.listed:
            self.rows.append(self._scan(out))

    def _pooled(self, i: PoolPairs | AveragePool | MaxPool) -> dict[str, int]:
        y, source, out = self._layout(i.writes[0]), self._at(i.reads[0]), self._at(i.writes[0])
        return {"source": source, "out": out, "height": y.shape[1], "width": y.shape[2], "pitch": y.pitch}

    def _pool_pairs(self, i: PoolPairs) -> kinds.PoolPairs:
        return kinds.PoolPairs(kinds.POOL_PAIRS, **self._pooled(i))

    def _window_pool(self, i: AveragePool | MaxPool) -> kinds.WindowPool:
        code = kinds.MAX_POOL if isinstance(i, MaxPool) else kinds.AVERAGE_POOL
        return kinds.WindowPool(code, **self._pooled(i), rows=i.window[0], columns=i.window[1])

    def _activity(self, i: RecurrentActivity) -> kinds.Activity:
        y, source, out = self._layout(i.writes[0]), self._at(i.reads[0]), self._at(i.writes[0])
        return kinds.Activity(kinds.ACTIVITY, source=source, out=out, neurons=y.elements, size=y.size)

    def _step_row(self, i: StepRow) -> kinds.StepRow:
        table, layout = self.program.constants[i.table], self._layout(i.writes[0])
        packed = self.floats.add(layout.pack(table))
        return kinds.StepRow(kinds.ROW, out=self._at(i.writes[0]), table=packed, size=layout.size)

    def _integers(self, stored: int, dtype: type[np.generic]) -> NDArray[Any]:
        """The integer weights of one kind, each where its float is; with room for a whole vector behind the last."""
        kept = aligned(self.floats.size + CACHE_LINE, dtype)
        for begin, narrow in self.integer_weights.items():
            if narrow.stored == stored:
                kept[begin : begin + narrow.numbers.size] = narrow.numbers
        return kept

    @property
    def pools(self) -> Pools:
        """How large everything is that kernels read and write."""
        return Pools(
            memory=self.storage.memory,
            constants=self.constants.size,
            events=self.storage.events + LANES,
            tables=self.tables.size,
            outside=self.outside_size,
            trace=self.trace_size,
            steps=self.program.steps_known or 0,
        )

    def table_of(self, rows: list[kinds.AnyRow]) -> NDArray[np.int64]:
        """Rows as the compiled loop reads them."""
        table = np.zeros((len(rows), kinds.COLUMNS), np.int64)
        for number, row in enumerate(rows):
            table[number, : len(row)] = row
        return table


def _padding(parameter: str) -> float:
    """What a parameter is where there is no neuron."""
    return NEVER if parameter == "threshold" else 0.0


def _period(full: NDArray[np.float32], layout: Layout) -> int:
    """After how many floats a constant repeats: one for all, one a channel, or one each."""
    for period in (LANES, layout.pitch):
        if period < layout.size and (full.reshape(-1, period) == full[:period]).all():
            return period
    return layout.size


def fires(neurons: Neurons) -> bool:
    """Whether a layer spikes: a read-out does not."""
    return OPS[neurons.spike_op].spikes is not None
