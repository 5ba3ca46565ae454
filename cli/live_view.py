"""``axonnx run --live``: a stream's events as a picture that moves, beside the decision as it forms."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.pipeline import EventHistory

BAR = 24
MOST_ROWS, MOST_COLUMNS = 32, 64
UP = "\x1b[{}A"
CLEAR = "\x1b[K"
COLOURS = {0: "\x1b[90m·\x1b[0m", 1: "\x1b[32m█\x1b[0m", 2: "\x1b[31m█\x1b[0m", 3: "\x1b[33m█\x1b[0m"}


class LiveView:
    """Redraws one picture in place: pixels (green: brighter, red: darker, yellow: both) beside probability bars."""

    def __init__(self, out: TextIO, classes: Sequence[str], seconds_per_frame: float = 0.05) -> None:
        self.out, self.classes, self.pause = out, classes, seconds_per_frame
        self.lines = 0

    def show(self, frame: NDArray[np.generic], probabilities: NDArray[np.floating], title: str) -> None:
        """One time bin: a frame [C, H, W] and the decision so far."""
        picture = picture_rows(frame)
        bars = bar_rows(probabilities, self.classes)
        height = max(len(picture), len(bars))
        blank = " " * _shrunk(frame != 0).shape[-1]
        rows = [
            f"{(picture[i] if i < len(picture) else blank)}   {bars[i] if i < len(bars) else ''}{CLEAR}"
            for i in range(height)
        ]
        text = "\n".join([f"{title}{CLEAR}", *rows]) + "\n"
        self.out.write((UP.format(self.lines) + "\r" if self.lines else "") + text)
        self.out.flush()
        self.lines = height + 1
        time.sleep(self.pause)


def show(decisions: Iterable[Decision], seen: EventHistory, out: TextIO, seconds_per_bin: float = 0.05) -> None:
    """Draw every decision with the events of its bin."""
    view: LiveView | None = None
    for decision in decisions:
        end_us = decision.t_us or 0  # None of a recording without an event
        view = view or LiveView(out, decision.classes, seconds_per_bin)
        partial = ", partly filled: the events have ended" if decision.partial else ""
        title = f"{end_us / 1e6:.3f} s, step {decision.steps} of window {decision.window}{partial}"
        view.show(seen.frame(end_us), decision.probabilities, title)


def picture_rows(frame: NDArray[np.generic]) -> list[str]:
    """Draw a frame [C, H, W] as rows of coloured characters, 32 × 64 at the most; larger frames are shrunk."""
    active = _shrunk(frame != 0)
    on, off = active[-1], active[0] if len(active) > 1 else np.zeros_like(active[0])
    return [
        "".join(COLOURS[int(a) + 2 * int(b)] for a, b in zip(*row, strict=True)) for row in zip(on, off, strict=True)
    ]


def _shrunk(active: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Squares of pixels, active where one of theirs is."""
    channels, height, width = active.shape
    side = max(-(-height // MOST_ROWS), -(-width // MOST_COLUMNS))
    padded = np.pad(active, ((0, 0), (0, -height % side), (0, -width % side)))
    squares = padded.reshape(channels, padded.shape[1] // side, side, padded.shape[2] // side, side)
    shrunk: NDArray[np.bool_] = np.asarray(squares.any((2, 4)))
    return shrunk


def bar_rows(probabilities: NDArray[np.floating], classes: Sequence[str], most: int = 12) -> list[str]:
    """Draw the likeliest classes with a bar each, in the order of the classes."""
    shown = sorted(np.argsort(-probabilities)[:most].tolist())
    width = max(len(classes[i]) for i in shown)
    best = int(probabilities.argmax())
    rows = []
    for i in shown:
        bar = "█" * round(BAR * float(probabilities[i]))
        line = f"{classes[i]:>{width}} {bar:<{BAR}} {100 * float(probabilities[i]):5.1f} %"
        rows.append(f"\x1b[1m{line} ◀\x1b[0m" if i == best else line)
    return rows
