"""Where buffers lie in one array of floats: states first and for good; others share what is free while they live."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from axonnx.runtime.program.instructions import Move, Neurons, Program

ALWAYS = 2**31


@dataclass
class Span:
    """A piece of memory, and the first and last instruction that use it."""

    size: int
    first: int
    last: int


class Memory:
    """Grows while statements are written; places are known once all of them are."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.roots = _aliases(program)
        self.spans: dict[Hashable, Span] = {}
        carried = {self.root(source) for source in program.after.values()} & set(program.states)
        for state, source in program.after.items():
            if state not in carried and _overwrites(program, state, source):
                self.roots[source] = state

    def root(self, name: str) -> str:
        """The buffer whose memory ``name`` is in."""
        while name in self.roots:
            name = self.roots[name]
        return name

    def use(self, root: Hashable, size: int, at: int) -> None:
        """Instruction ``at`` reads or writes ``root``."""
        span = self.spans.setdefault(root, Span(size, at, at))
        span.first, span.last = min(span.first, at), max(span.last, at)

    def places(self) -> tuple[dict[Hashable, int], int]:
        """The first float of each piece, and how many floats there are."""
        found: dict[Hashable, int] = {}
        for state in self.program.states:
            self.spans[state].first, self.spans[state].last = -ALWAYS, ALWAYS
        for name in sorted(self.spans, key=lambda name: (self.spans[name].first, name not in self.program.states)):
            others = [other for other in found if self._meet(self.spans[name], self.spans[other])]
            found[name] = _gap(self.spans[name].size, ((found[o], self.spans[o].size) for o in others))
        return found, max((at + self.spans[name].size for name, at in found.items()), default=0)

    @staticmethod
    def _meet(a: Span, b: Span) -> bool:
        return a.first <= b.last and b.first <= a.last


def _gap(size: int, taken: Iterable[tuple[int, int]]) -> int:
    """The first place at which so many floats are free."""
    at = 0
    for begin, length in sorted(taken):
        if begin - at >= size:
            return at
        at = max(at, begin + length)
    return at


def _aliases(program: Program) -> dict[str, str]:
    moves = [i for i in program.instructions if isinstance(i, Move) and i.kind == "Reshape"]
    return {i.writes[0]: i.reads[0] for i in moves}


def _overwrites(program: Program, state: str, source: str) -> bool:
    """Whether a state's new values can take the place of the old: nobody reads the old ones once the new are there.

    Neurons read and write element by element, so each may take its own place.
    """
    if list(program.after.values()).count(source) > 1:
        return False
    family = {state}
    for i in program.instructions:
        if isinstance(i, Move) and i.kind == "Reshape" and i.reads[0] in family:
            family.add(i.writes[0])
    readers = [at for at, i in enumerate(program.instructions) if family & set(i.reads)]
    writers = [at for at, i in enumerate(program.instructions) if source in i.writes and isinstance(i, Neurons)]
    return bool(writers) and max(readers, default=0) <= writers[0]
