"""Accuracy and calibration of a file on labelled data, with intervals and the confusion matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, PositiveInt

from axonnx.runtime.measure.labelled_data import LabelledData
from axonnx.runtime.measure.metrics import Interval, bootstrap_intervals, metrics_of
from axonnx.runtime.measure.result_files import Found
from axonnx.runtime.model import Model


class Intervals(Found):
    """95 %: Wilson's of the accuracy, bootstrap of the others."""

    accuracy: Interval
    nll: Interval
    brier: Interval
    ece: Interval


class Evaluation(Found):
    """Figures of one file on one set of labelled data."""

    format: Literal[1] = 1
    model: str
    file_sha256: str | None = None
    engine: str
    seed: int
    data: str
    data_sha256: str
    samples: PositiveInt
    accuracy: float
    nll: float
    brier: float
    ece: float
    intervals: Intervals
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    events: NonNegativeInt
    left_out: dict[str, int] = Field(description="events that are in no frame, by reason")
    notes: tuple[str, ...] = ()


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
    metrics = metrics_of(p, truth)
    intervals = Intervals(accuracy=metrics.accuracy_interval, **bootstrap_intervals(p, truth, seed))
    events, left_out = (0, {}) if data.windows is None else (data.windows.events, data.windows.left_out())
    return Evaluation(
        model=model.engine.program.name,
        engine=model.engine.name,
        seed=seed,
        data=data.source,
        data_sha256=data.sha256,
        samples=metrics.samples,
        accuracy=metrics.accuracy,
        nll=metrics.nll,
        brier=metrics.brier,
        ece=metrics.ece,
        intervals=intervals,
        classes=model.contract.classes,
        confusion=tuple(tuple(row) for row in metrics.confusion),
        events=events,
        left_out=left_out,
        notes=data.notes,
    )
