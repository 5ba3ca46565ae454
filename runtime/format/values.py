"""The values that a buffer can hold: spikes, graded numbers with a number of fractional bits, or any real numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

UNITS = 2**24  # integers up to this size are exact in float32


@dataclass(frozen=True)
class Values:
    """Multiples of 2^−bits of magnitude at most ``largest``; spikes are 0 or 1; real numbers are unrestricted."""

    kind: Literal["spikes", "graded", "real"]
    largest: float = math.inf
    bits: int = 0

    def __str__(self) -> str:
        if self.kind != "graded":
            return self.kind
        return f"graded ≤ {self.largest:g}" + (f", 2^-{self.bits}" if self.bits else "")

    @property
    def dyadic(self) -> bool:
        """Whether sums of these values can be exact."""
        return self.kind != "real"


SPIKES = Values("spikes", 1.0, 0)
REAL = Values("real")
SILENCE = Values("graded", 0.0, 0)  # zeros only


def graded(largest: float, bits: int) -> Values:
    """Return numbers on a grid if they are exact in float32, and real numbers otherwise."""
    return Values("graded", largest, bits) if largest * 2.0**bits < UNITS else REAL


def total(terms: list[Values]) -> Values:
    """Return the values of sums or differences."""
    if not all(term.dyadic for term in terms):
        return REAL
    return graded(sum(term.largest for term in terms), max(term.bits for term in terms))


def product(a: Values, b: Values) -> Values:
    """Return the values of products; spikes times spikes are spikes."""
    if a.kind == b.kind == "spikes":
        return SPIKES
    if not (a.dyadic and b.dyadic):
        return REAL
    return graded(a.largest * b.largest, a.bits + b.bits)


def joined(parts: list[Values]) -> Values:
    """Return the values of a buffer that may hold any of these; zeros belong to all of them."""
    parts = [part for part in parts if part != SILENCE] or parts
    if all(part.kind == "spikes" for part in parts):
        return SPIKES
    if not all(part.dyadic for part in parts):
        return REAL
    return graded(max(part.largest for part in parts), max(part.bits for part in parts))
