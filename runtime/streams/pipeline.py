"""Run the events of a source through a session: reorder, map to the network's sensor, decide, and count every event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import EVENT, Events, concatenate_events, pick_events
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.epochs import Epochs, Piece
from axonnx.runtime.streams.reorder import Reorder
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.sources import Source, limited

LOST = ("disorder", "late")  # reasons that are no choice of the user's
TELL_EVERY = 1.0  # seconds between two reports of losses


class EventHistory:
    """An adapter that keeps its events until they are drawn."""

    def __init__(self, adapter: Adapter, binning: Binning) -> None:
        self.adapter = adapter
        self.binning = binning.model_copy(update={"bins": 1, "origin": "zero", "most_events": None})
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

    def restart(self) -> None:
        """Forget all events, because the source's clock began again."""
        self.events = self.events[:0]

    def frame(self, end_us: int) -> NDArray[np.uint8]:
        """Return the frame of the bin that ends at ``end_us``, and forget all earlier events."""
        begin = end_us - self.binning.bin_us
        moved = pick_events(self.events, (self.events["t"] >= begin) & (self.events["t"] < end_us))
        self.events = pick_events(self.events, self.events["t"] >= end_us)
        moved["t"] -= begin
        frame: NDArray[np.uint8] = bin_events(moved, self.binning).frames[0]
        return frame


class Reset(NamedTuple):
    """The clock of a live source went back: the open window is decided, and a new epoch begins at rest."""

    back_from: int
    begins: int
    epoch: int

    @property
    def text(self) -> str:
        """What users are told."""
        back_from, begins = self.back_from / 1e6, self.begins / 1e6
        return (
            f"the clock went back from {back_from:.3f} s to {begins:.3f} s, as after a reset; the open window is "
            f"decided, and epoch {self.epoch} begins"
        )


class Follower:
    """Reorder, adapt and decide on events, and begin a new epoch where their clock goes back for good."""

    def __init__(
        self,
        session: Session,
        reorder: Reorder | None = None,
        adapter: Adapter | EventHistory | None = None,
        follow: bool = True,
    ) -> None:
        self.session, self.reorder, self.adapter, self.follow = session, reorder, adapter, follow
        self.epochs = Epochs()

    def push(self, events: Events) -> Iterator[Decision | Reset]:
        """Yield the decisions that events complete. Events of what may be a new epoch are held until that is known."""
        for piece in self.epochs.push(events) if self.follow else [Piece(events)]:
            if piece.back_from is not None:
                yield from self._settle()
                yield self._restart(piece.back_from, int(piece.events["t"][0]))
            yield from self._push(piece)

    def advance(self, t_us: int) -> Iterator[Decision]:
        """Yield the decisions of the bins that end at or before ``t_us``; no event before it will follow."""
        if self.session.reached_us is not None:
            for piece in self.epochs.advance(t_us):
                yield from self._push(piece)
        yield from self.session.advance(t_us)

    def flush(self) -> Iterator[Decision]:
        """End the stream, and yield the decisions on what still waits."""
        for piece in self.epochs.flush():
            yield from self._push(piece)
        yield from self._settle()

    def _push(self, piece: Piece) -> Iterator[Decision]:
        return self._pass(piece.events if self.reorder is None else self.reorder.push(piece.events))

    def _pass(self, events: Events) -> Iterator[Decision]:
        return self.session.stream(events if self.adapter is None else self.adapter(events))

    def _settle(self) -> Iterator[Decision]:
        if self.reorder is not None:
            yield from self._pass(self.reorder.flush())
        yield from self.session.flush()

    def _restart(self, back_from: int, begins: int) -> Reset:
        if self.reorder is not None:
            self.reorder.restart()
        self.session.restart()
        if isinstance(self.adapter, EventHistory):
            self.adapter.restart()
        return Reset(back_from, begins, self.session.epoch)


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
        self.tell: Callable[[str], None] = lambda _line: None  # hears what a live source loses while it loses it
        # Where disorder is refused, it is an error, and the user knows at once.
        self._follower = Follower(session, reorder, adapter, source.live and reorder.on_disorder == "drop")
        self._told: dict[str, int] = {}
        self._told_at = -TELL_EVERY

    def decisions(self) -> Iterator[Decision]:
        """Yield decisions as they are made, until the source and its last window end.

        If the clock of a live source goes back, the open window is decided, and a new epoch begins at rest.
        """
        if self.source.live:
            self.session.warm_up()
        for events in limited(self.source.chunks(), self.most_events):
            self.read += len(events)
            yield from self._decisions(events)
            if self.source.live:
                self._tell_losses()
        yield from self._follower.flush()

    def _decisions(self, events: Events) -> Iterator[Decision]:
        for each in self._follower.push(events):
            if isinstance(each, Reset):
                self.tell(f"warning: {self.source.name}: {each.text}")
                self.source.restarted(each.begins)
            else:
                yield each

    def _tell_losses(self) -> None:
        """Report new losses, at once or a second after the last report."""
        lost = {reason: count for reason, count in self.dropped().items() if reason in LOST} | dict(self.source.skipped)
        if lost != self._told and monotonic() - self._told_at >= TELL_EVERY:
            self._told, self._told_at = lost, monotonic()
            counts = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in lost.items())
            self.tell(f"warning: {self.source.name}: lost so far: {counts}")

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
            **({"clock_resets": self.session.epoch} if self.session.epoch else {}),
            **progress.tally.as_dict(),
        }

    def dropped(self) -> dict[str, int]:
        """Return the number of events that are in no bin, by the first reason that applied."""
        counts = {"disorder": self.reorder.dropped, **self.adapter.dropped}
        for reason, count in self.session.progress.outside.as_dict().items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}
