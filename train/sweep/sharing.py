"""Every case and seed as a job of its own: in one process, in several, on a cluster, and shared between commands.

Two commands that are started on the same experiment divide it: a job belongs to whoever locked its run first. The other
goes on with the next one, and in the end waits for what it left.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from axonnx.base.errors import AxonnxError
from axonnx.base.files import claimed
from axonnx.runtime.jobs import work
from axonnx.runtime.jobs.running import Pace, run_jobs
from axonnx.train.finite import NonFiniteError
from axonnx.train.sweep.store import Job, Record, Store, digest_of

Tell = Callable[[str], None]


def records_of(
    jobs: Sequence[Job],
    measure: str,
    store: Store,
    name: str,
    pool: work.Pool | None = None,
    tell: Tell = lambda _line: None,
) -> list[Record]:
    """Return the records of all jobs, in order; a job that fails is tried once more and reported at the end.

    ``measure`` is the full name of a module whose function ``measure(job, runs)`` returns a record.
    """
    records: dict[str, Record] = {}
    failed: dict[str, str] = {}
    pace = Pace(len(jobs))
    for wait in (False, True):
        left = [job for job in jobs if job.name not in records and job.name not in failed]
        todo = [work.Job(job.name, done, (job, measure, store, wait)) for job in left]
        for outcome in _noted(run_jobs(todo, pool) if todo else (), records, len(jobs)):
            if outcome.fault is not None:
                failed[outcome.name] = outcome.fault
                tell(f"{name}: {outcome.name}: FAILED: {outcome.fault}")
            elif (found := outcome.value) is not None:
                records[outcome.name] = found["record"]
                pace.step(found["seconds"] is not None)
                spent = "done before" if found["seconds"] is None else f"{found['seconds']:.0f} s"
                place = f"{name} {pace.done}/{pace.total}"
                tell(f"{place}  {outcome.name}: {_shown(found['record'])}  ({spent}{pace.left()})")
    if failed:
        raise AxonnxError(_told(failed, len(jobs)))
    return [records[job.name] for job in jobs]


def _noted(outcomes: Iterable[work.Outcome], records: Sized, total: int) -> Iterator[work.Outcome]:
    """Pass the outcomes on; an interruption says how much of the work is kept."""
    try:
        yield from outcomes
    except KeyboardInterrupt as ended:
        ended.add_note(f"{len(records)} of {total} runs are recorded; the same command continues")
        raise


def done(job: Job, measure: str, store: Store, wait: bool) -> dict[str, Any] | None:
    """Return a job's record and how long it took (None: it was there); None where another process is at it.

    Cases that train alike share a run, so it is the run that is locked.
    """
    kept = store.find(job)
    if kept is not None:
        return {"record": kept, "seconds": None}
    with claimed(store.runs / f".{digest_of(job.settings)}.lock", wait) as ours:
        if not ours:
            return None
        kept = store.find(job)  # by whoever was waited for
        if kept is not None:
            return {"record": kept, "seconds": None}
        began = time.perf_counter()
        record = store.keep(job, _measured(measure, job, store.runs))
        return {"record": record, "seconds": time.perf_counter() - began}


def _measured(name: str, job: Job, runs: Path) -> Record:
    """Return a job's record; of a run that stopped because a value was not finite, only that it failed."""
    measure = importlib.import_module(name).measure
    try:
        with one_thread():
            record: Record = measure(job, runs)
        return record
    except NonFiniteError as fault:
        return {"settings": job.settings, "failed": str(fault), "accuracy": None}


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch with one thread: how many there are changes the order of sums, and so the last bits of a training."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _shown(record: Record) -> str:
    if "failed" in record:
        return f"failed: {record['failed']}"
    if "points" in record:
        return f"cosine {record['cosine_of_one']:.3f}"
    return f"{100 * record['accuracy']:.1f} %"


def _told(failed: dict[str, str], count: int) -> str:
    """Return the faults, each once."""
    lines = [f"{name}: {fault}" for fault, name in {fault: name for name, fault in failed.items()}.items()]
    more = "" if len(lines) == len(failed) else " (the same fault is told once)"
    return f"{len(failed)} of {count} jobs failed, tried twice{more}; the records of the others are kept:\n  " + (
        "\n  ".join(lines)
    )
