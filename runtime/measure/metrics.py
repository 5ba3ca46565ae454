"""Accuracy, NLL, Brier score, calibration and confusion of predictions, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError

CALIBRATION_BINS = 15
RESAMPLES = 1000
VALUE_FIGURES = ("mae", "rmse", "r2")

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Metrics:
    """Figures of merit of a set of predictions.

    Attributes:
        samples: Number of samples.
        accuracy: Share of correct predictions.
        accuracy_interval: 95 % Wilson interval of the accuracy.
        nll: Mean negative log-likelihood.
        brier: Mean Brier score.
        ece: Expected calibration error.
        confusion: Number of samples, [true][predicted].
    """

    samples: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    nll: float
    brier: float
    ece: float
    confusion: list[list[int]] = field(repr=False)  # [true][predicted]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ValueMetrics:
    """Errors of real values: of each value by itself, with 95 % bootstrap intervals.

    Attributes:
        samples: Number of samples.
        mae: Mean absolute error of each value.
        rmse: Root of the mean squared error of each value.
        r2: 1 − (mean squared error) / (variance of the true values), of each value.
        intervals: 95 % bootstrap intervals by figure, for each value.
    """

    samples: int
    mae: tuple[float, ...]
    rmse: tuple[float, ...]
    r2: tuple[float, ...]
    intervals: dict[str, tuple[Interval, ...]] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON."""
        return asdict(self)


def error_lines(values: Sequence[tuple[str, str]], figures: Mapping[str, Any]) -> list[str]:
    """Return lines with the errors of real values for people.

    Args:
        values: Name and unit of each value.
        figures: The fields of ``ValueMetrics``.
    """
    lines = []
    for number, (name, unit) in enumerate(values):
        for text, key, of in (("MAE", "mae", unit), ("RMSE", "rmse", unit), ("R²", "r2", "")):
            low, high = figures["intervals"][key][number]
            lines.append(f"{name:<14}{text:<6}{figures[key][number]:>10.4g} {of:<6}({low:.4g} – {high:.4g})")
    return [*lines, "(95 % intervals: bootstrap)"]


def value_metrics(
    values: NDArray[np.floating], truth: NDArray[np.floating], seed: int = 0, resamples: int = RESAMPLES
) -> ValueMetrics:
    """Compute the errors of real values.

    Args:
        values: Values [N, values] that a network gives.
        truth: True values [N, values].
        seed: Seed of the bootstrap.
        resamples: Number of resamples.

    Raises:
        AxonnxError: If the shapes do not fit, or there are no samples.
    """
    found, true = np.asarray(values, np.float64), np.asarray(truth, np.float64)
    if found.ndim != 2 or found.shape != true.shape or not len(found):
        raise AxonnxError(f"values have shape {found.shape}, true ones {true.shape}; expected both [N, values], N > 0")
    random = np.random.default_rng(seed)
    chosen = (random.integers(len(found), size=len(found)) for _ in range(resamples))
    drawn = np.array([_errors(found[each], true[each]) for each in chosen])  # [resamples, figures, values]
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0).tolist()
    mae, rmse, r2 = (tuple(figure) for figure in _errors(found, true).tolist())
    bounds = {name: tuple(zip(low[at], high[at], strict=True)) for at, name in enumerate(VALUE_FIGURES)}
    return ValueMetrics(len(found), mae, rmse, r2, bounds)


def _errors(values: Doubles, truth: Doubles) -> Doubles:
    """Return MAE, RMSE and R² [3, values]; R² is 0 if the true values are all equal."""
    errors, spread = values - truth, truth.var(0)
    square = (errors**2).mean(0)
    r2 = np.where(spread > 0, 1.0 - square / np.where(spread > 0, spread, 1.0), 0.0)
    return np.stack([np.abs(errors).mean(0), np.sqrt(square), r2])


