"""The training section: curves of results.csv and the final figures of metrics.json."""

from __future__ import annotations

import math
from collections.abc import Sequence

from axonnx.report.drawing.axes import Axis, count_axis
from axonnx.report.drawing.line_charts import Series, curves, finite, nothing, positive, rates, shares
from axonnx.report.facts.inputs import PartMetrics, Row, RunFiles
from axonnx.report.html.markup import Html
from axonnx.report.html.numbers import count, interval, number, percent
from axonnx.report.html.page_blocks import card, cards, missing, section, table

TITLE = "Training"
UNKNOWN = "No numbers of it in results.csv."
LOSSES = {"loss": "loss", "cross_entropy": "cross-entropy", "validation_nll": "validation NLL", "test_nll": "test NLL"}
ACCURACIES = {"train_accuracy": "training", "validation_accuracy": "validation", "test_accuracy": "test"}


def training_section(run: RunFiles | None) -> Html:
    """Curves and final figures; without a run, how to name one."""
    if run is None:
        return section("training", TITLE, None, missing("No run folder was named.", "axonnx report … --run RUN"))
    lead = f"{len(run.rows)} epochs of {run.path.name}." if run.rows else f"{run.path.name} has no finished epoch yet."
    return section("training", TITLE, lead, _charts(run.rows) if run.rows else None, _final(run))


def column(rows: Sequence[Row], name: str) -> list[float]:
    """A column as numbers; what is none is NaN."""
    return [_number(row.get(name)) for row in rows]


def _charts(rows: Sequence[Row]) -> Html:
    epochs = [at if math.isnan(epoch) else epoch for at, epoch in enumerate(column(rows, "epoch"), 1)]
    x = count_axis(int(min(epochs)), int(max(epochs)), "epoch")
    turns = [e - 0.5 for e, a, b in zip(epochs[1:], rows, rows[1:], strict=False) if a.get("phase") != b.get("phase")]
    loss, accuracy = _named(rows, LOSSES), _named(rows, ACCURACIES)
    firing, gradients = _under(rows, "rate/"), _under(rows, "gradient/")
    gradients = _named(rows, {"gradient_norm": "all"}) | gradients

    def draw(title: str, series: Series, y: Axis) -> Html:
        note = "Vertical line: fine-tuning begins." if turns else None
        full = bool(finite(series))
        return curves(title, x, epochs, series, y, marks=turns, note=note) if full else nothing(title, UNKNOWN)

    return cards(
        draw("Loss", loss, positive(loss)),
        draw("Accuracy", accuracy, shares(accuracy)),
        draw("Firing rates", firing, rates(firing, "spikes per neuron and step")),
        draw("Gradient norms", gradients, positive(gradients)),
    )


def _final(run: RunFiles) -> Html:
    if not run.metrics:
        return missing("The run has no final figures (metrics.json).", f"axonnx train … --out {run.path} --resume")
    head = ["part", "samples", "accuracy", "95 % interval", "NLL", "Brier", "ECE"]
    rows = [_figures(name, part) for name, part in run.metrics.items()]
    return card(table(head, rows, "Final figures of the trained network"))


def _figures(name: str, part: PartMetrics) -> list[str]:
    label = name.replace("_", " ")
    scores = [percent(part.accuracy), interval(part.accuracy_interval)]
    return [label, count(part.samples), *scores, number(part.nll), number(part.brier), number(part.ece)]


def _named(rows: Sequence[Row], names: dict[str, str]) -> Series:
    return {title: column(rows, name) for name, title in names.items() if any(row.get(name) for row in rows)}


def _under(rows: Sequence[Row], prefix: str) -> Series:
    names = dict.fromkeys(name for row in rows for name in row if name and name.startswith(prefix))
    return {name.removeprefix(prefix): column(rows, name) for name in names}


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
