"""Parts of a program that have nothing but the input in common: the members of an ensemble."""

from __future__ import annotations

from axonnx.runtime.program.instructions import Program


def member_of(program: Program) -> dict[str, int]:
    """The part that each instruction belongs to, by its name; parts are numbered as they begin."""
    above: dict[str, str] = {}

    def first(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    linked = [(*i.reads, *i.writes) for i in program.instructions]
    linked += [(state, source) for state, source in program.after.items()]
    for names in linked:
        own = [name for name in names if name in program.buffers and name != program.input]
        for name in own:
            above[first(own[0])] = first(name)
    numbers: dict[str, int] = {}
    found = {i.name: first(i.writes[0]) for i in program.instructions}
    return {name: numbers.setdefault(root, len(numbers)) for name, root in found.items()}
