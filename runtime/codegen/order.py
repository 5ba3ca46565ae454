"""Group the rows that the core's loop processes together: synapses that share a sum, their followers, and neurons.

A turn lists a few rows, and computes what these rows compute one after the other. Turns form groups. A group processes
SLOTS time steps before the next group does, so that its weights and membranes stay in the cache. Values that one group
passes to the next within a step have a separate place for each of these steps; states have one place for all. The loop
is the same, with a table for each step whose rows point to that step's places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.codegen import rows as kinds
from axonnx.runtime.codegen.bounds import check_rows
from axonnx.runtime.codegen.layout import padded
from axonnx.runtime.codegen.plan import Plan, table_of
from axonnx.runtime.codegen.rows import CHAIN, SLOTS
from axonnx.runtime.program.instructions import Conv, Instruction, Linear, Move, Neurons

NONE, KEPT = -1, 1
LEAN_SPIKES = 1
MOST_BYTES = 2**28  # of the places of all slots together
MEMORY = {  # columns that are addresses in memory
    "out", "source", "scratch", "spikes", "next_spikes", "membrane",
    *(name for name in kinds.Neurons._fields if name.startswith(("in_", "out_"))),
}  # fmt: skip
EVENTS = {"listed", "starts", "counted", "plain"}


class Order:
    """The turns of a plan, their groups, and a table for each slot; one slot if states would not survive more."""

    def __init__(self, plan: Plan, slots: int = SLOTS) -> None:
        self.plan, self.rows = plan, plan.rows
        self._next = 0
        self.at_start = plan.at_start  # the first turns are the first rows
        self.turns: NDArray[np.int32] = np.array(list(self._turns()), np.int32)
        storage = plan.storage
        self.memory_step, self.events_step = storage.memory - storage.kept, padded(storage.events)
        groups = self._groups() if slots > 1 else None
        fits = 4 * slots * (storage.memory + storage.events) <= MOST_BYTES
        self.slots = slots if groups is not None and fits else 1
        self.groups: NDArray[np.int32] = np.array(
            groups if groups is not None and self.slots > 1 else [self.at_start, len(self.turns)], np.int32
        )
        self.memory = storage.memory + (self.slots - 1) * self.memory_step
        self.events = self.slots * self.events_step + storage.slack
        self.table = np.stack([table_of(rows) for rows in self._tables()])

    def _tables(self) -> Iterator[list[kinds.AnyRow]]:
        pools = replace(self.plan.pools, memory=self.memory, events=self.events)
        for slot in range(self.slots):
            rows = [self._row(row, slot) for row in self.rows]
            check_rows(rows, pools, self.plan.tables, self.plan.program.name)
            yield rows

    def _row(self, row: kinds.AnyRow, slot: int) -> kinds.AnyRow:
        """Return a row for one slot: states stay in place, everything else moves."""
        operands = {"a": not getattr(row, "a_constant", 1), "b": not getattr(row, "b_constant", 1)}
        names = MEMORY | {name for name, moves in operands.items() if moves}
        lists = (
            (slot - 1) % self.slots if getattr(row, "old", 0) else slot
        )  # the events of the previous step are listed there
        changed = {}
        for name, value in row._asdict().items():
            if name in names and value >= self.plan.storage.kept:
                changed[name] = value + slot * self.memory_step
            elif name in EVENTS:
                changed[name] = value + lists * self.events_step
            elif name in ("rows", "sources") and isinstance(row, kinds.Conv):
                changed[name] = value + slot * self.events_step
        if isinstance(row, kinds.Move) and (self._sources(row) >= self.plan.storage.kept).all():
            changed["shift"] = slot * self.memory_step
        return row._replace(**changed)

    def _sources(self, row: kinds.Move) -> NDArray[np.int32]:
        table = self.plan.tables[row.table : row.table + row.size]
        return table[table >= 0]

    def _groups(self) -> list[int] | None:
        """Return the turns at which groups begin and the end of the last; None if groups gain nothing.

        A state has one place for all steps. So turns stay together from the first to the last that reads a state's old
        value, writes the state, or reads its new value in another form than events.
        """
        plan, program, storage = self.plan, self.plan.program, self.plan.storage
        if storage.copied or not program.states or not all(map(self._moves_alike, self.rows)):
            return None
        turn_of = {name: number for number, turn in enumerate(self.turns) for name in self._instructions(turn)}
        computed = (i for i in program.instructions if i.name in turn_of)  # a reshape only names a place again
        writers = {storage.root(name): i for i in computed for name in i.writes}
        together: set[int] = set()  # turns that belong to the previous turn's group
        for i in program.instructions:
            for name in i.reads:
                if name not in program.buffers or storage.place(name) >= storage.kept or i.name not in turn_of:
                    continue
                writer = writers[storage.root(name)]
                if plan.is_old(name) or not self._as_events(i, storage.root(name)):
                    ends = sorted((turn_of[writer.name], turn_of[i.name]))
                    together |= set(range(ends[0] + 1, ends[1] + 1))
        cuts = [turn for turn in range(self.at_start + 1, len(self.turns)) if turn not in together]
        return [self.at_start, *cuts, len(self.turns)] if cuts else None

    def _moves_alike(self, row: kinds.AnyRow) -> bool:
        """Return whether all sources of a move have a place for each slot, or none of them has."""
        if not isinstance(row, kinds.Move):
            return True
        change = self._sources(row) >= self.plan.storage.kept
        return bool(change.all() or not change.any())

    def _as_events(self, i: Instruction, root: str) -> bool:
        """Return whether an instruction reads a layer's spikes only as events; graded values are read as numbers."""
        return isinstance(i, Linear | Conv) and self.plan.program.buffers[root].values.kind == "spikes"

    def _instructions(self, turn: NDArray[np.int32]) -> set[str]:
        named = [*turn[:3], *turn[4 : 4 + CHAIN]]
        return {self.plan.owners[row] for row in named if 0 <= row < len(self.plan.owners)} - {""}

    def _turns(self) -> Iterator[list[int]]:
        while self._next < len(self.rows):
            row = self.rows[self._next]
            if isinstance(row, kinds.Linear):
                yield self._linear(self._next, row)
            elif isinstance(row, kinds.Conv):
                yield self._conv(self._next, row)
            elif isinstance(row, kinds.Load):
                yield self._load(self._next, row)
            else:
                yield self._turn(self._next, lean=self._is_lean(self._next))
            self._next += 1

    def _turn(
        self,
        row: int,
        more: int = NONE,
        fire: int = NONE,
        lean: int = 0,
        then: tuple[int, ...] = (),
        kept: tuple[int, ...] = (),
    ) -> list[int]:
        chain = [*then, *[NONE] * (CHAIN - len(then))]
        return [row, more, fire, lean, *chain, *kept, *[KEPT] * (CHAIN + 1 - len(kept))]

    def _take(self) -> int:
        self._next += 1
        return self._next

    def _following(self) -> kinds.AnyRow | None:
        return self.rows[self._next + 1] if self._next + 1 < len(self.rows) else None

    def _load(self, number: int, row: kinds.Load) -> list[int]:
        """Return the turn of the input, which lists events while it loads if all readers use events."""
        following = self._following()
        if row.pitch != 1 or not isinstance(following, kinds.ScanInput) or following.source != row.out:
            return self._turn(number)
        program, family = self.plan.program, self._family(self.plan.program.input)
        readers = [i for i in program.instructions if family & set(i.reads)]
        kept = {*program.states, *program.after.values(), *program.logits}
        lists = all(isinstance(i, Linear) or not self._reads(i, family) for i in readers) and not family & kept
        return self._turn(number, self._take() if lists else NONE)

    def _linear(self, number: int, row: kinds.Linear) -> list[int]:
        """Return the turn of a synapse, a second synapse that adds to its sums, and their neurons."""
        more = fire = NONE
        following = self._following()
        if isinstance(following, kinds.Linear) and following.bias == kinds.ADD_TO_SUM and following.out == row.out:
            more = self._take()
        if self._fires(row.out, row.size):
            fire = self._take()
        return self._turn(number, more, fire, self._is_lean(fire))

    def _conv(self, number: int, row: kinds.Conv) -> list[int]:
        """Return the turn of a convolution, arithmetic on its result, and its neurons, unless it reads their spikes."""
        size, out = row.out_height * row.out_width * row.out_pitch, row.out
        then: list[int] = []
        kept, fire = [self._is_kept(number)], NONE
        while len(then) < CHAIN and self._continues(out, size):
            then.append(self._take())
            arithmetic = self.rows[then[-1]]
            assert isinstance(arithmetic, kinds.Arithmetic)
            out = arithmetic.out
            kept.append(self._is_kept(then[-1]))
        neurons = self._following()
        if isinstance(neurons, kinds.Neurons) and self._fires(out, size) and neurons.listed != row.listed:
            fire = self._take()
        else:
            kept[-1] = KEPT
        return self._turn(number, NONE, fire, self._is_lean(fire), tuple(then), tuple(kept))

    def _continues(self, out: int, size: int) -> bool:
        """Return whether the next row is arithmetic on the values at ``out``."""
        row = self._following()
        if not isinstance(row, kinds.Arithmetic) or row.size != size:
            return False
        return (not row.a_constant and row.a == out) or (not row.b_constant and row.b == out)

    def _fires(self, out: int, size: int) -> bool:
        """Return whether the next row is neurons that fire, with their current at ``out``."""
        row = self._following()
        return isinstance(row, kinds.Neurons) and bool(row.fires) and row.in_0 == out and row.size == size

    def _is_kept(self, number: int) -> int:
        """Return whether a result is read by others than the next row."""
        program, family = self.plan.program, self._family(self._by_row[number].writes[0])
        lasting = {*program.states, *program.after.values(), *program.logits}
        readers = [i for i in program.instructions if family & set(i.reads) and self._reads(i, family)]
        return int(len(readers) > 1 or bool(family & lasting))

    def _reads(self, i: Instruction, family: set[str]) -> bool:
        """Return whether an instruction really reads; some only rename memory, or vanish in a sum."""
        return i.name in self.plan.row_of or (isinstance(i, Move) and i.writes[0] not in family)

    def _is_lean(self, number: int) -> int:
        """Return whether only synapses read a layer's spikes, as events, so that no numbers are needed."""
        row = self.rows[number] if number != NONE else None
        if not isinstance(row, kinds.Neurons) or not row.fires or row.spikes != row.next_spikes:
            return 0
        program, neurons = self.plan.program, self._by_row[number]
        assert isinstance(neurons, Neurons)
        if "spikes" not in neurons.operands:
            return 0
        family = self._family(neurons.writes[-1])
        readers = [i for i in program.instructions if family & set(i.reads) and i is not neurons]
        events = all(isinstance(i, Linear | Conv) or not self._reads(i, family) for i in readers)
        kept_by = [state for state, source in program.after.items() if {state, source} & family]
        return LEAN_SPIKES if events and len(kept_by) == 1 and not family & set(program.logits) else 0

    def _family(self, name: str) -> set[str]:
        """Return all names of the same memory."""
        return self._families[self.plan.storage.root(name)]

    @cached_property
    def _families(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name in self.plan.program.buffers:
            found.setdefault(self.plan.storage.root(name), set()).add(name)
        return found

    @cached_property
    def _by_row(self) -> dict[int, Instruction]:
        named = self.plan.row_of
        return {named[i.name]: i for i in self.plan.program.instructions if i.name in named}
