"""What a stretch of a stream cost: bins gone through, bins passed over, spikes and synaptic operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from axonnx.runtime.engine import Activity


@dataclass(frozen=True)
class Tally:
    """Counts over all samples; spikes and operations stay empty with an engine that does not count them."""

    computed: int = 0  # bins the network went through, or whose outcome is known to be that of bins it went through
    skipped: int = 0  # bins that no decision needed
    spikes: Mapping[str, int] = field(default_factory=dict)
    operations: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, bins: int, activity: Activity | None) -> Self:
        """The counts of one chunk of so many bins."""
        if activity is None:
            return cls(bins)
        spikes = {name: int(counts.sum()) for name, counts in activity.spikes.items()}
        operations = {name: int(counts.sum()) for name, counts in activity.operations.items()}
        return cls(bins, 0, spikes, operations)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.computed + other.computed,
            self.skipped + other.skipped,
            _sum(self.spikes, other.spikes),
            _sum(self.operations, other.operations),
        )

    def __mul__(self, times: int) -> Tally:
        return Tally(
            self.computed * times,
            self.skipped * times,
            {name: count * times for name, count in self.spikes.items()},
            {name: count * times for name, count in self.operations.items()},
        )


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}
