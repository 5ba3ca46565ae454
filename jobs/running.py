"""``run_jobs``: every job's outcome as it comes, from one process, from several, or from a cluster.

A failure is tried once more and never loses the others.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.jobs.cluster import ClusterPool
from axonnx.jobs.journal import Journal
from axonnx.jobs.work import Job, Outcome, Pool, SerialPool, attempt, named_fault

AHEAD = 4  # jobs that are handed out for each process, so that none waits for the next
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
DIED = "its process ended: killed from outside, out of memory, or a crash"
Watch = Callable[[int, Iterable[Outcome]], Iterable[Outcome]]  # how many there are, and the outcomes, which it hands on


def make_pool(workers: int = 1, cluster: str | None = None) -> Pool:
    """Of one process, of so many on this machine, or the Dask cluster at an address."""
    if cluster is not None:
        return ClusterPool(cluster)
    if workers < 1:
        raise AxonnxError(f"{workers} jobs at a time; expected one or more")
    return SerialPool() if workers == 1 else ProcessPool(workers)


def pool_for(jobs: int | str = 1) -> Pool | None:
    """Return the workers for a number of processes or a cluster's address; None for this process alone."""
    text = str(jobs)
    if text.isdecimal():
        return None if text == "1" else make_pool(int(text))
    return make_pool(cluster=text)


def run_jobs(jobs: Sequence[Job], pool: Pool | None = None, journal: Journal | None = None) -> Iterator[Outcome]:
    """The outcome of every job, as they come: first what the journal has, last what failed at first."""
    assert len({job.name for job in jobs}) == len(jobs), "names tell jobs apart"
    done = {} if journal is None else journal.done
    yield from (done[job.name] for job in jobs if job.name in done)
    todo, pool = [job for job in jobs if job.name not in done], pool or SerialPool()
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
    failed = [named_fault(each.name, each.fault) for each in found if each.fault is not None]
    if failed:
        more = f"\n  and {len(failed) - 5} more" if len(failed) > 5 else ""
        lines = "\n  ".join(failed[:5])
        raise AxonnxError(f"{len(failed)} of {len(jobs)} jobs failed, tried twice:\n  {lines}{more}")
    return [each.value for each in found]


def _kept(outcome: Outcome, journal: Journal | None) -> Outcome:
    if journal is not None:
        journal.add(outcome)
    return outcome


class ProcessPool:
    """So many processes of this machine, by joblib's executor (loky), each with one thread for array operations.

    A process that dies takes down the executor, and which job did it is not known. Those that were handed out are done
    again one at a time, so that one which ends its process harms itself alone.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """As they come."""
        waiting = deque(jobs)
        while waiting:
            suspects = yield from self._together(waiting)
            yield from _alone(suspects)

    def _together(self, waiting: deque[Job]) -> Generator[Outcome, None, list[Job]]:
        """Do what waits until nothing is left or a process dies; the jobs that were handed out then."""
        with _executor(min(self.workers, len(waiting))) as executor:
            running: dict[Future[Outcome], Job] = {}
            while waiting or running:
                try:
                    while waiting and len(running) < AHEAD * self.workers:
                        future = executor.submit(attempt, waiting[0])
                        running[future] = waiting.popleft()
                except BrokenProcessPool:
                    return list(running.values())
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        return list(running.values())
                    del running[future]
                    yield outcome
        return []


def _alone(jobs: Sequence[Job]) -> Iterator[Outcome]:
    left = deque(jobs)
    while left:
        with _executor(1) as executor:
            while left:
                job = left.popleft()
                try:
                    outcome = executor.submit(attempt, job).result()
                except BrokenProcessPool:
                    yield Outcome(job.name, fault=DIED)
                    break
                yield outcome


@contextmanager
def _executor(workers: int) -> Iterator[Executor]:
    """Processes that end with the block, also where it is left before the work is done."""
    try:
        from joblib.externals.loky import ProcessPoolExecutor
    except ModuleNotFoundError:
        raise AxonnxError(
            "several processes need joblib: pip install 'axonnx[jobs]', or take one job at a time"
        ) from None
    executor = ProcessPoolExecutor(workers, initializer=_leave_interrupts_to_the_parent, env=ONE_THREAD)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Pace:
    """Counts what is done; what was done before says nothing about the time that the rest takes."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.fresh = total, 0, 0
        self.began = time.monotonic()

    def step(self, fresh: bool = True) -> None:
        """One more is done."""
        self.done += 1
        self.fresh += fresh

    def left(self) -> str:
        """``, 1:02 left``; nothing where no pace is known yet, or nothing is left."""
        if not self.fresh or self.done >= self.total:
            return ""
        spent = time.monotonic() - self.began
        return f", {clock(spent / self.fresh * (self.total - self.done))} left"


def clock(seconds: float) -> str:
    """``1:02:03``, hours only where there are some."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
