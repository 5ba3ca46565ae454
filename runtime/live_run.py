"""``axonnx run --live``: a stream's events as a picture that moves, beside the decision as it forms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from axonnx.runtime.decision import Decision
from axonnx.runtime.live_view import LiveView
from axonnx.runtime.seen import Seen


def show(decisions: Iterable[Decision], seen: Seen, out: TextIO, seconds_per_bin: float = 0.05) -> None:
    """Draw every decision with the events of its bin."""
    view: LiveView | None = None
    for decision in decisions:
        assert decision.t_us is not None  # frames and images are not shown live
        view = view or LiveView(out, decision.classes, seconds_per_bin)
        title = f"{decision.t_us / 1e6:.3f} s, step {decision.steps} of window {decision.window}"
        view.show(seen.frame(decision.t_us), decision.probabilities, title)
