"""Place buffers in memory: states first, then the values of a step, whose memory is reused after the last reader."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from axonnx.runtime.codegen.layout import Layout
from axonnx.runtime.program.instructions import Arithmetic, Conv, Instruction, Linear, Move, Neurons, Program

Synapse = Linear | Conv
MOST_BESIDE = 4  # rows of weights that are added together, also beyond a list's end


@dataclass(frozen=True)
class List:
    """Position of a buffer's list of events, and of the counts before each pixel; the last count is the total."""

    at: int
    starts: int
    count: int
    plain: int  # 1 if all input values are 0 or 1; 0 for other buffers


class Storage:
    """The position of every buffer. A state shares memory with its next value, unless it is in ``copied``.

    Sizes are multiples of ``padding``.
    """

    def __init__(self, program: Program, padding: int) -> None:
        self.program, self.slack = program, max(padding, MOST_BESIDE)
        self.layouts = {name: Layout(buffer.shape, padding) for name, buffer in program.buffers.items()}
        flat = self._only_flattened(program.input)
        self.layouts[program.input] = Layout(program.buffers[program.input].shape, padding, flat)
        self.shared: dict[str, str] = {}  # buffer -> the buffer that holds its memory
        self.places: dict[str, int] = {}
        self.lists: dict[str, List] = {}
        self.memory = self.events = 0
        self.sums = self._one_sums()
        self._share_moves()
        # States whose old values become the values of other states: they stay until all are copied.
        self.carried = {self.root(source) for source in program.after.values()} & set(program.states)
        self.copied = [name for name in program.states if not self._overwrite(name)]
        self._allocate()

    def root(self, name: str) -> str:
        """Return the buffer that holds the memory of ``name``."""
        while name in self.shared:
            name = self.shared[name]
        return name

    def place(self, name: str) -> int:
        """Return the position of the first float of ``name``."""
        return self.places[self.root(name)]

    def list_of(self, name: str) -> List:
        """Return the event list of ``name``; the first call allocates it."""
        root = self.root(name)
        if root not in self.lists:
            layout = self.layouts[root]
            starts = self.events + layout.size + self.slack  # a whole vector is written at a time
            count = starts + layout.pixels
            self.lists[root] = List(self.events, starts, count, count + 1)
            self.events = count + 2
        return self.lists[root]

    def window_list(self, size: int) -> int:
        """Allocate a list for the rows of weights of one window."""
        at = self.events
        self.events += size + self.slack
        return at

    def room(self, size: int) -> int:
        """Allocate separate memory, which stays zero if nobody writes to it."""
        at = self.memory
        self.memory += size
        return at

    def readers(self, name: str) -> list[int]:
        """Return the instructions that read ``name`` itself."""
        return [at for at, instruction in enumerate(self.program.instructions) if name in instruction.reads]

    def _only_flattened(self, name: str) -> bool:
        """Return whether all readers of a buffer flatten it."""
        reading = [self.program.instructions[at] for at in self.readers(name)]
        return bool(reading) and all(isinstance(i, Move) and i.kind == "Reshape" and len(i.how) == 1 for i in reading)

    def _one_sums(self) -> dict[str, Arithmetic]:
        """Return the additions that vanish because both synapses add to one sum, by the output of either synapse."""
        writers = {i.writes[0]: i for i in self.program.instructions if isinstance(i, Synapse)}
        found: dict[str, Arithmetic] = {}
        for instruction in self.program.instructions:
            if not isinstance(instruction, Arithmetic) or not instruction.exact:
                continue
            if all(name in writers and len(self.readers(name)) == 1 for name in instruction.reads):
                for name in instruction.reads:
                    found[name] = instruction
                    self.shared[name] = instruction.writes[0]
        return found

    def _share_moves(self) -> None:
        for instruction in self.program.instructions:
            if isinstance(instruction, Move) and len(instruction.reads) == 1:
                source, out = instruction.reads[0], instruction.writes[0]
                before, after = self.layouts[source], self.layouts[out]
                moved = instruction.apply([before.places[None]])[0] if before.size == after.size else None
                if moved is not None and np.array_equal(moved, after.places):
                    self.shared[out] = source

    def _overwrite(self, state: str) -> bool:
        """Return whether the new state can overwrite the old one, because nobody reads the old one later."""
        after = self.program.after[state]
        if state in self.carried or after in self.shared or list(self.program.after.values()).count(after) > 1:
            return False
        for at, instruction in enumerate(self.program.instructions):
            if after in instruction.writes:
                family = {state} | {name for name in self.shared if self.root(name) == state}
                last = max((reader for name in family for reader in self.readers(name)), default=at)
                if isinstance(instruction, Neurons) and last <= at:
                    self.shared[after] = state
                    return True
        return False

    def _allocate(self) -> None:
        program = self.program
        for name in (*program.states, *(self.root(name) for name in program.logits)):
            self._new(name)
        self.kept = self.memory
        for name in (program.input, *program.noises):
            self._new(name)  # loaded element by element, so their padding must stay zero
        free: dict[int, list[int]] = defaultdict(list)
        last = self._last_uses()
        for at, instruction in enumerate(program.instructions):
            for name in {self.root(name) for name in instruction.writes}:
                if name not in self.places:
                    self._new(name, free[self.layouts[name].size])
            for name, use in last.items():
                if use == at and self.places.get(name, -1) >= self.reusable:
                    free[self.layouts[name].size].append(self.places[name])

    @property
    def reusable(self) -> int:
        """The position from which memory may hold several buffers in turn."""
        entering = (self.program.input, *self.program.noises)
        return max([self.kept, *(self.places[name] + self.layouts[name].size for name in entering)])

    def _new(self, name: str, free: list[int] | None = None) -> None:
        if name in self.places:
            return
        if free:
            self.places[name] = free.pop()
            return
        self.places[name] = self.memory
        self.memory += self.layouts[name].size

    def _last_uses(self) -> dict[str, int]:
        last: dict[str, int] = {}
        for at, instruction in enumerate(self.program.instructions):
            for name in (*instruction.reads, *instruction.writes):
                if name in self.program.buffers:
                    last[self.root(name)] = at
        for state in self.copied:
            last[self.root(self.program.after[state])] = len(self.program.instructions)
        return last


def is_synapse(instruction: Instruction) -> bool:
    """Return whether an instruction reads an event list."""
    return isinstance(instruction, Linear | Conv)
