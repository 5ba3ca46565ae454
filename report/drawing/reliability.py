"""The reliability diagram: when the network says 90 %, is it right in 90 % of cases?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axonnx.report.drawing.axes import linear_axis, share_axis
from axonnx.report.drawing.chart import FIELD, Key, chart
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import percent
from axonnx.runtime.measure.metrics import CALIBRATION_BINS, calibration_bin, expected_calibration_error

FEW = 10  # samples below which a bar is pale


@dataclass(frozen=True)
class Bin:
    """Samples whose certainty lies between two bounds."""

    low: float
    high: float
    samples: int
    confidence: float
    accuracy: float


def calibration_bins(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> list[Bin]:
    """Equal bins of certainty; empty ones are left out."""
    numbers = calibration_bin(confidence)
    found = []
    for number in np.unique(numbers):
        inside = numbers == number
        bounds = float(number / CALIBRATION_BINS), float((number + 1) / CALIBRATION_BINS)
        found.append(Bin(*bounds, int(inside.sum()), float(confidence[inside].mean()), float(right[inside].mean())))
    return found


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Html:
    """Accuracy over certainty, the diagonal of honesty, and how many samples stand behind each bar."""
    bins = calibration_bins(confidence, right)
    total = len(confidence)
    marks = [_bar(each) for each in bins]
    marks.append(element("path", d=f"M0 {FIELD:g}L{FIELD:g} 0", class_="diagonal"))
    error = expected_calibration_error(confidence, right)
    note = f"Expected calibration error {error:.4f}. Pale: fewer than {FEW} samples."
    upper = chart(
        "Calibration",
        share_axis("certainty of the winner"),
        share_axis("share of right decisions"),
        marks,
        keys=[Key("right", 1), Key("too sure", 2), Key("could be surer", 8)],
        note=note,
        height=230,
    )
    parts = [each.samples / total for each in bins]
    shares = linear_axis(parts, zero=True, write=lambda value: f"{100 * value:.3g} %", wanted=2)
    counts = [_block(each, 0.0, shares.at(each.samples / total), "fill c0", total) for each in bins]
    lower = chart("How certain it is", share_axis("certainty of the winner"), shares, counts, height=64)
    return element("div", upper, lower, class_="calibration")


def _bar(each: Bin) -> Html:
    """Blue up to where certainty and accuracy agree; above, what it promised and did not keep, or the other way."""
    low, high = sorted((each.accuracy, each.confidence))
    rest = "fill c2" if each.confidence > each.accuracy else "fill c8"
    pale = " pale" if each.samples < FEW else ""
    return Html(_block(each, 0.0, low, "fill c1" + pale) + _block(each, low, high, rest + pale))


def _block(each: Bin, low: float, high: float, kind: str, total: int = 0) -> Html:
    told = f"certainty {percent(each.low, 0)} to {percent(each.high, 0)}: {each.samples} samples, "
    told += f"{percent(each.samples / total)} of all" if total else f"{percent(each.accuracy)} right"
    return element(
        "rect",
        element("title", told),
        x=each.low * FIELD + 4,
        y=(1 - high) * FIELD,
        width=(each.high - each.low) * FIELD - 8,
        height=(high - low) * FIELD,
        class_=kind,
    )
