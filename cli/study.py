"""The verb that studies: sweep."""

from __future__ import annotations

from pathlib import Path

from axonnx.cli.guard import FINE
from axonnx.cli.options import Options
from axonnx.train.sweep.search import FIGURE, SweepPoint, SweepResult, written
from axonnx.trained_run import Run


def sweep(options: Options) -> int:
    """``axonnx sweep``."""
    found = Run.sweep(**options.of(), settings=options.settings, progress=options.progress)
    options.show([found], lambda: table(found))
    return FINE


def table(result: SweepResult) -> str:
    """Return a row for each combination, the best marked, and what was chosen on what."""
    keys = list(result.axes)
    head = [*keys, "accuracy", "NLL", "seeds"]
    rows = [[*(written({key: point.settings[key]}).partition("=")[2] for key in keys), *_cells(point)] for point in
            result.points]  # fmt: skip
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = ["  " + "  ".join(name.rjust(width) for name, width in zip(head, widths, strict=True))]
    for point, row in zip(result.points, rows, strict=True):
        mark = "* " if point is result.best or point == result.best else "  "
        lines.append(mark + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    figure = Path(result.best_run).parents[2] / FIGURE
    return "\n".join(
        [
            *lines,
            "",
            f"best        {result.best_settings or 'as configured'}",
            f"best run    {result.best_run}",
            f"chosen on   {result.chosen_on} (mean-field, last epoch); no test data had a say",
            f"test        {100 * result.test_accuracy:.1f} % of the best run, looked at after the choice",
            f"figure      {figure}",
        ]
    )


def _cells(point: SweepPoint) -> list[str]:
    finished = sum(run.failed is None for run in point.runs)
    count = f"{finished}" if finished == len(point.runs) else f"{finished} ({len(point.runs) - finished} not finite)"
    if point.accuracy is None or point.nll is None:
        return ["–", "–", count]
    std = "" if point.std is None else f" ± {100 * point.std:.1f}"
    return [f"{100 * point.accuracy:.1f}{std} %", f"{point.nll:.3f}", count]
