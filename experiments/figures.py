"""Figures from records alone: means over seeds as lines, their standard deviation as bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axonnx.base.palette import SERIES, groups_of_series, save_figure
from axonnx.train.shared_records import Record
from experiments.plan import Plan
from experiments.tables import attenuation, gradient_norms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cases = Sequence[tuple[str, str, list[Record]]]  # label, colour and records


def draw(path: Path, plan: Plan, records: Sequence[Record]) -> None:
    """Write the experiment's figure as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(path, lambda: make_figure(plan, records), format="svg", metadata={"Date": None})


def make_figure(plan: Plan, records: Sequence[Record]) -> Figure:
    """Draw two measures side by side for each group of cases; the groups share their axes, so they can be compared.

    A panel shows at most ``SERIES`` cases. Where more cases have names like "training: collapse", each collapse has its
    panels and each training its colour; otherwise they are divided in their order.
    """
    from matplotlib.figure import Figure

    groups = case_groups([case.name for case in plan.cases if any(_shown(record, case.name) for record in records)])
    figure = Figure(figsize=(10, 0.8 + 2.8 * len(groups)), layout="constrained")
    rows = figure.subplots(len(groups), 2, sharex="col", sharey="col", squeeze=False)
    drawn: list[str] = []
    for row, (title, names) in zip(rows, groups.items(), strict=True):
        cases = [
            (label, f"C{number}", [record for record in records if _shown(record, name)])
            for number, (name, label) in enumerate(names.items())
        ]
        FIGURES[plan.figure](row[0], row[1], cases)
        row[0].set_title(title, loc="left")
        handles, labels = row[0].get_legend_handles_labels()
        if labels != drawn:  # the same cases in all rows need one legend
            row[1].legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.02))
        drawn = labels
    for axes in rows[:-1].flat:
        axes.set_xlabel("")  # stands below the last row
    return figure


