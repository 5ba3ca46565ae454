"""Accuracy and calibration of a file on labelled data, with intervals and the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.measure.labelled_data import LabelledData
from axonnx.runtime.measure.metrics import Interval, Metrics, bootstrap_intervals, measure
from axonnx.runtime.model import Model


@dataclass(frozen=True)
class Evaluation:
    """Figures of one file on one set of labelled data."""

    source: str
    data_sha256: str
    metrics: Metrics
    intervals: dict[str, Interval]  # of accuracy (Wilson), NLL, Brier score and ECE (bootstrap); 95 %
    classes: tuple[str, ...]
    events: int
    left_out: dict[str, int]  # events that are in no frame, by reason
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = self.metrics
        values = {name: getattr(found, name) for name in ("accuracy", "nll", "brier", "ece")}
        return {
            "data": self.source,
            "data_sha256": self.data_sha256,
            "samples": found.samples,
            **values,
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "classes": list(self.classes),
            "confusion": found.confusion,
            "events": self.events,
            "left_out": self.left_out,
            "notes": list(self.notes),
        }


def evaluate(model: Model, data: LabelledData, seed: int = 0) -> Evaluation:
    """Run every sample; ``seed`` is that of the bootstrap and, with a sample's number, of a stochastic file's noise."""
    probabilities: list[NDArray[np.float64]] = []
    labels: list[NDArray[np.int64]] = []
    done = 0
    for frames, true in data.batches:
        x = model.prepare(frames.swapaxes(0, 1) if model.contract.kind == "spiking" else frames[:, 0])
        probabilities.append(model.run(x, seed=seed, samples=range(done, done + len(true))).probabilities)
        labels.append(true)
        done += len(true)
    p, truth = np.concatenate(probabilities), np.concatenate(labels)
    metrics = measure(p, truth)
    intervals = {"accuracy": metrics.accuracy_interval, **bootstrap_intervals(p, truth, seed)}
    events, left_out = (0, {}) if data.windows is None else (data.windows.events, data.windows.left_out())
    return Evaluation(
        data.source, data.sha256, metrics, intervals, model.contract.classes, events, left_out, data.notes
    )
