"""The view of a stream on a page: the events since the last picture, and how the decision develops."""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from collections.abc import Sequence
from threading import Lock

import numpy as np

from axonnx.runtime.events.arrays import Events, Sensor
from axonnx.runtime.streams.decision import Decision

SIDE = 64  # cells on the picture's longer side; one cell of a larger sensor is a square of pixels
KEPT = 200  # decisions in the history
LISTED = 12  # classes that are shown, those with the highest probabilities


class View:
    """A picture that worker threads add to and a page takes."""

    def __init__(self, sensor: Sensor) -> None:
        self._square = max(1, -(-max(sensor.width, sensor.height) // SIDE))
        self.width, self.height = -(-sensor.width // self._square), -(-sensor.height // self._square)
        self._cells = self.width * self.height
        self._counts = np.zeros((2, self._cells), np.int64)
        self._history: deque[tuple[int | None, int, float]] = deque(maxlen=KEPT)
        self._last: Decision | None = None
        self._alone = Lock()

    def add_events(self, events: Events) -> None:
        """Count events by cell and polarity; events off the sensor are not shown."""
        x, y = events["x"] // self._square, events["y"] // self._square
        seen = (x < self.width) & (y < self.height) & (events["p"] < 2)
        cell = (events["p"][seen].astype(np.int64) * self.height + y[seen]) * self.width + x[seen]
        counts = np.bincount(cell, minlength=2 * self._cells).reshape(2, self._cells)
        with self._alone:
            self._counts += counts

    def add_decisions(self, decisions: Sequence[Decision]) -> None:
        """Keep the last decision, and the winners of the others."""
        with self._alone:
            self._history.extend(_point(each) for each in decisions)
            self._last = decisions[-1] if decisions else self._last

    def take(self) -> dict[str, object]:
        """Return everything to be drawn as plain values, and start a new picture."""
        with self._alone:
            counts, self._counts = self._counts, np.zeros_like(self._counts)
            history, last = list(self._history), self._last
        off, on = (b64encode(np.minimum(plane, 255).astype(np.uint8).tobytes()).decode() for plane in counts)
        return {
            "width": self.width,
            "height": self.height,
            "on": on,
            "off": off,
            "history": history,
            "decision": None if last is None else _shown(last),
        }


def _point(decision: Decision) -> tuple[int | None, int, float]:
    """Return the time, the winner and its probability; of a regression its first value."""
    if decision.units is not None:
        return decision.t_us, 0, float(decision.logits[0])
    return decision.t_us, decision.winner, decision.confidence


def _shown(decision: Decision) -> dict[str, object]:
    when = {"t_us": decision.t_us, "final": decision.final, "steps": decision.steps}
    if decision.units is not None:
        named = zip(decision.values.items(), decision.units, strict=True)
        return {**when, "label": decision.text, "values": [[name, value, unit] for (name, value), unit in named]}
    best = sorted(np.argsort(-decision.probabilities, kind="stable")[:LISTED].tolist())
    return {
        **when,
        "label": decision.label,
        "probability": decision.confidence,
        "entropy": decision.entropy,
        "bars": [[decision.classes[i], float(decision.probabilities[i])] for i in best],
    }
