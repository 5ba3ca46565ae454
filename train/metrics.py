"""How good and how honest predictions are: accuracy, NLL, Brier score, calibration, confusion."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.errors import AxonnxError

CALIBRATION_BINS = 15


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


def measure(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> Metrics:
    """Metrics of predicted class probabilities [N, classes]."""
    p, labels = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if p.ndim != 2 or len(p) != len(labels) or not len(p):
        raise AxonnxError(f"probabilities {p.shape} for {len(labels)} labels; expected [N, classes] with N > 0")
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise AxonnxError(f"labels from {labels.min()} to {labels.max()} for {p.shape[1]} classes; they count from 0")
    right = p.argmax(1) == labels
    chosen = p[np.arange(len(p)), labels]
    truth = np.eye(p.shape[1])[labels]
    return Metrics(
        samples=len(p),
        accuracy=float(right.mean()),
        accuracy_interval=wilson_interval(int(right.sum()), len(p)),
        nll=float(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean()),
        brier=float(((p - truth) ** 2).sum(1).mean()),
        ece=expected_calibration_error(p.max(1), right),
        confusion=_confusion(p.argmax(1), labels, p.shape[1]).tolist(),
    )


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion."""
    if trials < 1:
        raise AxonnxError("a proportion of no trials has no interval")
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, float((centre - spread) / scale)), min(1.0, float((centre + spread) / scale))


def expected_calibration_error(confidence: NDArray[np.floating], right: NDArray[np.bool_]) -> float:
    """Σ_bins (share of samples) · |accuracy − mean confidence|, over equal bins of confidence."""
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, weights=right.astype(float) - confidence, minlength=CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def _confusion(predicted: NDArray[np.integer], labels: NDArray[np.integer], classes: int) -> NDArray[np.integer]:
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)
