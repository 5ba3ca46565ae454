"""Accuracy and calibration of a file on labelled data, with intervals and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, PositiveInt

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.metrics import Interval, bootstrap_intervals, metrics_of, value_metrics
from axonnx.runtime.measure.result_files import Found
from axonnx.runtime.measure.samples import Batch, Samples
from axonnx.runtime.measure.uncertainty import (
    MADE,
    Sets,
    Uncertainty,
    logits_by_step,
    possible_by_step,
    sets_of,
    signal_of,
    signals_of,
)
from axonnx.runtime.model import Model
from axonnx.runtime.streams.probabilities import joint_logits, mean_probabilities, mutual_information, softmax


class Intervals(Found):
    """95 %: Wilson's of the accuracy, bootstrap of the others."""

    accuracy: Interval
    nll: Interval
    brier: Interval
    ece: Interval


class Evaluated(Found):
    """One file, and the data that it was evaluated on."""

    format: Literal[1] = 1
    model: str
    file_sha256: str | None = None
    engine: str
    seed: int
    data: str
    data_sha256: str
    samples: PositiveInt


class Evaluation(Evaluated):
    """Figures of one file on one set of labelled data."""

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
    uncertainty: Uncertainty | None = None
    decisions: tuple[int, ...] = Field(default=(), description="the class of each sample, in the order of the data")
    truth: tuple[int, ...] = ()


class ValueEvaluation(Evaluated):
    """Figures of a file that gives real values, on one set of data; lists have an entry for each value."""

    values: tuple[str, ...]
    units: tuple[str, ...]
    mae: tuple[float, ...]
    rmse: tuple[float, ...]
    r2: tuple[float, ...]
    intervals: dict[str, tuple[Interval, ...]] = Field(description="95 %, bootstrap")
    events: NonNegativeInt
    left_out: dict[str, int] = Field(description="events that are in no frame, by reason")
    notes: tuple[str, ...] = ()
    found: tuple[tuple[float, ...], ...] = Field(default=(), description="the values of each sample")
    truth: tuple[tuple[float, ...], ...] = ()


class Answers(Found):
    """What some samples were taken for: class probabilities [N, classes], true labels, and what of events is left.

    In the place of probabilities a regression has its values [N, values].
    """

    probabilities: list[list[float]]
    labels: list[int]
    disagreement: list[float] | None = Field(None, description="mutual information of several members or passes")
    untempered: list[list[float]] | None = Field(None, description="probabilities without the file's temperature")
    events: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)


def evaluate(model: Model, data: Samples, seed: int = 0) -> Evaluation | ValueEvaluation:
    """Run every sample; ``seed`` is that of the bootstrap and, with a sample's number, of a stochastic file's noise."""
    return figures_of(model, data, [answers(model, data, 0, data.count, 0, seed)], seed)


def answers(model: Model, data: Samples, first: int, last: int, number: int, seed: int = 0, passes: int = 1) -> Answers:
    """Run the pieces from ``first`` up to ``last``; ``number`` is that of their first sample among all.

    Pass k of a stochastic file has the noise of seed + k; the probabilities are the mean over all passes.
    """
    probabilities: list[NDArray[np.float64]] = []
    untempered: list[NDArray[np.float64]] = []
    disagreement: list[NDArray[np.float64]] = []
    labels: list[NDArray[np.int64]] = []
    certainty = model.contract.certainty
    windows = data.windows
    before = (0, {}) if windows is None else (windows.events, windows.left_out())
    for frames, true in data.some(first, last):
        x = model.prepare(frames.swapaxes(0, 1) if model.contract.kind == "spiking" else frames[:, 0])
        samples = range(number, number + len(true))
        results = [model.run(x, seed=seed + each, samples=samples) for each in range(passes)]
        members = np.concatenate([result.member_logits for result in results])
        if model.contract.units is not None:
            probabilities.append(results[0].logits.astype(np.float64))
        else:
            probabilities.append(mean_probabilities(members, 1.0 if certainty is None else certainty.scale))
        if certainty is not None:
            untempered.append(mean_probabilities(members))
        if len(members) > 1:
            disagreement.append(mutual_information(softmax(members)))
        labels.append(true)
        number += len(true)
    events, left_out = (0, {}) if windows is None else (windows.events, windows.left_out())
    return Answers(
        probabilities=np.concatenate(probabilities).tolist(),
        labels=np.concatenate(labels).tolist(),
        disagreement=np.concatenate(disagreement).tolist() if disagreement else None,
        untempered=np.concatenate(untempered).tolist() if untempered else None,
        events=events - before[0],
        left_out={name: more for name, count in left_out.items() if (more := count - before[1].get(name, 0))},
    )


