"""``axonnx run --live``: a stream's events as a picture that moves, beside the decision as it forms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from axonnx.cli.show.live_view import LiveView
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.seen import Seen


def show(decisions: Iterable[Decision], seen: Seen, out: TextIO, seconds_per_bin: float = 0.05) -> None:
    """Draw every decision with the events of its bin."""
    view: LiveView | None = None
    for decision in decisions:
        end_us = decision.t_us or 0  # None of a recording without an event
        view = view or LiveView(out, decision.classes, seconds_per_bin)
        partial = ", partly filled: the events have ended" if decision.partial else ""
        title = f"{end_us / 1e6:.3f} s, step {decision.steps} of window {decision.window}{partial}"
        view.show(seen.frame(end_us), decision.probabilities, title)
