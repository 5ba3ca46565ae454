"""Counters of a server, and their text for Prometheus (exposition format 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from time import process_time

import numpy as np

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUANTILES = (0.5, 0.9, 0.99)
KEPT = 8192  # number of most recent latencies for the percentiles


class Metrics:
    """The counters. Only the event loop changes them, so no lock is needed."""

    def __init__(self) -> None:
        self.streams = self.events = self.bytes = self.decisions = self.saved = self.resumed = self.faults = 0
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.latency_s = 0.0
        self._latencies = np.zeros(KEPT)

    def count_decisions(self, count: int, seconds: float) -> None:
        """Count decisions that were sent ``seconds`` after their message arrived."""
        fill = np.arange(self.decisions, self.decisions + min(count, KEPT)) % KEPT
        self._latencies[fill] = seconds
        self.decisions += count
        self.latency_s += count * seconds

    def percentiles(self) -> dict[float, float]:
        """Return percentiles of the most recent latencies in seconds; NaN if there are none."""
        known = self._latencies[: min(self.decisions, KEPT)]
        values = np.quantile(known, QUANTILES) if len(known) else np.full(len(QUANTILES), np.nan)
        return dict(zip(QUANTILES, map(float, values), strict=True))

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all counters as text, with the current gauges as name → (help, value)."""
        lines: list[str] = []
        for name, (about, value) in gauges.items():
            lines += _family(name, "gauge", about, [("", value)])
        for name, about, count in (
            ("streams_total", "Streams started", self.streams),
            ("events_total", "Events received", self.events),
            ("received_bytes_total", "Bytes of event records received", self.bytes),
            ("decisions_total", "Decisions sent", self.decisions),
            ("sessions_saved_total", "Sessions written to disk", self.saved),
            ("sessions_resumed_total", "Streams resumed from a saved session", self.resumed),
            ("faults_total", "Streams ended by an internal error of the server", self.faults),
            ("cpu_seconds_total", "Processor time of the process", process_time()),
        ):
            lines += _family(name, "counter", about, [("", count)])
        lines += _family("events_dropped_total", "counter", "Events in no bin, by reason", _by("reason", self.dropped))
        lines += _family("streams_refused_total", "counter", "Streams refused, by reason", _by("reason", self.refused))
        quantiles = [(f'{{quantile="{at}"}}', value) for at, value in self.percentiles().items()]
        name, about = "decision_latency_seconds", "Time from the arrival of a message to the sending of its decision"
        lines += _family(name, "summary", about, quantiles)
        lines += [f"axonnx_{name}_sum {self.latency_s!r}", f"axonnx_{name}_count {self.decisions}"]
        return "\n".join(lines) + "\n"


def _by(label: str, counts: Counter[str]) -> list[tuple[str, float]]:
    return [(f'{{{label}="{key}"}}', count) for key, count in sorted(counts.items())]


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    full = f"axonnx_{name}"
    shown = [f"{full}{labels} {'NaN' if value != value else repr(value)}" for labels, value in samples]
    return [f"# HELP {full} {about}", f"# TYPE {full} {kind}", *shown]