def figures_of(model: Model, data: Samples, parts: Sequence[Answers], seed: int = 0) -> Evaluation | ValueEvaluation:
    """Compute the figures of all answers, which are in the order of the data."""
    p = np.array([row for part in parts for row in part.probabilities])
    truth = np.array([label for part in parts for label in part.labels], np.int64)
    left_out = sum((Counter(part.left_out) for part in parts), Counter())
    if model.contract.units is not None:
        return _values_of(model, data, p, truth, sum(part.events for part in parts), left_out, seed)
    metrics = metrics_of(p, truth)
    intervals = Intervals(accuracy=metrics.accuracy_interval, **bootstrap_intervals(p, truth, seed))
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
        events=sum(part.events for part in parts),
        left_out=dict(sorted(left_out.items())),
        notes=data.notes,
        decisions=tuple(p.argmax(1).tolist()),
        truth=tuple(truth.tolist()),
    )


def evaluate_certainty(
    model: Model, data: Samples, unknown: Mapping[str, Samples], seed: int = 0, passes: int = 1
) -> Evaluation:
    """Evaluate a file with ``passes`` noisy passes, and what its certainty is worth.

    ``unknown``: samples that the network has never seen the like of, by name; their labels are not looked at.
    """
    own = answers(model, data, 0, data.count, 0, seed, passes)
    truth, known = np.array(own.labels), signals_of(*_certainties(own))
    others = {name: answers(model, each, 0, each.count, 0, seed, passes) for name, each in unknown.items()}
    strange = {name: signals_of(*_certainties(each)) for name, each in others.items()}
    right = np.array(own.probabilities).argmax(1) == truth
    signals = {
        name: signal_of(values, right, {kind: each[name] for kind, each in strange.items()})
        for name, values in known.items()
    }
    certainty, whole = model.contract.certainty, figures_of(model, data, [own], seed)
    assert isinstance(whole, Evaluation)
    worth = Uncertainty(
        passes=passes,
        signals=signals,
        unknown_samples={name: len(each.labels) for name, each in others.items()},
        temperature=None if certainty is None else 1.0 / certainty.scale,
        untempered_nll=None if own.untempered is None else metrics_of(np.array(own.untempered), truth).nll,
        sets=None if certainty is None else _sets(model, data, seed),
    )
    return whole.model_copy(update={"uncertainty": worth})


def _certainties(found: Answers) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    return np.array(found.probabilities), None if found.disagreement is None else np.array(found.disagreement)


def _sets(model: Model, data: Samples, seed: int) -> Sets:
    """Run every sample step by step, as a stream does."""
    certainty, number = model.contract.certainty, 0
    assert certainty is not None
    possible, winners, labels = [], [], []
    for frames, true in data.batches:
        x = model.prepare(frames.swapaxes(0, 1) if model.contract.kind == "spiking" else frames[:, 0])
        logits = logits_by_step(model.engine, x, range(number, number + len(true)), seed)
        possible.append(possible_by_step(logits, certainty.margins))
        winners.append(np.stack([joint_logits(step).argmax(-1) for step in logits]))
        labels.append(true)
        number += len(true)
    return sets_of(np.concatenate(possible, 1), np.concatenate(winners, 1), np.concatenate(labels), certainty.coverage)


def made_unknown(data: Samples, kind: str, seed: int = 0) -> Samples:
    """Return samples of an unknown kind that are made of the data's own: ``noise``, ``shuffled`` or ``turned``."""

    def some(first: int, last: int) -> Iterator[Batch]:
        random = np.random.default_rng([seed, first])
        for frames, labels in data.some(first, last):
            yield MADE[kind](frames, random), labels

    return replace(data, source=f"{data.source}, {kind}", some=some)


def _values_of(
    model: Model,
    data: Samples,
    found: NDArray[np.float64],
    labels: NDArray[np.int64],
    events: int,
    left_out: Counter[str],
    seed: int,
) -> ValueEvaluation:
    """Compute the errors of real values."""
    if data.values is None:
        raise AxonnxError(f"{data.source}: its samples have no real values; the network gives {model.contract.classes}")
    truth = data.values[labels].astype(np.float64)
    errors = value_metrics(found, truth, seed)
    return ValueEvaluation(
        model=model.engine.program.name,
        engine=model.engine.name,
        seed=seed,
        data=data.source,
        data_sha256=data.sha256,
        values=model.contract.classes,
        units=model.contract.units or (),
        events=events,
        left_out=dict(sorted(left_out.items())),
        notes=data.notes,
        found=tuple(map(tuple, found.tolist())),
        truth=tuple(map(tuple, truth.tolist())),
        **errors.as_dict(),
    )
