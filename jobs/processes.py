"""Jobs in several processes of this machine, by joblib's executor (loky)."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from axonnx.base.errors import AxonnxError
from axonnx.jobs.work import Job, Outcome, attempt

AHEAD = 4  # jobs that are handed out for each process, so that none waits for the next
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
DIED = "its process ended: killed from outside, out of memory, or a crash"


class Processes:
    """So many processes, each with one thread for array operations.

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
