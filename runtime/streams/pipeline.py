"""A source of events through a session: reordered, moved onto the network's sensor, decided, and all accounted for."""

from __future__ import annotations

from collections.abc import Iterator

from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.reorder import Reorder
from axonnx.runtime.streams.seen import Seen
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.sources import Source, limited


class EventPipeline:
    """Events on their way: source → reorder → adapt → session. Events read = binned + dropped + pending."""

    def __init__(
        self,
        source: Source,
        session: Session,
        reorder: Reorder,
        adapter: Adapter | Seen,
        most_events: int | None = None,
    ) -> None:
        self.source, self.session, self.reorder, self.adapter = source, session, reorder, adapter
        self.most_events = most_events
        self.read = 0

    def decisions(self) -> Iterator[Decision]:
        """As they are made, to the end of the source and of its last window."""
        if self.source.live:
            self.session.warm_up()
        for events in limited(self.source.chunks(), self.most_events):
            self.read += len(events)
            yield from self.session.stream(self.adapter(self.reorder.push(events)))
        yield from self.session.stream(self.adapter(self.reorder.flush()))
        yield from self.session.flush()

    def summary(self) -> dict[str, object]:
        """Counters of the run: events read, left out, binned; decisions; spikes."""
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
        """Events that are in no bin, by the first reason that held."""
        counts = {"disorder": self.reorder.dropped, **self.adapter.dropped}
        for reason, count in self.session.progress.outside.as_dict().items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}
