"""What training does not see: events that binning left out, counts that it clipped, classes without samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from axonnx.runtime.binning import Binning, Outside
from axonnx.train.data.cache import binned, can_be_kept, in_blocks
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.splits import DataSplits

WORTH_A_WARNING = 0.01  # share of the events


@dataclass(frozen=True)
class LeftOut:
    """Of the events of one part: those in no frame, by reason, and counts that were cut off by the clip."""

    events: int
    outside: Outside
    clipped: int

    def as_dict(self) -> dict[str, Any]:
        """For the run folder."""
        return {"events": self.events, "outside": self.outside.as_dict(), "clipped": self.clipped}

    def lines(self, part: str, binning: Binning) -> list[str]:
        """Lines for the log about this part; one begins with ``warning`` where more than 1 % is left out."""
        reasons = {reason.replace("_", " "): count for reason, count in self.outside.as_dict().items() if count}
        told = ", ".join(f"{count:,} {_WORDS.get(reason, reason)}" for reason, count in reasons.items())
        lines = [self._line(self.outside.total, f"{part}: ", f"are in no bin ({told})", "data.duration_ms")]
        if binning.values == "count":  # of binary input it is what was asked for
            lines.append(self._line(self.clipped, f"{part}: ", "are cut off by the clip", "data.clip, data.bins"))
        return [line for line in lines if line] or [f"{part}: all {self.events:,} events are in bins"]

    def _line(self, count: int, part: str, what: str, setting: str) -> str:
        if not count:
            return ""
        much = count > WORTH_A_WARNING * self.events
        begin, end = ("warning: ", f"; see {setting}") if much else ("", "")
        return f"{begin}{part}{count:,} of {self.events:,} events ({100 * count / self.events:.1f} %) {what}{end}"


_WORDS = {"after": "beyond the window", "before": "before the origin", "off sensor": "off the sensor"}


def left_out(splits: DataSplits, binning: Binning) -> dict[str, LeftOut]:
    """Part by part, without augmentation."""
    found = {}
    for name, data in splits.parts.items():
        assert isinstance(data, Recordings)
        found[name] = LeftOut(int(data.sizes.sum()), *_outside_and_clipped(data, binning))
    return found


def _outside_and_clipped(data: Recordings, binning: Binning) -> tuple[Outside, int]:
    if can_be_kept(data, binning):
        frames = binned(data, binning)
        return frames.outside_by_reason, int(frames.clipped.sum())
    outside, clipped = Outside(), 0
    for _, made in in_blocks(data, binning):
        outside, clipped = sum(made.outside, outside), clipped + int(made.clipped.sum())
    return outside, clipped


def classes_left_out(splits: DataSplits) -> list[str]:
    """Return a line for each part that has no sample of some classes."""
    counts = {part: np.bincount(data.labels, minlength=len(splits.classes)) for part, data in splits.parts.items()}
    lines = []
    for part, found in counts.items():
        missing = [name for name, count in zip(splits.classes, found, strict=True) if count == 0]
        if missing and part == "train":
            lines.append(f"warning: train: no sample of {', '.join(missing)}, which cannot be learned")
        elif missing:
            few = [f"{name} ({counts['train'][splits.classes.index(name)]} in training)" for name in missing]
            lines.append(f"warning: {part}: no sample of {', '.join(few)}; its figures say nothing about them")
    return lines
