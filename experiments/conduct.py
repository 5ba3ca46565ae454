"""Do what a plan says, job by job; what was done before is not done again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from axonnx.experiments.held_out import held_out_jobs, mean_over_groups
from axonnx.experiments.plan import Plan, Scale, jobs_of
from axonnx.experiments.sharing import Tell, records_of
from axonnx.experiments.store import Record, Store
from axonnx.jobs.work import Pool


def conduct(
    plan: Plan,
    name: str,
    scale: Scale,
    folder: Path,
    tell: Tell = lambda _line: None,
    held_out: Sequence[int] = (),
    pool: Pool | None = None,
) -> list[Record]:
    """The records of every case and seed; with ``held_out`` means over these groups, each left out in turn."""
    store = Store(folder.resolve(), name, scale)  # workers of a cluster may stand elsewhere
    jobs = list(held_out_jobs(plan, scale, held_out) if held_out else jobs_of(plan, scale))
    records = records_of(jobs, plan.measure, store, name, pool, tell)
    return mean_over_groups(records) if held_out else records
