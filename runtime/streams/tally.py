"""Count what a part of a stream cost: computed and skipped bins, spikes and synaptic operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from axonnx.runtime.engines.interface import Activity, Counts


@dataclass
class Tally:
    """Running counts over all samples; spikes and operations stay empty with an engine that does not count them."""

    computed: int = 0  # bins that the network computed, or whose outcome is known to equal that of computed bins
    skipped: int = 0  # bins that no decision needed
    uncounted: int = 0  # bins computed by an engine that counts nothing
    spikes: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    def count(self, bins: int, activity: Activity | None) -> None:
        """Add one chunk of ``bins`` bins."""
        self.computed += bins
        if activity is None:
            self.uncounted += bins
        else:
            _count(self.spikes, activity.spikes)
            _count(self.operations, activity.operations)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.computed + other.computed,
            self.skipped + other.skipped,
            self.uncounted + other.uncounted,
            _sum(self.spikes, other.spikes),
            _sum(self.operations, other.operations),
        )

    def __mul__(self, times: int) -> Tally:
        return Tally(
            self.computed * times,
            self.skipped * times,
            self.uncounted * times,
            {name: count * times for name, count in self.spikes.items()},
            {name: count * times for name, count in self.operations.items()},
        )

    def as_dict(self) -> dict[str, object]:
        """Return spikes and operations for a summary (None if nothing was counted), and the number of bins counted."""
        return {
            "spikes": dict(self.spikes) or None,
            "operations": dict(self.operations) or None,
            "bins_counted": self.computed - self.uncounted,
        }


def _count(into: dict[str, int], counts: Mapping[str, Counts]) -> None:
    for name, each in counts.items():
        # Streams usually have a single sample, and skipping the sum is faster than computing it.
        into[name] = into.get(name, 0) + (int(each[0]) if len(each) == 1 else int(each.sum()))


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}
