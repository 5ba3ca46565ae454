"""Do what a plan says, job by job; what was done before is not done again."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from axonnx.experiments.held_out import held_out_jobs, mean_over_groups
from axonnx.experiments.plan import Job, Plan, Scale, jobs_of
from axonnx.experiments.store import Record, Store
from axonnx.train.finite import NonFiniteError

Tell = Callable[[str], None]


def conduct(
    plan: Plan,
    name: str,
    scale: Scale,
    folder: Path,
    tell: Tell = lambda _line: None,
    held_out: Sequence[int] = (),
) -> list[Record]:
    """The records of every case and seed; with ``held_out`` means over these groups, each left out in turn."""
    store = Store(folder, name, scale)
    jobs = list(held_out_jobs(plan, scale, held_out) if held_out else jobs_of(plan, scale))
    measure: Any = importlib.import_module(f"axonnx.experiments.measures.{plan.measure}").measure
    records: list[Record] = []
    for number, job in enumerate(jobs, 1):
        record = store.find(job)
        began = time.perf_counter()
        fresh = record is None
        if record is None:
            record = store.keep(job, _measured(measure, job, store.runs))
        records.append(record)
        spent = f"{time.perf_counter() - began:.0f} s" if fresh else "done before"
        without = "" if job.group is None else f", without {job.group}"
        tell(f"{name} {number}/{len(jobs)}  {job.case}, seed {job.seed}{without}: {_shown(record)}  ({spent})")
    return mean_over_groups(records) if held_out else records


def _measured(measure: Callable[[Job, Path], Record], job: Job, runs: Path) -> Record:
    """A job's record. A run that was stopped because something was not finite has no figures; that it was is kept."""
    try:
        return measure(job, runs)
    except NonFiniteError as fault:
        return {"settings": job.settings, "failed": str(fault), "accuracy": None}


def _shown(record: Record) -> str:
    if "failed" in record:
        return f"failed: {record['failed']}"
    if "points" in record:
        return f"cosine {record['cosine_of_one']:.3f}"
    return f"{100 * record['accuracy']:.1f} %"
