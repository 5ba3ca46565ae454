"""Layer by layer over the time steps, where nothing feeds back: a layer's weights and membranes stay in the cache.

What one layer hands to the next within a step has a place of its own for each of ``STEPS`` steps; states have one place
for all. The loop is the same, with a table for each step whose rows point to that step's places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.table import rows as kinds
from axonnx.runtime.engines.table.bounds import check_rows
from axonnx.runtime.engines.table.layout import LANES, padded
from axonnx.runtime.engines.table.plan import Plan
from axonnx.runtime.program.instructions import Conv, Instruction, Linear, Neurons

STEPS = 16
MOST_BYTES = 2**28  # of all places together
MEMORY = {
    "out", "source", "zeros", "noise", "arriving", "current", "synaptic", "membrane", "variance", "spikes",
    "adaptation", "total", "next_synaptic", "next_membrane", "next_variance", "next_spikes",
    "next_adaptation", "next_total",
}  # fmt: skip
EVENTS = {"listed", "starts", "counted", "plain"}


class Layered:
    """How a plan goes layer by layer: where each group of turns begins, and the table of each step."""

    def __init__(self, plan: Plan, groups: Sequence[int]) -> None:
        self.plan, self.groups = plan, np.array(groups, np.int64)
        storage = plan.storage
        self.memory_step, self.events_step = storage.memory - storage.kept, padded(storage.events)
        self.memory = storage.memory + (STEPS - 1) * self.memory_step
        self.events = STEPS * self.events_step
        steps = [[self._row(row, step) for row in plan.rows] for step in range(STEPS)]
        pools = replace(plan.pools, memory=self.memory, events=self.events + LANES)
        for rows in steps:
            check_rows(rows, pools, plan.tables, plan.program.name)
        self.table = np.stack([plan.table_of(rows) for rows in steps])

    def _row(self, row: kinds.AnyRow, step: int) -> kinds.AnyRow:
        names = {"a"} if isinstance(row, kinds.Arithmetic) and not row.a_constant else set()
        names |= {"b"} if isinstance(row, kinds.Arithmetic) and not row.b_constant else set()
        changed = {}
        for name, value in row._asdict().items():
            if name in MEMORY | names:
                changed[name] = value + step * self.memory_step if value >= self.plan.storage.kept else value
            elif name in EVENTS:
                changed[name] = value + step * self.events_step
        if isinstance(row, kinds.Move) and _all_change(self.plan, row):
            changed["shift"] = step * self.memory_step
        return row._replace(**changed)


def layered(plan: Plan, turns: NDArray[np.int32], begin: int, lean: set[str]) -> Layered | None:
    """The plan layer by layer, or None; ``lean`` are the buffers whose spikes are handed on as events alone."""
    groups = _groups(plan, turns, begin, lean)
    if groups is None or not all(_moves_alike(plan, row) for row in plan.rows if isinstance(row, kinds.Move)):
        return None
    if 4 * STEPS * (plan.storage.memory + plan.storage.events) > MOST_BYTES:
        return None
    return Layered(plan, groups)


def _groups(plan: Plan, turns: NDArray[np.int32], begin: int, lean: set[str]) -> list[int] | None:
    """Where groups begin, and where the last ends; None where something feeds back, or nothing is gained."""
    program, storage = plan.program, plan.storage
    if storage.copied or not program.states:
        return None
    turn_of = {name: number for number, turn in enumerate(turns) for name in _instructions(plan, turn)}
    writers = {storage.root(name): i for i in program.instructions for name in i.writes}
    together: set[int] = set()  # turns that belong to the one before
    for i in program.instructions:
        for name in i.reads:
            if name not in program.buffers or storage.place(name) >= storage.kept:
                continue
            if _is_old(plan, name):
                if not isinstance(i, Neurons) or writers.get(storage.root(name)) is not i:
                    return None
            elif not _as_events(i, storage.root(name) in lean):
                first, last = turn_of.get(writers[storage.root(name)].name), turn_of.get(i.name)
                if first is not None and last is not None:
                    together |= set(range(first + 1, last + 1))
    cuts = [begin, *(turn for turn in range(begin + 1, len(turns)) if turn not in together), len(turns)]
    return cuts if len(cuts) > 1 + 2 else None


def _as_events(i: Instruction, lean: bool) -> bool:
    """Whether an instruction takes a layer's spikes from their list alone."""
    return isinstance(i, Linear) or (isinstance(i, Conv) and lean)


def _instructions(plan: Plan, turn: NDArray[np.int32]) -> set[str]:
    named = [*turn[:3], *(row for row in turn[4:8])]
    return {plan.owners[row] for row in named if 0 <= row < len(plan.owners)} - {""}


def _is_old(plan: Plan, name: str) -> bool:
    """Whether a name is what a state was before the step."""
    new = set(plan.program.after.values())
    while name not in new and name in plan.storage.shared:
        name = plan.storage.shared[name]
    return name not in new


def _sources(plan: Plan, row: kinds.Move) -> NDArray[np.int32]:
    table = plan.tables[row.table : row.table + row.size]
    return table[table >= 0]


def _all_change(plan: Plan, row: kinds.Move) -> bool:
    return bool((_sources(plan, row) >= plan.storage.kept).all())


def _moves_alike(plan: Plan, row: kinds.Move) -> bool:
    """Whether all that a move gathers has a place for each step, or none of it has."""
    return _all_change(plan, row) or bool((_sources(plan, row) < plan.storage.kept).all())
