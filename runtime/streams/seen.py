"""What went through an adapter, kept until it was shown: ``axonnx run --live`` draws it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import EVENT, Events, concatenate_events, pick_events
from axonnx.runtime.streams.adapt import Adapter


class Seen:
    """An adapter that remembers what went through it until it was shown."""

    def __init__(self, adapter: Adapter, binning: Binning) -> None:
        self.adapter = adapter
        self.binning = binning.model_copy(update={"bins": 1, "origin": "zero"})
        self.events: Events = np.zeros(0, EVENT)

    @property
    def dropped(self) -> dict[str, int]:
        """As the adapter counts it."""
        return self.adapter.dropped

    def __call__(self, events: Events) -> Events:
        """What the adapter makes of events."""
        passed = self.adapter(events)
        self.events = concatenate_events([self.events, passed])
        return passed

    def frame(self, end_us: int) -> NDArray[np.uint8]:
        """The bin that ends there; what came before it is forgotten."""
        begin = end_us - self.binning.bin_us
        moved = pick_events(self.events, (self.events["t"] >= begin) & (self.events["t"] < end_us))
        self.events = pick_events(self.events, self.events["t"] >= end_us)
        moved["t"] -= begin
        frame: NDArray[np.uint8] = bin_events(moved, self.binning).frames[0]
        return frame
