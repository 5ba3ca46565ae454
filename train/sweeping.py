"""Sweeps: train with every combination of some settings and several seeds, choose the best, and draw them.

The choice is made on the validation part alone. The test part of the best run is looked at once, after the choice.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import PositiveInt

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.base.palette import groups_of_series, save_figure
from axonnx.runtime.jobs.work import Pool
from axonnx.runtime.measure.result_files import Found
from axonnx.train.build import prepare
from axonnx.train.checkpoint import INDEX
from axonnx.train.config.read import as_tree, check_config, merged, read_config
from axonnx.train.config.settings import Config
from axonnx.train.run import train_run
from axonnx.train.run_folder import RunFolder
from axonnx.train.shared_records import Job, Record, Store, Tell, mean_and_std, records_of, settings_digest

SHARE = 0.2  # of the training part, where neither data nor configuration sets some of it aside
RESULT, FIGURE = "sweep.json", "sweep.svg"


class SweepRun(Found):
    """One training; without figures where it was stopped because something was not finite."""

    seed: int
    folder: str
    accuracy: float | None
    nll: float | None
    failed: str | None = None


class SweepPoint(Found):
    """One combination of settings: mean and standard deviation over its seeds, on the validation part."""

    settings: dict[str, Any]
    runs: tuple[SweepRun, ...]
    accuracy: float | None
    std: float | None
    nll: float | None


class SweepResult(Found):
    """All points, and the best: highest mean accuracy on the validation part, then lowest NLL, then the first."""

    format: Literal[1] = 1
    configuration: str
    axes: dict[str, tuple[Any, ...]]
    seeds: PositiveInt
    chosen_on: str
    points: tuple[SweepPoint, ...]
    best: SweepPoint
    best_run: str
    test_accuracy: float

    @property
    def best_settings(self) -> str:
        """Return the settings as ``optimiser.learning_rate=0.001 …``."""
        return written(self.best.settings)


def sweep_runs(
    configuration: str | Path,
    axes: Mapping[str, Sequence[Any]],
    out: str | Path,
    *,
    seeds: int = 1,
    pool: Pool | None = None,
    tell: Tell = lambda _line: None,
) -> SweepResult:
    """Train every combination of ``axes`` (a setting's name and its values) with seeds 0 … ``seeds`` − 1.

    ``out`` keeps the runs, ``sweep.json`` and ``sweep.svg``. Interrupted at any moment, the same call goes on. Results
    depend neither on the number of workers nor on the order in which they finish.
    """
    points = _points(axes, seeds)
    base, chosen_on = _with_validation(read_config(str(configuration), points[0]))
    trees = [_settings(configuration, base, point) for point in points]
    jobs = [
        Job(written(point) or "as configured", seed, merged(tree, {"seed": seed}), {})
        for seed in range(seeds)
        for point, tree in zip(points, trees, strict=True)
    ]
    folder = Path(out).resolve()
    store = Store(folder, "records", "sweep")
    records = records_of(jobs, "axonnx.train.sweeping", store, "sweep", pool, tell)
    found = [_point(point, records[number :: len(points)], store.runs) for number, point in enumerate(points)]
    best, run = best_of(found)
    result = SweepResult(
        configuration=str(configuration),
        axes={key: tuple(values) for key, values in axes.items()},
        seeds=seeds,
        chosen_on=chosen_on,
        points=tuple(found),
        best=best,
        best_run=run.folder,
        test_accuracy=_test_accuracy(Path(run.folder)),
    )
    write_text(folder / RESULT, result.model_dump_json(indent=1))
    draw_sweep(folder / FIGURE, result.axes, [(point.settings, _accuracies(point)) for point in found])
    return result


def best_of(points: Sequence[SweepPoint]) -> tuple[SweepPoint, SweepRun]:
    """Return the best point and, of its runs, the best: by what the validation part says of them."""
    finished = [point for point in points if point.accuracy is not None]
    if not finished:
        raise AxonnxError(f"every run was stopped: {points[0].runs[0].failed}")
    best = max(finished, key=_merit)
    return best, max((run for run in best.runs if run.failed is None), key=_merit)


def written(settings: Mapping[str, Any]) -> str:
    """Return settings as they are typed."""
    return " ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())


def _merit(entry: SweepPoint | SweepRun) -> tuple[float, float]:
    assert entry.accuracy is not None
    assert entry.nll is not None
    return entry.accuracy, -entry.nll


def _points(axes: Mapping[str, Sequence[Any]], seeds: int) -> list[dict[str, Any]]:
    if seeds < 1:
        raise AxonnxError(f"{seeds} seeds; expected one or more")
    for key, values in axes.items():
        if not values or len({json.dumps(value) for value in values}) < len(values):
            raise AxonnxError(f"{key}: {list(values)}; expected one value or more, each once")
        if key == "seed":
            raise AxonnxError("seed is no setting to sweep: say how many seeds every combination is trained with")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _with_validation(config: Config) -> tuple[dict[str, Any], str]:
    """Return what every run sets aside for the choice, and how that is told."""
    if prepare(config.data).splits.validation is not None:
        return {}, "the validation part, as the data or the configuration has it"
    return {"data.validation.share": SHARE}, f"a stratified {SHARE:.0%} of the training part, set aside for validation"


def _settings(configuration: str | Path, base: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole configuration of a point; what is wrong in it is told before the work."""
    config = read_config(str(configuration), merged(as_tree(base), as_tree(point)))
    tree = config.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in tree.items() if key != "seed"}


def _point(settings: dict[str, Any], records: Sequence[Record], runs: Path) -> SweepPoint:
    made = tuple(
        SweepRun(
            seed=record["seed"],
            folder=str(runs / record["run"]) if "run" in record else "",
            accuracy=record["accuracy"],
            nll=record.get("nll"),
            failed=record.get("failed"),
        )
        for record in records
    )
    accuracies = [run.accuracy for run in made if run.accuracy is not None]
    nlls = [run.nll for run in made if run.nll is not None]
    mean, std = mean_and_std(accuracies) if accuracies else (None, None)
    return SweepPoint(
        settings=settings,
        runs=made,
        accuracy=mean,
        std=None if std is None or std != std else std,
        nll=sum(nlls) / len(nlls) if nlls else None,
    )


def _accuracies(point: SweepPoint) -> list[float]:
    return [run.accuracy for run in point.runs if run.accuracy is not None]


def _test_accuracy(run: Path) -> float:
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    return float(metrics["test"]["accuracy"])


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


FIGURES = ("accuracy", "nll", "ece", "brier", "samples")


def trained_run(job: Job, runs: Path) -> Path:
    """Return the folder of the run with the job's settings; an interrupted run is resumed, to the same bits."""
    config = check_config(job.settings, job.case)
    folder = RunFolder(runs / settings_digest(job.settings))
    if not (folder.path / "metrics.json").is_file():
        begun = (folder.checkpoint / INDEX).exists()
        train_run(config, folder.path, resume=begun, overwrite=not begun)
    return folder.path


def measure(job: Job, runs: Path) -> Record:
    """Mean-field figures: of the deterministic network, the one that ships."""
    path = trained_run(job, runs)
    metrics = json.loads((path / "metrics.json").read_text("utf-8"))
    return {"run": path.name, **{key: metrics["validation"][key] for key in FIGURES}}
