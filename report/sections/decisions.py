"""The decisions section: confusion matrix, calibration, early exit, collapse gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.report.drawing.axes import linear_axis, share_axis
from axonnx.report.drawing.bars import Bar, bar_chart
from axonnx.report.drawing.chart import chart, dots, line
from axonnx.report.drawing.line_charts import shares
from axonnx.report.drawing.reliability import reliability
from axonnx.report.facts.material import Material, Right
from axonnx.report.facts.measure import Measured
from axonnx.report.html.markup import Html, element
from axonnx.report.html.numbers import count, known, number, percent
from axonnx.report.html.page_blocks import cards, missing, section
from axonnx.runtime.measure.metrics import confusion_counts
from axonnx.runtime.measure.profile import early_exits


def decisions_section(material: Material) -> Html:
    """Confusion matrix, calibration and early exit, as far as their data exist."""
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
    return element(
        "figure",
        element("figcaption", element("b", "Confusion matrix"), element("small", "rows are true, columns decided")),
        element("div", grid, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix"),
        class_="chart confusion" + (" many" if len(names) > 12 or max(len(name) for name in names) > 3 else ""),
    )


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
    """The point to remember: the fewest steps within a point of the best accuracy."""
    if not points:
        return ""
    best = max(accuracy for _, accuracy, _ in points)
    after, accuracy, certain = next(point for point in points if point[1] >= best - 0.01)
    return (
        f"Stopping when the winner has {percent(certain, 0)}: {percent(accuracy)} right after {after:.1f} of {steps} "
        f"steps on average."
    )