def metrics_of(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> Metrics:
    """Compute the metrics of predictions.

    Args:
        probabilities: Predicted probabilities [N, classes].
        labels: True class numbers [N].

    Raises:
        AxonnxError: If the shapes do not fit, there are no samples, or a label is not a class.
    """
    p, true = _checked(probabilities, labels)
    right = p.argmax(1) == true
    return Metrics(
        samples=len(p),
        accuracy=float(right.mean()),
        accuracy_interval=wilson_interval(int(right.sum()), len(p)),
        nll=float(_nll(p, true).mean()),
        brier=float(_brier(p, true).mean()),
        ece=expected_calibration_error(p.max(1), right),
        confusion=confusion_counts(p.argmax(1), true, p.shape[1]).tolist(),
    )


def bootstrap_intervals(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Interval]:
    """Return 95 % bootstrap intervals of NLL, Brier score and ECE.

    For the two means, the interval holds the quantiles of the resampled values. The ECE of N samples is biased upwards,
    and that of a resample is biased again by as much. So its quantiles are mirrored: 2·ECE − q, but at least 0.

    Args:
        probabilities: Predicted probabilities [N, classes].
        labels: True class numbers [N].
        seed: Seed of the resampling.
        resamples: Number of resamples.
    """
    p, true = _checked(probabilities, labels)
    right, confidence = p.argmax(1) == true, p.max(1)
    nll, brier = _nll(p, true), _brier(p, true)
    random = np.random.default_rng(seed)
    drawn = np.empty((resamples, 3))
    for number in range(resamples):
        chosen = random.integers(len(p), size=len(p))
        ece = expected_calibration_error(confidence[chosen], right[chosen])
        drawn[number] = nll[chosen].mean(), brier[chosen].mean(), ece
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0).tolist()
    twice = 2 * expected_calibration_error(confidence, right)
    mirrored = max(0.0, twice - high[2]), max(0.0, twice - low[2])
    return {"nll": (low[0], high[0]), "brier": (low[1], high[1]), "ece": mirrored}


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> Interval:
    """Return the 95 % Wilson score interval of a proportion; rounding never excludes the proportion itself."""
    if trials < 1:
        raise AxonnxError("a proportion of 0 trials has no interval; expected 1 trial or more")
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half_width = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low, high = float((centre - half_width) / scale), float((centre + half_width) / scale)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def calibration_bin(confidence: NDArray[np.floating]) -> Integers:
    """Return the bin of each sample's confidence: bins of equal width, with 1 in the last bin."""
    return np.minimum((confidence * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)


def expected_calibration_error(confidence: NDArray[np.floating], right: NDArray[np.bool_]) -> float:
    """Return Σ_bins (share of samples) · |accuracy − mean confidence| over confidence bins of equal width."""
    differences = np.bincount(calibration_bin(confidence), weights=right.astype(float) - confidence)
    return float(np.abs(differences).sum() / len(confidence))


def confusion_counts(predicted: NDArray[np.integer], labels: NDArray[np.integer], classes: int) -> Integers:
    """Return the number of samples for each [true, predicted] class."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def _checked(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> tuple[Doubles, Integers]:
    p, true = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if p.ndim != 2 or len(p) != len(true) or not len(p):
        raise AxonnxError(
            f"probabilities have shape {p.shape} for {len(true)} labels; expected [N, classes] with N > 0"
        )
    if true.min() < 0 or true.max() >= p.shape[1]:
        raise AxonnxError(
            f"labels are from {true.min()} to {true.max()}; expected 0 to {p.shape[1] - 1} for {p.shape[1]} classes"
        )
    return p, true


def _nll(p: Doubles, labels: Integers) -> Doubles:
    """Return −log p(true class)."""
    chosen = p[np.arange(len(p)), labels]
    return -np.log(np.maximum(chosen, np.finfo(np.float64).tiny))


def _brier(p: Doubles, labels: Integers) -> Doubles:
    """Return Σ_classes (p − truth)²."""
    squares: Doubles = ((p - np.eye(p.shape[1])[labels]) ** 2).sum(1)
    return squares
