"""One experiment from its plan to a table, a figure and a place in a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.runtime.jobs.work import Pool
from axonnx.train.shared_records import Record, Store, read_results, records_of, write_results
from experiments.figures import draw
from experiments.held_out import groups_of, held_out_jobs, mean_over_groups
from experiments.plan import Plan, Scale, jobs_of, read_plan, size_of
from experiments.tables import block

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
    records = _conduct(plan, stored.stem, scale, Path(folder), tell, groups, pool)
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


def _conduct(
    plan: Plan,
    name: str,
    scale: Scale,
    folder: Path,
    tell: Tell = lambda _line: None,
    held_out: Sequence[int] = (),
    pool: Pool | None = None,
) -> list[Record]:
    """Return the records of every case and seed; with ``held_out`` means over these groups, each left out in turn."""
    store = Store(folder.resolve(), name, scale)  # workers of a cluster may stand elsewhere
    jobs = list(held_out_jobs(plan, scale, held_out) if held_out else jobs_of(plan, scale))
    records = records_of(jobs, f"experiments.measures.{plan.measure}", store, name, pool, tell)
    return mean_over_groups(records) if held_out else records


def fill(path: Path, name: str, text: str) -> None:
    """Put ``text`` between the document's marks for ``name``."""
    before, _, after = _parts(path, name)
    write_text(path, f"{before}\n{text}\n{after}")


def filled(path: Path, name: str) -> str:
    """Return the text between the document's marks for ``name``."""
    return _parts(path, name)[1].strip("\n")


def _parts(path: Path, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    whole = path.read_text("utf-8") if path.is_file() else ""
    if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(end) < whole.index(begin):
        raise AxonnxError(f"{path}: expected one line {begin!r} and, after it, one line {end!r}")
    first, second = whole.index(begin) + len(begin), whole.index(end)
    return whole[:first], whole[first:second], whole[second:]
