"""``axonnx run --live``: a stream's events as a picture that moves, beside the decision as it forms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.adapt import Adapter
from axonnx.runtime.bin_recordings import bin_events
from axonnx.runtime.bin_settings import Binning
from axonnx.runtime.decision import Decision
from axonnx.runtime.events import EVENT, Events
from axonnx.runtime.live_view import LiveView


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
        self.events = np.concatenate([self.events, passed])
        return passed

    def frame(self, end_us: int) -> NDArray[np.uint8]:
        """The bin that ends there; what came before it is forgotten."""
        begin = end_us - self.binning.bin_us
        inside = self.events[(self.events["t"] >= begin) & (self.events["t"] < end_us)]
        self.events = self.events[self.events["t"] >= end_us]
        moved = inside.copy()
        moved["t"] -= begin
        frame: NDArray[np.uint8] = bin_events(moved, self.binning).frames[0]
        return frame


def show(decisions: Iterable[Decision], seen: Seen, out: TextIO, seconds_per_bin: float = 0.05) -> None:
    """Draw every decision with the events of its bin."""
    view: LiveView | None = None
    for decision in decisions:
        assert decision.t_us is not None  # frames and images are not shown live
        view = view or LiveView(out, decision.classes, seconds_per_bin)
        title = f"{decision.t_us / 1e6:.3f} s, step {decision.steps} of window {decision.window}"
        view.show(seen.frame(decision.t_us), decision.probabilities, title)
