"""One experiment from its plan to a table, a figure and a place in a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from axonnx.experiments.conduct import conduct
from axonnx.experiments.document import fill
from axonnx.experiments.figures import draw
from axonnx.experiments.held_out import groups_of
from axonnx.experiments.plan import Plan, Scale, read_plan, size_of
from axonnx.experiments.store import read_results, write_results
from axonnx.experiments.tables import block
from axonnx.jobs.work import Pool

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Performed:
    """What an experiment left: its table as text, its records and its figure as files."""

    title: str
    text: str
    records: Path
    figure: Path


def perform(
    name: str,
    scale: Scale,
    folder: str | Path,
    *,
    results: str | Path | None = None,
    hold_out: str | None = None,
    document: str | Path | None = None,
    tell: Tell = lambda _line: None,
    pool: Pool | None = None,
) -> Performed:
    """Do what is not done yet of the plan ``name``, then draw it.

    ``folder`` keeps runs and records, ``results`` (by default a folder inside it) tables and figures. ``hold_out``
    names groups of the training part that are tested on instead of the test part. ``document`` gets the table. Every
    case and seed is a job of ``pool``; several commands on the same folder share them.
    """
    plan = read_plan(name)
    size_of(plan, scale)
    groups = groups_of(plan, scale, hold_out) if hold_out else []
    stored = _stored(name, scale, folder, results, hold_out)
    records = conduct(plan, stored.stem, scale, Path(folder), tell, groups, pool)
    write_results(stored, stored.stem, scale, records)
    return _drawn(plan, stored, document)


def draw_again(
    name: str,
    scale: Scale,
    folder: str | Path,
    *,
    results: str | Path | None = None,
    hold_out: str | None = None,
    document: str | Path | None = None,
) -> Performed:
    """Table and figure from the records that ``perform`` stored."""
    return _drawn(read_plan(name), _stored(name, scale, folder, results, hold_out), document)


def _stored(name: str, scale: Scale, folder: str | Path, results: str | Path | None, hold_out: str | None) -> Path:
    return Path(results or Path(folder) / "results" / scale) / f"{name}{'-held-out' if hold_out else ''}.json"


def _drawn(plan: Plan, stored: Path, document: str | Path | None) -> Performed:
    scale, records = read_results(stored)
    figure, text = stored.with_suffix(".svg"), block(plan, scale, records)
    draw(figure, plan, records)
    if document:
        fill(Path(document), stored.stem, text)
    return Performed(plan.title, text, stored, figure)
