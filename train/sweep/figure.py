"""The figure of a sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axonnx.base.palette import groups_of_series, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measured = Sequence[tuple[Mapping[str, Any], Sequence[float]]]  # settings of a point, accuracies of its seeds


def draw_sweep(path: Path, axes: Mapping[str, Sequence[Any]], points: Measured) -> None:
    """Write a sweep as SVG: accuracy over the first setting, a line for each combination of the others.

    A dot is a run; lines go through the means. More than ``SERIES`` lines are divided among panels with the same axes.
    """
    about = {"Date": None, "Title": "accuracy on the validation part"}
    save_figure(path, lambda: _sweep_figure(axes, points), format="svg", metadata=about)


def _sweep_figure(settings: Mapping[str, Sequence[Any]], points: Measured) -> Figure:
    from matplotlib.figure import Figure

    first = next(iter(settings), None)
    values = list(settings[first]) if first else [0]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    at = values if numeric and first else list(range(len(values)))
    lines: dict[str, list[tuple[float, Sequence[float]]]] = {}
    for point, accuracies in points:
        place = at[values.index(point[first])] if first else 0
        others = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in point.items() if key != first)
        lines.setdefault(others, []).append((place, accuracies))
    groups = groups_of_series(list(lines))
    figure = Figure(figsize=(7, 1.0 + 2.8 * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, names in zip(panels, groups, strict=True):
        for number, name in enumerate(names):
            known = [(place, accuracies) for place, accuracies in lines[name] if accuracies]
            colour = f"C{number}"
            axes.plot([p for p, _ in known], [100 * np.mean(a) for _, a in known], color=colour, label=name or None)
            axes.plot([p for p, a in known for _ in a], [100 * v for _, a in known for v in a], ".", color=colour)
        axes.set(ylabel="accuracy on the validation part (%)")
        if len(lines) > 1:
            axes.legend()
    if not numeric:
        panels[-1].set_xticks(at, [value if isinstance(value, str) else json.dumps(value) for value in values])
    elif min(at) > 0 and max(at) >= 10 * min(at):
        panels[-1].set_xscale("log")
    panels[-1].set(xlabel=first or "")
    return figure
