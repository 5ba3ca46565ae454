"""How the layers of a program hang together: what each one's sum is made of, found by following every buffer.

forward    spikes (or the input) through a synapse into a layer's sum
recurrent  the same, with the spikes of the step before
stream     a sum that another layer had already, and that goes on (residual networks)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from axonnx.runtime.format.names import SPIKES
from axonnx.runtime.program.instructions import Conv, Instruction, Linear, Neurons, Program

INPUT = "input"
Kind = Literal["forward", "recurrent", "stream"]
POOLS = ("AveragePool", "MaxPool", "PoolPairs")


class Path(NamedTuple):
    """A way into a sum: from whose values, of which step, through which synapse."""

    source: str
    before: bool  # the step before
    synapse: str | None = None
    pooled: bool = False


@dataclass(frozen=True)
class Wire:
    """A connection that is drawn."""

    source: str
    target: str
    kind: Kind
    synapse: str | None = None
    pooled: bool = False


def wires(program: Program) -> tuple[Wire, ...]:
    """All connections in the order of their targets; each synapse leads to the layer that it reaches first."""
    ways: dict[str, frozenset[Path]] = {program.input: frozenset([Path(INPUT, False)])}
    ways |= {name: frozenset([Path(_layer(name), True)]) for name in program.states if name.startswith(SPIKES)}
    found, had = list[Wire](), dict[Path, str]()
    for i in program.instructions:
        if isinstance(i, Neurons):
            found += _arriving(i.layer, _sum(i, program, ways), had)
            ways |= dict.fromkeys(i.writes, frozenset([Path(i.layer, False)]))
        else:
            arriving = frozenset(way for name in i.reads for way in ways.get(name, frozenset()))
            ways |= dict.fromkeys(i.writes, frozenset(_through(i, way) for way in arriving))
    for logits in program.logits:  # sums that no neuron takes
        through = {way.synapse for way in ways[logits]}
        last = next(i.name for i in reversed(program.instructions) if i.name in through)
        found += _arriving(last, ways[logits], had)
    return tuple(found)


def _sum(i: Neurons, program: Program, ways: dict[str, frozenset[Path]]) -> frozenset[Path]:
    """What a layer adds up, without its own state."""
    computed = [name for name in i.reads if name in program.buffers and program.buffers[name].role != "state"]
    return frozenset(way for name in computed for way in ways.get(name, frozenset()))


def _through(i: Instruction, way: Path) -> Path:
    if isinstance(i, Linear | Conv):
        return way._replace(synapse=i.name)
    return way._replace(pooled=True) if i.op in POOLS and way.synapse is None else way


def _arriving(target: str, arriving: frozenset[Path], had: dict[Path, str]) -> list[Wire]:
    """New ways are wires of their own; all that others had come as one stream from the last of them."""
    ordered = sorted(arriving, key=lambda way: (way.before, way.source, way.synapse or ""))
    new = [way for way in ordered if way not in had]
    found = [Wire(way.source, target, "recurrent" if way.before else "forward", way.synapse, way.pooled) for way in new]
    receivers = list(had.values())
    old = {had[way] for way in ordered if way in had}
    if old:
        found.append(Wire(max(old, key=lambda name: len(receivers) - receivers[::-1].index(name)), target, "stream"))
    for way in ordered:
        had.pop(way, None)
        had[way] = target
    return found


def _layer(state: str) -> str:
    return state.partition("/")[2]