def case_groups(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return for each group of cases its title, and for each case in it the label."""
    if len(names) <= SERIES:
        return {"": {name: name for name in names}}
    kinds: dict[str, dict[str, str]] = {}
    for name in names:
        label, _, kind = name.rpartition(": ")
        kinds.setdefault(kind, {})[name] = label
    if all(label for cases in kinds.values() for label in cases.values()) and max(map(len, kinds.values())) <= SERIES:
        return kinds
    return {
        f"{names.index(group[0]) + 1} to {names.index(group[-1]) + 1} of {len(names)}": {name: name for name in group}
        for group in groups_of_series(names)
    }


def _shown(record: Record, name: str) -> bool:
    return record["case"] == name and "failed" not in record


def _band(axes: Any, x: Any, values: Any, name: str, colour: str) -> None:
    """Mean and standard deviation of values [seeds, len(x)]."""
    mean, std = np.mean(values, 0), np.std(values, 0)
    axes.plot(x, mean, label=name, color=colour)
    axes.fill_between(x, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0)


def _curves(left: Any, right: Any, cases: Cases) -> None:
    for name, colour, own in cases:
        epochs = [row["epoch"] for row in own[0]["epochs"]]
        _band(left, epochs, [[row["cross_entropy"] for row in record["epochs"]] for record in own], name, colour)
        accuracy = [[100 * row["test_accuracy"] for row in record["epochs"]] for record in own]
        _band(right, epochs, accuracy, name, colour)
    left.set(xlabel="epoch", ylabel="training cross-entropy")
    right.set(xlabel="epoch", ylabel="test accuracy, mean-field (%)")


def _layers(left: Any, right: Any, cases: Cases) -> None:
    for name, colour, own in cases:
        last = [gradient_norms(record["epochs"][-1]) for record in own]
        _band(left, range(1, len(last[0]) + 1), last, name, colour)
        epochs = [row["epoch"] for row in own[0]["epochs"]]
        _band(right, epochs, [[attenuation(row) for row in record["epochs"]] for record in own], name, colour)
    left.set(xlabel="layer", ylabel="gradient norm, last epoch", yscale="log")
    right.set(xlabel="epoch", ylabel="first layer / last hidden layer", yscale="log")


def _bias(left: Any, right: Any, cases: Cases) -> None:
    """Draw the deepest networks: bias over E[(h/σ)²], and bias against variance at scale 1."""
    deepest = max(point["depth"] for _, _, own in cases for record in own for point in record["points"])
    for name, colour, own in cases:
        chosen = [[point for point in record["points"] if point["depth"] == deepest] for record in own]
        if chosen[0][0]["bias"] is None:  # sampled, unbiased
            unit = [point["variance"] for points in chosen for point in points if point["scale"] == 1.0]
            right.axvline(np.median(unit), color=colour, linestyle=":")
            left.plot([], [], ":", color=colour, label=f"{name} (unbiased)")
            continue
        squares, biases = (
            np.median([[point[key] for point in points] for points in chosen], 0) for key in ("square", "bias")
        )
        left.plot(squares, biases, "o-", markersize=3, label=name, color=colour)
        unit = [point for points in chosen for point in points if point["scale"] == 1.0]
        right.plot(
            np.median([point["variance"] for point in unit]),
            np.median([point["bias"] for point in unit]),
            "o",
            color=colour,
        )
    left.set(xlabel="E[(h/σ)²]", ylabel="relative bias (median)", xscale="log", yscale="log")
    right.set(xlabel="relative variance (median)", ylabel="relative bias (median)", xscale="log", yscale="log")


def _rejection(left: Any, right: Any, cases: Cases) -> None:
    for number, (name, colour, own) in enumerate(cases):
        shares = [100 * float(share) for share in own[0]["rejection"]]
        _band(left, shares, [[100 * v for v in record["rejection"].values()] for record in own], name, colour)
        for shift, key in ((-0.2, "auroc_entropy"), (0.2, "auroc_mutual_information")):
            values = [record[key] for record in own if record[key] is not None]
            if values:
                hatch = "//" if shift > 0 else None
                right.bar(number + shift, np.mean(values), 0.38, color=colour, hatch=hatch, alpha=0.8)
    left.set(xlabel="share of samples decided (%)", ylabel="accuracy on them (%)")
    left.invert_xaxis()
    right.set(ylabel="AUROC, unknown classes\n(hatched: mutual information)", ylim=(0.4, 1.0), xticks=[])


def _worth(left: Any, right: Any, cases: Cases) -> None:
    """Draw risk over coverage, and the loss of each seed."""
    for number, (name, colour, own) in enumerate(cases):
        shares = [100 * float(share) for share in own[0]["risk"]]
        _band(left, shares, [[100 * v for v in record["risk"].values()] for record in own], name, colour)
        right.plot([number] * len(own), [record["nll"] for record in own], "o", color=colour, alpha=0.4, markersize=4)
        right.plot(number, np.mean([record["nll"] for record in own]), "D", color=colour)
    left.set(xlabel="share of samples answered (%)", ylabel="wrong among them (%)")
    right.set(ylabel="NLL, tempered", xticks=[])


def _pareto(left: Any, right: Any, cases: Cases) -> None:
    for name, colour, own in cases:
        for axes, key in ((left, "spikes"), (right, "energy_nj")):
            x, y = [record[key] for record in own], [100 * record["accuracy"] for record in own]
            axes.plot(x, y, "o", color=colour, alpha=0.4, markersize=4)
            axes.plot(np.mean(x), np.mean(y), "D", color=colour, label=name)
    left.locator_params(axis="x", nbins=6)
    left.set(xlabel="spikes an inference", ylabel="accuracy of the file (%)")
    right.set(xlabel="energy of an inference (nJ, 45 nm)", ylabel="accuracy of the file (%)")


FIGURES: dict[str, Callable[[Any, Any, Cases], None]] = {
    "curves": _curves,
    "layers": _layers,
    "bias": _bias,
    "rejection": _rejection,
    "pareto": _pareto,
    "worth": _worth,
}
