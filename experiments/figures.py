"""Figures from records alone: means over seeds as lines, their standard deviation as bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.experiments.plan import Plan
from axonnx.experiments.store import Record
from axonnx.experiments.tables import attenuation, gradient_norms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = {"svg.hashsalt": "axonnx", "svg.fonttype": "none", "font.size": 9}


def draw(path: Path, plan: Plan, records: Sequence[Record]) -> None:
    """Write the experiment's figure as SVG."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise AxonnxError("figures need matplotlib: pip install 'axonnx[report]'") from None
    with matplotlib.rc_context(STYLE):
        figure = make_figure(plan, records)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})


def make_figure(plan: Plan, records: Sequence[Record]) -> Figure:
    """Two panels and one legend; every label lies inside the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    FIGURES[plan.figure](left, right, plan, [record for record in records if "failed" not in record])
    for axes in (left, right):
        axes.grid(alpha=0.3)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", fontsize="small", frameon=False)
    return figure


def _cases(plan: Plan, records: Sequence[Record]) -> list[tuple[str, str, list[Record]]]:
    """Name, colour and records of each case that has some."""
    found = [(case.name, [record for record in records if record["case"] == case.name]) for case in plan.cases]
    return [(name, f"C{number}", own) for number, (name, own) in enumerate(found) if own]


def _band(axes: Any, x: Any, values: Any, name: str, colour: str) -> None:
    """Mean and standard deviation of values [seeds, len(x)]."""
    mean, std = np.mean(values, 0), np.std(values, 0)
    axes.plot(x, mean, label=name, color=colour)
    axes.fill_between(x, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0)


def _curves(left: Any, right: Any, plan: Plan, records: Sequence[Record]) -> None:
    for name, colour, own in _cases(plan, records):
        epochs = [row["epoch"] for row in own[0]["epochs"]]
        _band(left, epochs, [[row["cross_entropy"] for row in record["epochs"]] for record in own], name, colour)
        accuracy = [[100 * row["test_accuracy"] for row in record["epochs"]] for record in own]
        _band(right, epochs, accuracy, name, colour)
    left.set(xlabel="epoch", ylabel="training cross-entropy")
    right.set(xlabel="epoch", ylabel="test accuracy, mean-field (%)")


def _layers(left: Any, right: Any, plan: Plan, records: Sequence[Record]) -> None:
    for name, colour, own in _cases(plan, records):
        last = [gradient_norms(record["epochs"][-1]) for record in own]
        _band(left, range(1, len(last[0]) + 1), last, name, colour)
        epochs = [row["epoch"] for row in own[0]["epochs"]]
        _band(right, epochs, [[attenuation(row) for row in record["epochs"]] for record in own], name, colour)
    left.set(xlabel="layer", ylabel="gradient norm, last epoch", yscale="log")
    right.set(xlabel="epoch", ylabel="first layer / last hidden layer", yscale="log")


def _bias(left: Any, right: Any, plan: Plan, records: Sequence[Record]) -> None:
    """The deepest networks: bias over E[(h/σ)²], and bias against variance at scale 1."""
    deepest = max(point["depth"] for record in records for point in record["points"])
    for name, colour, own in _cases(plan, records):
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


def _rejection(left: Any, right: Any, plan: Plan, records: Sequence[Record]) -> None:
    for number, (name, colour, own) in enumerate(_cases(plan, records)):
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


def _pareto(left: Any, right: Any, plan: Plan, records: Sequence[Record]) -> None:
    for name, colour, own in _cases(plan, records):
        for axes, key in ((left, "spikes"), (right, "energy_nj")):
            x, y = [record[key] for record in own], [100 * record["accuracy"] for record in own]
            axes.plot(x, y, "o", color=colour, alpha=0.4, markersize=4)
            axes.plot(np.mean(x), np.mean(y), "D", color=colour, label=name)
    left.set(xlabel="spikes an inference", ylabel="accuracy of the file (%)")
    right.set(xlabel="energy of an inference (nJ, 45 nm)", ylabel="accuracy of the file (%)")


FIGURES: dict[str, Callable[[Any, Any, Plan, Sequence[Record]], None]] = {
    "curves": _curves,
    "layers": _layers,
    "bias": _bias,
    "rejection": _rejection,
    "pareto": _pareto,
}
