"""One client's stream: records in, decisions as JSON out, in blocks of limited size. Nothing here waits for a network.

One thread at a time calls the methods: the connection requests the next block after it has sent the previous one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import RECORD, from_records
from axonnx.runtime.serve.messages import MALFORMED, NotSavedError, RefusedError, decision_message, message
from axonnx.runtime.serve.outbox import Outbox
from axonnx.runtime.serve.view import View
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.pipeline import LOST, TELL_EVERY, Follower, Reset
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.session_state import SessionState

BLOCK = 256  # decisions in memory at a time, because one message can cause millions
MOST_UNREAD = 16 * BLOCK  # decisions that are computed after a client has gone, so that its session can be saved


@dataclass(frozen=True)
class Block:
    """What a message causes, or the first part of it."""

    texts: list[str]  # decisions that the client needs, and warnings
    more: bool  # whether more of them follow
    decisions: int  # among the texts


class Stream:
    """A session with the adapter of its sensor and its counters."""

    def __init__(
        self, number: int, key: str, session: Session, adapter: Adapter, keeps: bool = False, every_bin: bool = False
    ) -> None:
        self.number, self.key, self.session, self.adapter = number, key, session, adapter
        self.outbox, self.every_bin = Outbox(keeps), every_bin
        self.generation = 1  # of the session; each resume begins a new one
        self.again: list[str] = []  # decisions of earlier connections that the client does not have
        self.events = 0  # events that the client has sent since its first connection
        self.views: tuple[View, ...] = ()  # views of pages that watch the stream
        self._follower = Follower(session)
        self._left: Iterator[Decision | Reset] = iter(())
        self._lost: dict[str, int] = {}
        self._lost_at = -TELL_EVERY

    def take(self, data: bytes) -> Block:
        """Process a message of records and return the first decisions."""
        if len(data) % RECORD.itemsize:
            raise RefusedError(
                MALFORMED,
                "records",
                f"the message has {len(data)} bytes; expected whole records of {RECORD.itemsize} bytes",
            )
        events = from_records(data, "stream", self.events)
        self.events += len(events)
        moved = self.adapter(events)
        for view in self.views:
            view.add_events(moved)
        return self._begin(self._follower.push(moved))

    def told(self) -> list[str]:
        """Return what the client should know by now: new losses, at most once a second."""
        texts = []
        lost = {reason: count for reason, count in self.dropped().items() if reason in LOST}
        if lost != self._lost and monotonic() - self._lost_at >= TELL_EVERY:
            self._lost, self._lost_at = lost, monotonic()
            texts.append(message("lost", dropped=lost))
        return texts

    def advance(self, t_us: int) -> Block:
        """Return the decisions of bins that end at or before ``t_us``; no more events of these bins may follow."""
        return self._begin(self._follower.advance(t_us))

    def end(self) -> Block:
        """End the stream and return the remaining decisions."""
        return self._begin(self._follower.flush())

    def more(self) -> Block:
        """Return the next decisions of the same message, and a warning before the first of each new epoch."""
        made = list(islice(self._left, BLOCK))
        decisions = [each for each in made if isinstance(each, Decision)]
        for view in self.views:
            view.add_decisions(decisions)
        before = self.outbox.next
        texts = [text for each in made if (text := self._kept(each))]
        needed = self.outbox.next - min(max(before, self.outbox.has), self.outbox.next)
        return Block(texts, len(made) == BLOCK, needed)

    def _kept(self, made: Decision | Reset) -> str | None:
        """Put a decision or a warning into the outbox, and return its text if the client needs it."""
        if isinstance(made, Reset):
            text = message("warning", epoch=made.epoch, text=made.text)
            return text if self.outbox.add_warning(text) else None
        text = decision_message(made, self.outbox.next)
        return text if self.outbox.add(text) else None

    def finish_message(self) -> None:
        """Put the remaining decisions of a message into the outbox, because nobody reads them now.

        Raises:
            NotSavedError: If there are more of them than could be kept.
        """
        for _ in range(MOST_UNREAD // BLOCK):
            if not self.more().more:
                return
        raise NotSavedError("the last message has too many decisions that nobody has read")

    def save(self) -> SessionState:
        """Return the state of the stream between two messages."""
        delivery = {**self.outbox.state(), "every_bin": self.every_bin, "clock": self._follower.epochs.state()}
        return replace(self.session.save(), left_out=dict(self.adapter.dropped), delivery=delivery)

    def restore(self, state: SessionState) -> None:
        """Continue from a saved state."""
        self.session.restore(state)
        if state.delivery.get("every_bin", self.every_bin) != self.every_bin:
            raise AxonnxError("the saved session has another every_bin; resume it as it was begun")
        try:
            self.outbox.restore(state.delivery, state.progress.decisions)
            waiting = self._follower.epochs.restore(state.delivery.get("clock", {}))
        except ValueError as fault:
            raise AxonnxError(f"the saved session is damaged ({fault}); begin a new one") from None
        unknown = set(state.left_out) - set(self.adapter.dropped)
        if unknown:
            raise AxonnxError(f"the saved session has the unknown counter {sorted(unknown)[0]!r}; begin a new one")
        self.adapter.dropped |= state.left_out
        self.events = state.progress.events + sum(state.left_out.values()) + waiting

    def dropped(self) -> dict[str, int]:
        """Return the number of events that are in no bin, by reason."""
        counts = self.session.progress.outside.as_dict()
        for reason, count in self.adapter.dropped.items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}

    def summary(self) -> dict[str, object]:
        """Return the counters of the whole stream. After its end, events = binned + dropped."""
        progress = self.session.progress
        return {
            "events": self.events,
            "binned": progress.binned,
            "dropped": self.dropped(),
            "clipped": progress.clipped,
            "bins": progress.bins,
            "decisions": progress.decisions,
            **({"clock_resets": self.session.epoch} if self.session.epoch else {}),
        }

    def _begin(self, made: Iterator[Decision | Reset]) -> Block:
        self._left = made
        return self.more()
