"""How good and how honest predictions are: accuracy, NLL, Brier score, calibration, confusion, and their intervals."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError

CALIBRATION_BINS = 15
RESAMPLES = 1000

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Metrics:
    """Figures of merit of a set of predictions."""

    samples: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    nll: float
    brier: float
    ece: float
    confusion: list[list[int]] = field(repr=False)  # [true][predicted]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def metrics_of(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> Metrics:
    """Metrics of predicted class probabilities [N, classes]."""
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
    """95 % intervals of NLL, Brier score and ECE from samples drawn anew with replacement, with this seed.

    Of the two means, the quantiles of the resampled values. The ECE of N samples lies above that of all there could
    be, and a resampled one above that again by as much, so its quantiles are mirrored: 2·ECE − q, no less than 0.
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
    """The 95 % Wilson score interval of a proportion, which lies in it whatever is rounded."""
    if trials < 1:
        raise AxonnxError("a proportion of no trials has no interval")
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half_width = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low, high = float((centre - half_width) / scale), float((centre + half_width) / scale)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def calibration_bin(confidence: NDArray[np.floating]) -> Integers:
    """The number of each sample's bin of confidence: equal bins, 1 in the last."""
    return np.minimum((confidence * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)


def expected_calibration_error(confidence: NDArray[np.floating], right: NDArray[np.bool_]) -> float:
    """Σ_bins (share of samples) · |accuracy − mean confidence|, over equal bins of confidence."""
    differences = np.bincount(calibration_bin(confidence), weights=right.astype(float) - confidence)
    return float(np.abs(differences).sum() / len(confidence))


def confusion_counts(predicted: NDArray[np.integer], labels: NDArray[np.integer], classes: int) -> Integers:
    """Samples of each [true, predicted] class."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def _checked(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> tuple[Doubles, Integers]:
    p, true = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if p.ndim != 2 or len(p) != len(true) or not len(p):
        raise AxonnxError(f"probabilities {p.shape} for {len(true)} labels; expected [N, classes] with N > 0")
    if true.min() < 0 or true.max() >= p.shape[1]:
        raise AxonnxError(f"labels from {true.min()} to {true.max()} for {p.shape[1]} classes; they count from 0")
    return p, true


def _nll(p: Doubles, labels: Integers) -> Doubles:
    """−log p(true class)"""
    chosen = p[np.arange(len(p)), labels]
    return -np.log(np.maximum(chosen, np.finfo(np.float64).tiny))


def _brier(p: Doubles, labels: Integers) -> Doubles:
    """Σ_classes (p − truth)²"""
    squares: Doubles = ((p - np.eye(p.shape[1])[labels]) ** 2).sum(1)
    return squares
