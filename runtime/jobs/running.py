"""Run jobs in one process, in several, or on a cluster, and yield each outcome as it arrives.

A failed job is tried once more. It never affects the others.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from axonnx.base.errors import AxonnxError
from axonnx.base.files import try_lock
from axonnx.runtime.jobs.cluster import ClusterPool
from axonnx.runtime.jobs.work import Job, Outcome, Pool, SerialPool, attempt, named_fault


class Journal:
    """The journal of a run of jobs.

    A journal is a file of lines. The first line describes the work, every other line is the result of a job. One
    process writes it. A line that a killed process left incomplete is dropped. Failures are not kept, so they are tried
    again.

    Args:
        path: File of the journal.
        about: Description of the work; a journal of other work is refused.

    Attributes:
        done: Results of earlier processes, by the name of the job.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        self.path, self.about = Path(path), json.dumps({"journal": 1, **about}, sort_keys=True)
        self.done: dict[str, Outcome] = {}

    def __enter__(self) -> Self:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not try_lock(self._descriptor):
                raise AxonnxError(f"{self.path}: another process is doing this work; wait until it ends, or stop it")
            self._take_up()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def add(self, outcome: Outcome) -> None:
        """Keep a result; failures are not kept."""
        if outcome.text is not None:
            _write(self._descriptor, f'{{"job": {json.dumps(outcome.name)}, "result": {outcome.text}}}\n')

    def remove(self) -> None:
        """Delete the journal after the results were saved elsewhere."""
        self.path.unlink(missing_ok=True)

    def _take_up(self) -> None:
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = whole.decode("utf-8", "replace").splitlines() or [""]
        if whole and head != self.about:
            raise AxonnxError(
                f"{self.path}: holds results of other work (another model, other data or options); continue with "
                f"those, "
                f"give another file, or delete this one"
            )
        self.done = {outcome.name: outcome for outcome in (_outcome(self.path, line) for line in lines)}
        os.ftruncate(self._descriptor, len(whole))
        os.lseek(self._descriptor, 0, os.SEEK_END)
        if not whole:
            _write(self._descriptor, f"{self.about}\n")


def _outcome(path: Path, line: str) -> Outcome:
    try:
        entry = json.loads(line)
        return Outcome(str(entry["job"]), json.dumps(entry["result"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise AxonnxError(
            f"{path}: {line[:60]!r} is not a line of a journal; delete the file and start again"
        ) from None


def _write(descriptor: int, line: str) -> None:
    data = line.encode()
    while data:
        data = data[os.write(descriptor, data) :]


AHEAD = 4  # jobs submitted per process, so that no process has to wait
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SET_PARENT_DEATH_SIGNAL = 1  # of Linux: prctl(PR_SET_PDEATHSIG, …)
WATCH_S = 0.2  # between two looks at the parent
DIED = "its process ended: it was killed, ran out of memory, or crashed"
Watch = Callable[
    [int, Iterable[Outcome]], Iterable[Outcome]
]  # takes the number of jobs and the outcomes, and yields the outcomes again


def make_pool(workers: int = 1, cluster: str | None = None) -> Pool:
    """Return a pool of one process, of ``workers`` processes, or of the Dask cluster at an address.

    Raises:
        AxonnxError: If ``workers`` is less than 1, or the address is not known.
    """
    if cluster is not None:
        return ClusterPool(cluster)
    if workers < 1:
        raise AxonnxError(f"workers is {workers}; expected 1 or more")
    return SerialPool() if workers == 1 else ProcessPool(workers)


def pool_for(jobs: int | str = 1) -> Pool | None:
    """Return the workers for a number of processes or a cluster's address; None for this process alone."""
    text = str(jobs)
    if text.isdecimal():
        return None if text == "1" else make_pool(int(text))
    return make_pool(cluster=text)


def run_jobs(jobs: Sequence[Job], pool: Pool | None = None, journal: Journal | None = None) -> Iterator[Outcome]:
    """Yield the outcome of every job as it arrives.

    Outcomes from the journal come first, and those of jobs that failed once come last.

    Args:
        jobs: Jobs with distinct names.
        pool: What runs the jobs. Default: this process.
        journal: Results of earlier runs; new results are added to it.
    """
    assert len({job.name for job in jobs}) == len(jobs), "names of jobs must be distinct"
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
    """Yield outcomes in the order of the jobs, each as soon as all before it have arrived."""
    arrived: dict[str, Outcome] = {}
    coming = iter(outcomes)
    for job in jobs:
        while job.name not in arrived:
            outcome = next(coming)
            arrived[outcome.name] = outcome
        yield arrived.pop(job.name)


def all_results(jobs: Sequence[Job], pool: Pool | None = None, watch: Watch | None = None) -> list[Any]:
    """Return the results of all jobs in their order.

    Raises:
        AxonnxError: If a job fails twice.
    """
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
    """Several processes on this machine, with joblib's executor (loky) and one thread each for array operations.

    A process that dies stops the executor, and it is unknown which job caused it. All submitted jobs are then run again
    one at a time, so that a job that kills its process affects only itself.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Yield outcomes as they arrive."""
        waiting = deque(jobs)
        while waiting:
            suspects = yield from self._together(waiting)
            yield from _alone(suspects)

    def _together(self, waiting: deque[Job]) -> Generator[Outcome, None, list[Job]]:
        """Run the waiting jobs until none is left or a process dies; return the jobs that were submitted then."""
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
    """Yield processes that end with the block, even if the work is not done."""
    try:
        from joblib.externals.loky import ProcessPoolExecutor
    except ModuleNotFoundError:
        raise AxonnxError("several processes need joblib: pip install 'axonnx[jobs]', or use one process") from None
    executor = ProcessPoolExecutor(workers, initializer=_follow_parent, initargs=(os.getpid(),), env=ONE_THREAD)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _follow_parent(parent: int) -> None:
    """Leave the terminal's signals to the parent, and end when it ends, also if it was killed.

    Linux tells a process that its parent died, even during a long computation. The thread serves other systems.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL))
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os._exit(1)


class Pace:
    """Estimates the remaining time; work of earlier processes does not count."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.fresh = total, 0, 0
        self.began = time.monotonic()

    def step(self, fresh: bool = True) -> None:
        """Count one more finished job."""
        self.done += 1
        self.fresh += fresh

    def left(self) -> str:
        """Return the remaining time as ``, 1:02 left``, or an empty text if it is unknown or zero."""
        if not self.fresh or self.done >= self.total:
            return ""
        spent = time.monotonic() - self.began
        return f", {clock(spent / self.fresh * (self.total - self.done))} left"


def clock(seconds: float) -> str:
    """Format seconds as ``1:02:03``, without hours if there are none."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
