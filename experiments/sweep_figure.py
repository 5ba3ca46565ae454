"""A sweep as SVG: accuracy on the validation part over the first setting, a line for each combination of the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.experiments.figures import STYLE

Measured = Sequence[tuple[Mapping[str, Any], Sequence[float]]]  # settings of a point, accuracies of its seeds


def draw_sweep(path: Path, axes: Mapping[str, Sequence[Any]], points: Measured) -> None:
    """Write the figure: a dot for each run, a line through the means."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise AxonnxError("figures need matplotlib: pip install 'axonnx[report]'") from None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7, 3.8), layout="constrained")
        _plot(figure.subplots(), axes, points)
        with replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Title": "accuracy on the validation part"})


def _plot(axes: Any, settings: Mapping[str, Sequence[Any]], points: Measured) -> None:
    first = next(iter(settings), None)
    values = list(settings[first]) if first else [0]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    at = values if numeric and first else list(range(len(values)))
    lines: dict[str, list[tuple[float, Sequence[float]]]] = {}
    for point, accuracies in points:
        place = at[values.index(point[first])] if first else 0
        others = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in point.items() if key != first)
        lines.setdefault(others, []).append((place, accuracies))
    for number, (name, drawn) in enumerate(lines.items()):
        known = [(place, accuracies) for place, accuracies in drawn if accuracies]
        colour = f"C{number}"
        axes.plot([p for p, _ in known], [100 * np.mean(a) for _, a in known], color=colour, label=name or None)
        axes.plot([p for p, a in known for _ in a], [100 * v for _, a in known for v in a], ".", color=colour)
    if not numeric:
        axes.set_xticks(at, [value if isinstance(value, str) else json.dumps(value) for value in values])
    elif min(at) > 0 and max(at) >= 10 * min(at):
        axes.set_xscale("log")
    axes.set(xlabel=first or "", ylabel="accuracy on the validation part (%)")
    axes.grid(alpha=0.3)
    if len(lines) > 1:
        axes.legend(fontsize="small", frameon=False)
