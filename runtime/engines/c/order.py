"""What the loop takes together: synapses that share a sum, what follows them pixel by pixel, and their neurons.

A turn is a few numbers of rows. What it computes is what its rows compute one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.c.layered import layered
from axonnx.runtime.engines.c.members import member_of
from axonnx.runtime.engines.table import rows as kinds
from axonnx.runtime.engines.table.plan import Plan
from axonnx.runtime.program.instructions import Conv, Instruction, Linear, Move, Neurons

CHAIN = 4  # most instructions between a convolution and its neurons
MOST_OUTPUTS = 1024  # of a pixel that is not kept in memory
NONE, KEPT = -1, 1
LEAN_SPIKES, LEAN_SOURCE = 1, 2
FIRES = (kinds.FIRE, kinds.FIRE_NOISY, kinds.FIRE_GENERAL)


class Order:
    """The turns of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.rows = plan, plan.rows
        self._next = 0
        self.at_start = plan.at_start  # the first turns are the first rows
        turns = list(self._turns())
        self.turns: NDArray[np.int32] = np.array(turns, np.int32)
        self.layered = layered(plan, self.turns, self.at_start, self._lean_roots)
        if self.layered is not None:
            self.groups = self.layered.groups
            return
        parts = self._parts(turns)
        self.turns = np.array([turn for part in parts for turn in part], np.int32)
        self.groups = np.cumsum([len(part) for part in parts], dtype=np.int64)  # where each begins, the first left out

    def _parts(self, turns: list[list[int]]) -> list[list[list[int]]]:
        """What brings the input in, and then the turns of each member of an ensemble by themselves."""
        owners = self.plan.owners
        if self.plan.storage.copied or self.plan.program.noises:
            owners = [owner and "all" for owner in owners] + ["all"] * (len(self.rows) - len(owners))
            member = {"all": 0}
        else:
            member = member_of(self.plan.program)
        parts: dict[int, list[list[int]]] = {-1: [], 0: []}
        for turn in turns:
            parts.setdefault(member.get(owners[turn[0]], -1), []).append(turn)
        return list(parts.values())

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
        """The input, listed as it comes, unless somebody reads it otherwise than as events."""
        following = self._following()
        if row.pitch != 1 or not isinstance(following, kinds.ScanInput) or following.source != row.out:
            return self._turn(number)
        program, family = self.plan.program, self._family(self.plan.program.input)
        readers = [i for i in program.instructions if family & set(i.reads)]
        kept = {*program.states, *program.after.values(), *program.logits}
        lists = all(isinstance(i, Linear) or not self._reads(i, family) for i in readers) and not family & kept
        return self._turn(number, self._take() if lists else NONE)

    def _linear(self, number: int, row: kinds.Linear) -> list[int]:
        """A synapse, another that adds to its sums, and the neurons behind them."""
        more = fire = NONE
        following = self._following()
        if isinstance(following, kinds.Linear) and following.bias == kinds.ADD_TO_SUM and following.out == row.out:
            more = self._take()
        if self._fires(row.out, row.size):
            fire = self._take()
        return self._turn(number, more, fire, self._is_lean(fire))

    def _conv(self, number: int, row: kinds.Conv) -> list[int]:
        """A convolution, arithmetic on its result, and the neurons behind it, unless it reads their own spikes."""
        size, out = row.out_height * row.out_width * row.out_pitch, row.out
        then: list[int] = []
        kept, fire = [self._is_kept(number, row)], NONE
        while len(then) < CHAIN and self._continues(out, size):
            then.append(self._take())
            arithmetic = self.rows[then[-1]]
            assert isinstance(arithmetic, kinds.Arithmetic)
            out = arithmetic.out
            kept.append(self._is_kept(then[-1], row))
        neurons = self._following()
        if isinstance(neurons, kinds.Fire | kinds.General) and self._fires(out, size) and neurons.listed != row.listed:
            fire = self._take()
        else:
            kept[-1] = KEPT
        lean = self._is_lean(fire) | (LEAN_SOURCE if row.source in self._lean_places else 0)
        return self._turn(number, NONE, fire, lean, tuple(then), tuple(kept))

    def _continues(self, out: int, size: int) -> bool:
        """Whether the next row is arithmetic on what is at ``out``."""
        row = self._following()
        if not isinstance(row, kinds.Arithmetic) or row.size != size:
            return False
        return (not row.a_constant and row.a == out) or (not row.b_constant and row.b == out)

    def _fires(self, out: int, size: int) -> bool:
        """Whether the next row is neurons whose current is at ``out``."""
        row = self._following()
        if isinstance(row, kinds.Fire | kinds.General):
            return row.current == out and row.size == size
        return False

    def _is_kept(self, number: int, conv: kinds.Conv) -> int:
        """Whether a result is read by others than the next row."""
        program, family = self.plan.program, self._family(self._by_row[number].writes[0])
        lasting = {*program.states, *program.after.values(), *program.logits}
        readers = [i for i in program.instructions if family & set(i.reads) and self._reads(i, family)]
        return int(conv.out_pitch > MOST_OUTPUTS or len(readers) > 1 or bool(family & lasting))

    def _reads(self, i: Instruction, family: set[str]) -> bool:
        """Whether an instruction is one at all: some only give memory another name, or vanish in a sum."""
        return i.name in self.plan.row_of or (isinstance(i, Move) and i.writes[0] not in family)

    def _is_lean(self, number: int) -> int:
        """Whether a layer's spikes are read by synapses alone, as events: then they need be no numbers."""
        row = self.rows[number] if number != NONE else None
        if not isinstance(row, kinds.Fire) or row.code != kinds.FIRE or row.kind == kinds.STATELESS:
            return 0
        if row.spikes != row.next_spikes or row.membrane != row.next_membrane:
            return 0
        program, neurons = self.plan.program, self._by_row[number]
        assert isinstance(neurons, Neurons)
        family = self._family(neurons.writes[-1])
        readers = [i for i in program.instructions if family & set(i.reads) and i is not neurons]
        events = all(isinstance(i, Linear | Conv) or not self._reads(i, family) for i in readers)
        kept_by = [state for state, source in program.after.items() if {state, source} & family]
        return LEAN_SPIKES if events and len(kept_by) == 1 and not family & set(program.logits) else 0

    def _family(self, name: str) -> set[str]:
        """All names of the same memory."""
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

    @cached_property
    def _lean_roots(self) -> set[str]:
        """The buffers of spikes that are bits."""
        lean = [number for number in range(len(self.rows)) if self._is_lean(number)]
        return {self.plan.storage.root(self._by_row[number].writes[-1]) for number in lean}

    @cached_property
    def _lean_places(self) -> set[int]:
        """Where spikes would be that are bits."""
        lean = [row for number, row in enumerate(self.rows) if self._is_lean(number)]
        return {row.spikes for row in lean if isinstance(row, kinds.Fire)}
