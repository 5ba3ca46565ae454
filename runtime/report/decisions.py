"""The decisions section: confusion matrix, calibration, early exit, collapse gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.measure.metrics import (
    CALIBRATION_BINS,
    calibration_bin,
    confusion_counts,
    expected_calibration_error,
)
from axonnx.runtime.measure.profile import early_exits
from axonnx.runtime.report.charts import (
    FIELD,
    Bar,
    Key,
    bar_chart,
    chart,
    dots,
    figure,
    line,
    linear_axis,
    share_axis,
    shares,
)
from axonnx.runtime.report.markup import (
    Content,
    Html,
    card,
    cards,
    count,
    element,
    known,
    missing,
    number,
    percent,
    section,
    table,
)
from axonnx.runtime.report.material import Material, Right
from axonnx.runtime.report.measure import Measured


def decisions_section(material: Material) -> Html:
    """Confusion matrix, calibration and early exit, as far as their data exist."""
    if material.model.contract.units is not None:
        return _values(material)
    measured, labelled = material.measured, None
    if measured is not None and measured.labels is not None:
        labelled = measured
    lead = None
    if labelled is not None and labelled.right is not None:
        lead = f"{int(labelled.right.sum())} of {len(labelled.right)} right, measured here on {labelled.source}."
    command = f"axonnx report {material.name} --run {material.run_name}"
    return section(
        "decisions",
        "Decisions",
        lead,
        cards(
            _collapse_gap(material.accuracies),
            _confusion(labelled, material.model.contract.classes) if labelled else None,
            _calibration(labelled) if labelled else None,
            _early(material, labelled),
        ),
        None if labelled else missing("Confusion and calibration need samples with labels.", command),
    )


def _values(material: Material) -> Html:
    """Errors of real values with their intervals, and what was found against what is true."""
    measured, contract = material.measured, material.model.contract
    command = f"axonnx report {material.name} --run {material.run_name}"
    if measured is None or measured.truth is None:
        return section("decisions", "Values", None, missing("Errors need samples whose values are known.", command))
    rows: list[list[Content]] = []
    for text, key in (("mean absolute error", "mae"), ("root mean squared error", "rmse"), ("R²", "r2")):
        for name, unit, value, low, high in material.errors(key):
            of = "" if key == "r2" else unit
            rows.append([name, text, f"{number(value)} {of}".rstrip(), f"{number(low)} – {number(high)}"])
    plots = [
        _scatter(f"{name}{unit and f' in {unit}'}", measured.truth[:, at], measured.final[:, at])
        for at, (name, unit) in enumerate(zip(contract.classes, contract.units or (), strict=True))
    ]
    errors = card(table(["value", "figure", "", "95 % interval (bootstrap)"], rows, "Errors", names=2))
    return section("decisions", "Values", f"Measured here on {measured.source}.", cards(errors, *plots))


def _scatter(title: str, truth: NDArray[np.floating], found: NDArray[np.floating]) -> Html:
    ends = [float(value) for values in (truth, found) for value in (values.min(), values.max())]
    x, y = linear_axis(ends, "true"), linear_axis(ends)
    pairs = zip(truth.tolist(), found.tolist(), strict=True)
    points = [(true, value, f"true {number(true)}, found {number(value)}") for true, value in pairs]
    marks = [line(x, y, [(min(ends), min(ends)), (max(ends), max(ends))], 0), dots(x, y, points, 1)]
    return chart(title, x, y, marks, note="Found (upwards) against true; on the line they agree.")


def _collapse_gap(entries: tuple[Right, ...]) -> Html | None:
    if not entries:
        return None
    bars = [Bar(e.text, e.accuracy, percent(e.accuracy), e.interval, strong=e.way == "file") for e in entries]
    lowest = min(entry.interval[0] for entry in entries)
    low = next((start for start in (0.9, 0.75, 0.5) if lowest > start), 0.0)
    on = dict.fromkeys(f"{'this file' if entry.way == 'file' else 'the others'} {entry.on}" for entry in entries)
    begin = f"Bars begin at {percent(low, 0)}. " if low else ""
    note = f"{begin}Whiskers: 95 % intervals; {', '.join(reversed(on))}. {_cost(entries)}"
    return bar_chart("Collapse gap", bars, share_axis(low=low), unit="accuracy of each way to run it", note=note)


def _cost(entries: tuple[Right, ...]) -> str:
    bayesian = next((entry for entry in entries if entry.way == "bayesian"), None)
    shipped = next((entry for entry in entries if entry.way == "file"), None)
    if bayesian is None or shipped is None or bayesian.samples != shipped.samples:
        return ""
    points = 100 * (shipped.accuracy - bayesian.accuracy)
    change = "gains" if points >= 0 else "loses"
    return f"Against the Bayesian predictive this file {change} {abs(points):.1f} points."


def _confusion(measured: Measured, names: tuple[str, ...]) -> Html:
    assert measured.labels is not None
    counts = confusion_counts(measured.final.argmax(1), measured.labels, len(names))
    head = element("tr", element("td"), [element("th", element("span", name), scope="col") for name in names])
    body = [
        element("tr", element("th", name, scope="row"), [_cell(counts, at, to, names) for to in range(len(names))])
        for at, name in enumerate(names)
    ]
    caption = element("caption", "Confusion matrix", class_="hidden")
    grid = element("table", caption, element("thead", head), element("tbody", body))
    many = len(names) > 12 or max(len(name) for name in names) > 3
    scrolled = element("div", grid, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix")
    kind = "chart confusion" + (" many" if many else "")
    return figure("Confusion matrix", scrolled, unit="rows are true, columns decided", kind=kind)


def _cell(counts: NDArray[np.int64], at: int, to: int, names: tuple[str, ...]) -> Html:
    value = int(counts[at, to])
    share = value / max(1, int(counts[at].sum()))
    kind = "hit" if at == to else "miss"
    told = f"{names[at]} taken for {names[to]}: {value} ({percent(share)})"
    style = f"--s:{min(1.0, 0.12 + share):.2f}" if value else None
    return element("td", value or "", title=told, class_=kind if value else None, style=style)


def _calibration(measured: Measured) -> Html:
    assert measured.right is not None
    return reliability(measured.final.max(1), measured.right)


def _early(material: Material, measured: Measured | None) -> Html | None:
    profiled = material.profile.early_exit if material.profile is not None else ()
    steps = material.model.contract.input.steps
    if steps is None or not (profiled or measured is not None):
        return None
    if measured is not None and measured.labels is not None:
        profiled = early_exits(measured.probabilities.swapaxes(0, 1), measured.labels)
    found = [(each.mean_steps, each.accuracy, each.stop_at) for each in profiled]
    points = sorted(point for point in found if all(known(value) for value in point))
    texts = [(s, a, f"certain to {percent(c, 0)}: {percent(a)} after {number(s)} steps") for s, a, c in points]
    if measured is not None and material.shipped is not None:
        whole = material.shipped.accuracy
        texts.append((float(steps), whole, f"all {steps} steps: {percent(whole)}"))
    on = "" if measured is not None or material.profile is None else f" On {count(material.profile.samples)} samples."
    x = linear_axis([0.0, float(steps)], f"mean steps until the decision, of {steps}")
    y = shares({"": [accuracy for _, accuracy, _ in texts]})
    marks = [line(x, y, [(s, a) for s, a, _ in texts], 1), dots(x, y, texts, 1)]
    return chart("Early exit", x, y, marks, note=_told(points, steps) + on)


def _told(points: list[tuple[float, float, float]], steps: int) -> str:
    """Return the point to remember: the fewest steps within a point of the best accuracy."""
    if not points:
        return ""
    best = max(accuracy for _, accuracy, _ in points)
    after, accuracy, certain = next(point for point in points if point[1] >= best - 0.01)
    return (
        f"Stopping when the winner has {percent(certain, 0)}: {percent(accuracy)} right after {after:.1f} of {steps} "
        f"steps on average."
    )


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
    for each in np.unique(numbers):
        inside = numbers == each
        bounds = float(each / CALIBRATION_BINS), float((each + 1) / CALIBRATION_BINS)
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
        keys=[Key("right", 1), Key("too sure", 2), Key("could be surer", 3)],
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
    rest = "fill c2" if each.confidence > each.accuracy else "fill c3"
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
