"""``run_jobs``: every job's outcome as it comes; a failure is tried once more and never loses the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.jobs.cluster import Cluster
from axonnx.jobs.journal import Journal
from axonnx.jobs.processes import Processes
from axonnx.jobs.work import Here, Job, Outcome, Pool

Watch = Callable[[int, Iterable[Outcome]], Iterable[Outcome]]  # how many there are, and the outcomes, which it hands on


def make_pool(workers: int = 1, cluster: str | None = None) -> Pool:
    """Of one process, of so many on this machine, or the Dask cluster at an address."""
    if cluster is not None:
        return Cluster(cluster)
    if workers < 1:
        raise AxonnxError(f"{workers} jobs at a time; expected one or more")
    return Here() if workers == 1 else Processes(workers)


def run_jobs(jobs: Sequence[Job], pool: Pool | None = None, journal: Journal | None = None) -> Iterator[Outcome]:
    """The outcome of every job, as they come: first what the journal has, last what failed at first."""
    assert len({job.name for job in jobs}) == len(jobs), "names tell jobs apart"
    done = {} if journal is None else journal.done
    yield from (done[job.name] for job in jobs if job.name in done)
    todo, pool = [job for job in jobs if job.name not in done], pool or Here()
    again: list[Job] = []
    by_name = {job.name: job for job in todo}
    for outcome in pool.outcomes(todo):
        if outcome.fault is None:
            yield _kept(outcome, journal)
        else:
            again.append(by_name[outcome.name])
    for outcome in pool.outcomes(again) if again else ():
        yield _kept(outcome, journal)


def in_order(jobs: Iterable[Job], outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Outcomes in the order of the jobs, each as soon as those before it are there."""
    arrived: dict[str, Outcome] = {}
    coming = iter(outcomes)
    for job in jobs:
        while job.name not in arrived:
            outcome = next(coming)
            arrived[outcome.name] = outcome
        yield arrived.pop(job.name)


def all_results(jobs: Sequence[Job], pool: Pool | None = None, watch: Watch | None = None) -> list[Any]:
    """The result of every job, in their order; where one has none even the second time, that is told."""
    outcomes = run_jobs(jobs, pool)
    found = list(in_order(jobs, outcomes if watch is None else watch(len(jobs), outcomes)))
    failed = [f"{each.name}: {each.fault}" for each in found if each.fault is not None]
    if failed:
        more = f"\n  and {len(failed) - 5} more" if len(failed) > 5 else ""
        lines = "\n  ".join(failed[:5])
        raise AxonnxError(f"{len(failed)} of {len(jobs)} jobs failed, tried twice:\n  {lines}{more}")
    return [each.value for each in found]


def _kept(outcome: Outcome, journal: Journal | None) -> Outcome:
    if journal is not None:
        journal.add(outcome)
    return outcome
