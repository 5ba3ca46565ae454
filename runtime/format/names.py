"""What values are called in a file: for whoever writes a graph, checks it, runs it or reads what it shows.

A layer's tensors are ``<field>/<layer>``. A state ``s`` begins as ``initial/s``, is ``next/s`` after a step and
``final/s`` after the last. What a layer did shows as ``trace/<field>/<layer>``, inside a loop as ``now/trace/…``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

INPUT = "events"
CLOCK = "step"  # the number of the time step

SPIKES, MEMBRANE, NOISE = "spikes/", "membrane/", "noise/"
TOTAL = "total/"  # the sum of a read-out's membranes
DELAYED = "delayed/"  # the frames that a delay line keeps
DELAY_LINE = "DelayLine"  # what a contract calls the layer: no operator, for it only moves data

INITIAL, NEXT, FINAL = "initial/", "next/", "final/"
TRACE = "trace/"
NOW_TRACE = f"now/{TRACE}"

LOGITS, MEMBER_LOGITS = "logits", "member_logits"
PROBABILITIES, MEMBER_PROBABILITIES = "probabilities", "member_probabilities"
ENTROPY, MUTUAL_INFORMATION = "entropy", "mutual_information"


def tensor_of(field: str, layer: str) -> str:
    """The name of one of a layer's tensors."""
    return f"{field}/{layer}"


def trace_key(name: str) -> str:
    """Which trace an output of a step or of a sequence is: spikes/<layer> or membrane/<layer>."""
    return name.removeprefix("now/").removeprefix(TRACE)


def under(prefix: str, found: Mapping[str, T]) -> dict[str, T]:
    """What is called ``<prefix>…``, by the rest of its name."""
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
