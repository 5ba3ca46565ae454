"""The names of values in a file, for all code that writes, checks, runs or reads a graph.

A layer's tensors are named ``<field>/<layer>``. A state ``s`` begins as ``initial/s``, is ``next/s`` after a step and
``final/s`` after the last step. Traces of a layer are ``trace/<field>/<layer>``, and ``now/trace/…`` inside a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

INPUT = "events"
CLOCK = "step"  # number of the time step

SPIKES, MEMBRANE, NOISE = "spikes/", "membrane/", "noise/"
TOTAL = "total/"  # what a read-out made of its membranes so far: their sum, the last one, or the largest one
BEGUN = "begun/"  # whether a read-out has a maximum yet
OF_WINDOW = (TOTAL, BEGUN)  # states that begin anew with every window, even if membranes go on
DELAYED = "delayed/"  # frames that a delay line keeps

INITIAL, NEXT, FINAL = "initial/", "next/", "final/"
TRACE = "trace/"
NOW_TRACE = f"now/{TRACE}"

LOGITS, MEMBER_LOGITS = "logits", "member_logits"
PROBABILITIES, MEMBER_PROBABILITIES = "probabilities", "member_probabilities"
ENTROPY, MUTUAL_INFORMATION = "entropy", "mutual_information"


def tensor_of(field: str, layer: str) -> str:
    """Return the name of one of a layer's tensors."""
    return f"{field}/{layer}"


def trace_key(name: str) -> str:
    """Return the trace that an output of a step or a sequence holds: spikes/<layer> or membrane/<layer>."""
    return name.removeprefix("now/").removeprefix(TRACE)


def under(prefix: str, found: Mapping[str, T]) -> dict[str, T]:
    """Return all entries named ``<prefix>…``, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
