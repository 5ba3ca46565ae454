"""Run the events of a source through a session: reorder, map to the network's sensor, decide, and count every event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import EVENT, Events, concatenate_events, pick_events
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.reorder import Reorder
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.sources import Source, limited


class EventHistory:
    """An adapter that keeps its events until they are drawn."""

    def __init__(self, adapter: Adapter, binning: Binning) -> None:
        self.adapter = adapter
        self.binning = binning.model_copy(update={"bins": 1, "origin": "zero"})
        self.events: Events = np.zeros(0, EVENT)

    @property
    def dropped(self) -> dict[str, int]:
        """Events that the adapter dropped, by reason."""
        return self.adapter.dropped

    def __call__(self, events: Events) -> Events:
        """Return the adapted events."""
        passed = self.adapter(events)
        self.events = concatenate_events([self.events, passed])
        return passed

    def frame(self, end_us: int) -> NDArray[np.uint8]:
        """Return the frame of the bin that ends at ``end_us``, and forget all earlier events."""
        begin = end_us - self.binning.bin_us
        moved = pick_events(self.events, (self.events["t"] >= begin) & (self.events["t"] < end_us))
        self.events = pick_events(self.events, self.events["t"] >= end_us)
        moved["t"] -= begin
        frame: NDArray[np.uint8] = bin_events(moved, self.binning).frames[0]
        return frame


class EventPipeline:
    """The stages source → reorder → adapt → session. Events read = binned + dropped + pending."""

    def __init__(
        self,
        source: Source,
        session: Session,
        reorder: Reorder,
        adapter: Adapter | EventHistory,
        most_events: int | None = None,
    ) -> None:
        self.source, self.session, self.reorder, self.adapter = source, session, reorder, adapter
        self.most_events = most_events
        self.read = 0

    def decisions(self) -> Iterator[Decision]:
        """Yield decisions as they are made, until the source and its last window end."""
        if self.source.live:
            self.session.warm_up()
        for events in limited(self.source.chunks(), self.most_events):
            self.read += len(events)
            yield from self.session.stream(self.adapter(self.reorder.push(events)))
        yield from self.session.stream(self.adapter(self.reorder.flush()))
        yield from self.session.flush()

    def summary(self) -> dict[str, object]:
        """Return the counters of the run: events read, dropped and binned; decisions; spikes."""
        progress = self.session.progress
        dropped = self.dropped()
        return {
            "events": self.read,
            "binned": progress.binned,
            "dropped": dropped,
            "pending": self.read - progress.binned - sum(dropped.values()),
            "sorted": self.reorder.sorted,
            "clipped": progress.clipped,
            "skipped": dict(self.source.skipped),
            "bins": progress.bins,
            "bins_skipped": progress.tally.skipped,
            "decisions": progress.decisions,
            **progress.tally.as_dict(),
        }

    def dropped(self) -> dict[str, int]:
        """Return the number of events that are in no bin, by the first reason that applied."""
        counts = {"disorder": self.reorder.dropped, **self.adapter.dropped}
        for reason, count in self.session.progress.outside.as_dict().items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}
