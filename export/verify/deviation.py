"""By how much a file deviates from the training network, in shares of what is allowed, and what is beyond that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
MOST_FAULTS = 8  # that are told one by one


@dataclass
class Deviation:
    """What was compared, by how much of its bound it deviates at the most, and what is beyond it."""

    constants: int = 0
    membranes: int = 0
    spikes: int = 0
    spikes_differing: int = 0  # all of them within the bound of their threshold
    logits: int = 0
    largest: float = 0.0  # |deviation| / bound, of membranes and logits
    faults: list[str] = field(default_factory=list)

    def fault(self, line: str) -> None:
        """Note what is beyond its bound."""
        self.faults.append(line)

    def judge(self, what: str, found: NDArray[Any], expected: Doubles, allowed: Doubles, at: Place) -> None:
        """Every number within its bound, or a fault that names the first beyond it."""
        deviation, allowed = np.abs(found.astype(np.float64) - expected), np.broadcast_to(allowed, expected.shape)
        bad = ~(deviation <= allowed)  # a NaN is beyond every bound
        if at.counts:
            share = np.divide(deviation, allowed, out=np.zeros_like(deviation), where=allowed > 0)
            self.largest = max(self.largest, float(share[~bad].max(initial=0.0)))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            self.fault(
                f"{what}{at.of(index)} is {float(found[index]):.7g}, the training network gives "
                f"{float(expected[index]):.7g}; rounding allows {float(allowed[index]):.2g} "
                f"({int(bad.sum()):,} of {bad.size:,} beyond it)"
            )

    def lines(self) -> list[str]:
        """Return what is beyond its bound; if nothing is, what was compared and how near to its bound it came."""
        if self.faults:
            shown = self.faults[:MOST_FAULTS]
            more = len(self.faults) - len(shown)
            return [*shown, *([f"… and {more} more"] if more else [])]
        return [
            f"{self.constants:,} constants are within half a step of their grid from the training network's",
            f"{self.membranes:,} membranes and {self.logits:,} logits: the largest deviation is {self.largest:.2f} of "
            f"what rounding to the grid allows",
            f"{self.spikes_differing:,} of {self.spikes:,} spikes differ, each with its membrane that close to its "
            f"threshold",
        ]


@dataclass(frozen=True)
class Place:
    """What the axes of an array stand for: [(T,) B, …] from sample ``offset`` on, or none of that (``counts`` off)."""

    time: int = 0
    offset: int = 0
    counts: bool = True

    def of(self, index: tuple[int, ...]) -> str:
        """Time step, neuron and sample of an index."""
        if not self.counts:
            return str(list(index))
        step = f", time step {index[0]}" if self.time else ""
        return f"{step}, neuron {list(index[self.time + 1 :])}, sample {self.offset + index[self.time]}"
