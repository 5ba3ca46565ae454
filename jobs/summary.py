"""What many answers come to: how many of each class, how many right where the truth is known, what failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from axonnx.jobs.answers import Row
from axonnx.runtime.measure.metrics import wilson_interval


@dataclass
class Summary:
    """Running counts; the order of rows does not matter."""

    recordings: int = 0
    events: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    labelled: int = 0
    right: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """One more answer."""
        self.recordings += 1
        self.events += row.get("events", 0)
        self.left_out.update(row.get("left_out", {}))
        self.labels[row["label"]] += 1
        if row["true"] is not None:
            self.labelled += 1
            self.right += row["true"] == row["label"]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; accuracy is None where no truth is known."""
        known = self.labelled > 0
        return {
            "recordings": self.recordings,
            "failed": self.failed,
            "events": self.events,
            "left_out": dict(sorted(self.left_out.items())),
            "labels": dict(sorted(self.labels.items())),
            "labelled": self.labelled,
            "right": self.right,
            "accuracy": self.right / self.labelled if known else None,
            "accuracy_interval": list(wilson_interval(self.right, self.labelled)) if known else None,
        }
