"""``axonnx sweep``: train with every combination of some settings; the best is chosen on the validation part."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import add_job_options, add_result_options, from_one, pool_of, print_results, tell_of
from axonnx.cli.overrides import value_of
from axonnx.experiments.sweep import FIGURE, SweepPoint, SweepResult, sweep_runs, written


def main(arguments: Sequence[str]) -> int:
    """``axonnx sweep``."""
    options = make_parser().parse_args(arguments)
    result = sweep_runs(
        options.configuration,
        axes_of(options.set),
        options.out or Path("runs") / f"sweep-{Path(options.configuration).stem}",
        seeds=options.seeds,
        pool=pool_of(options),
        tell=tell_of(options),
    )
    print_results(options, [result], lambda: table(result))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx sweep",
        description="Train with every combination of some settings and several seeds. The best is chosen on the "
        "validation part, never on test data. Interrupted at any moment, the same command goes on; a second one, "
        "started beside it, shares the work.",
    )
    parser.add_argument("configuration", metavar="NAME|FILE.toml", help="a shipped configuration, or a file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=A,B,…",
        help="a setting and its values, as in --set optimiser.weight_rate=1e-3,3e-3; may be given several times",
    )
    parser.add_argument("--seeds", type=from_one, default=3, help="of every combination (default: %(default)s)")
    parser.add_argument("--out", help="runs and results (default: runs/sweep-NAME)")
    add_job_options(parser.add_argument_group("parallel execution"))
    add_result_options(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def axes_of(words: Sequence[str]) -> dict[str, list[Any]]:
    """``["optimiser.epochs=1,2", "variant.name=bnn,sbnn"]`` as values by setting."""
    axes: dict[str, list[Any]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key or not text:
            raise AxonnxError(
                f"--set {word!r}; expected a setting and its values: --set optimiser.weight_rate=1e-3,3e-3"
            )
        if key in axes:
            raise AxonnxError(f"--set {key} is given twice; put all values into one")
        axes[key] = _values(text)
    return axes


def _values(text: str) -> list[Any]:
    """As TOML reads a list; what is none is cut at its commas, so that names need no quotes."""
    try:
        found: list[Any] = tomllib.loads(f"v = [{text}]")["v"]
    except (tomllib.TOMLDecodeError, RecursionError):
        found = [value_of(part.strip()) for part in text.split(",")]
    return found


def table(result: SweepResult) -> str:
    """A row for each combination, the best marked, and what was chosen on what."""
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
