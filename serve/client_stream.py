"""One client's stream: records in, decisions as JSON out, in blocks of bounded size. Nothing here waits for a network.

Methods are called by one thread at a time: the connection asks for the next block once the last one was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.records import RECORD, from_records
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.session_state import SessionState
from axonnx.serve.messages import MALFORMED, RefusedError, decision_message
from axonnx.serve.view import View

BLOCK = 256  # decisions that are in memory at a time: one message can ask for millions


@dataclass(frozen=True)
class Block:
    """Some decisions of a message, and whether more of them are to come."""

    texts: list[str]
    more: bool


class Stream:
    """A session, what brings events onto its sensor, and counters."""

    def __init__(self, number: int, key: str, session: Session, adapter: Adapter) -> None:
        self.number, self.key, self.session, self.adapter = number, key, session, adapter
        self.events = 0  # that the client sent, from its first connection on
        self.views: tuple[View, ...] = ()  # of pages that look on
        self._left: Iterator[Decision] = iter(())

    def take(self, data: bytes) -> Block:
        """Return the first decisions of a message of records."""
        if len(data) % RECORD.itemsize:
            raise RefusedError(
                MALFORMED,
                "records",
                f"a message of {len(data)} bytes; expected whole records of {RECORD.itemsize} bytes",
            )
        events = from_records(data, "stream", self.events)
        self.events += len(events)
        moved = self.adapter(events)
        for view in self.views:
            view.add_events(moved)
        return self._begin(self.session.stream(moved))

    def advance(self, t_us: int) -> Block:
        """Return the decisions of bins that end at or before ``t_us``: no event of them is to come."""
        return self._begin(iter(self.session.advance(t_us)))

    def end(self) -> Block:
        """Return the decisions of what is left."""
        return self._begin(iter(self.session.flush()))

    def more(self) -> Block:
        """Return the next decisions of the same message."""
        decisions = list(islice(self._left, BLOCK))
        for view in self.views:
            view.add_decisions(decisions)
        return Block([decision_message(decision) for decision in decisions], len(decisions) == BLOCK)

    def save(self) -> SessionState:
        """Where the stream stands between two messages."""
        return replace(self.session.save(), left_out=dict(self.adapter.dropped))

    def restore(self, state: SessionState) -> None:
        """Go on from there."""
        self.session.restore(state)
        unknown = set(state.left_out) - set(self.adapter.dropped)
        if unknown:
            raise AxonnxError(f"the saved session counts {sorted(unknown)[0]!r}, which no server does")
        self.adapter.dropped |= state.left_out
        self.events = state.progress.events + sum(state.left_out.values())

    def dropped(self) -> dict[str, int]:
        """Events that are in no bin, by reason."""
        counts = self.session.progress.outside.as_dict()
        for reason, count in self.adapter.dropped.items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}

    def summary(self) -> dict[str, object]:
        """Counters of the whole stream: events = binned + dropped, once it has ended."""
        progress = self.session.progress
        return {
            "events": self.events,
            "binned": progress.binned,
            "dropped": self.dropped(),
            "clipped": progress.clipped,
            "bins": progress.bins,
            "decisions": progress.decisions,
        }

    def _begin(self, decisions: Iterator[Decision]) -> Block:
        self._left = decisions
        return self.more()
