"""What a buffer can hold: spikes, graded numbers with so many bits behind the point, or any real number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

UNITS = 2**24  # integers of this size and less are exact in float32


@dataclass(frozen=True)
class Values:
    """Multiples of 2^−bits whose magnitude is at most ``largest``; spikes are 0 or 1; real numbers are anything."""

    kind: Literal["spikes", "graded", "real"]
    largest: float = math.inf
    bits: int = 0

    def __str__(self) -> str:
        if self.kind != "graded":
            return self.kind
        return f"graded ≤ {self.largest:g}" + (f", 2^-{self.bits}" if self.bits else "")

    @property
    def dyadic(self) -> bool:
        """Whether sums of these can be exact."""
        return self.kind != "real"


SPIKES = Values("spikes", 1.0, 0)
REAL = Values("real")
SILENCE = Values("graded", 0.0, 0)  # zeros alone


def graded(largest: float, bits: int) -> Values:
    """Numbers on a grid, while they are exact in float32; beyond that, real numbers."""
    return Values("graded", largest, bits) if largest * 2.0**bits < UNITS else REAL


def total(terms: list[Values]) -> Values:
    """Sums or differences."""
    if not all(term.dyadic for term in terms):
        return REAL
    return graded(sum(term.largest for term in terms), max(term.bits for term in terms))


def product(a: Values, b: Values) -> Values:
    """Products; spikes times spikes are spikes."""
    if a.kind == b.kind == "spikes":
        return SPIKES
    if not (a.dyadic and b.dyadic):
        return REAL
    return graded(a.largest * b.largest, a.bits + b.bits)


def joined(parts: list[Values]) -> Values:
    """Any of these; zeros are among all of them."""
    parts = [part for part in parts if part != SILENCE] or parts
    if all(part.kind == "spikes" for part in parts):
        return SPIKES
    if not all(part.dyadic for part in parts):
        return REAL
    return graded(max(part.largest for part in parts), max(part.bits for part in parts))
