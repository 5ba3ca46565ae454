"""Jobs of sweeps and experiments: their records on disk, and how commands share them.

Two commands that are started on the same experiment divide it: a job belongs to whoever locked its run first. The other
goes on with the next one, and in the end waits for what it left.
"""

from __future__ import annotations

import importlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from axonnx.base.errors import AxonnxError
from axonnx.base.files import claimed, write_text
from axonnx.runtime.jobs import work
from axonnx.runtime.jobs.running import Pace, run_jobs
from axonnx.train.data import recordings
from axonnx.train.health import NonFiniteError

Tree = dict[str, Any]
Record = dict[str, Any]
FORMAT = 1


class Job(NamedTuple):
    """One case with one seed: everything a measure needs."""

    case: str
    seed: int
    settings: Tree  # of the training run, whole
    options: Tree  # of the measure
    group: int | None = None  # the speaker or user that is held out

    @property
    def name(self) -> str:
        """Tells it from the others of its experiment."""
        without = "" if self.group is None else f", without {self.group}"
        return f"{self.case}, seed {self.seed}{without}"

    @property
    def digest(self) -> str:
        """Tells one job from another that is to be done differently."""
        return settings_digest([self.settings, self.options, self.seed])


def settings_digest(tree: Any) -> str:
    """Return a short hash of settings."""
    return recordings.digest_of(tree)[:12]


class Store:
    """What an experiment leaves in its folder while it runs. ``runs/`` is shared by all experiments of a scale."""

    def __init__(self, folder: Path, name: str, scale: str) -> None:
        self.records = folder / scale / name
        self.runs = folder / scale / "runs"

    def find(self, job: Job) -> Record | None:
        """Return the record of a job that was done before, in the same way."""
        path = self._path(job)
        if not path.is_file():
            return None
        try:
            record: Record = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError):
            return None  # it is measured anew
        return record if isinstance(record, dict) and record.get("digest") == job.digest else None

    def keep(self, job: Job, record: Record) -> Record:
        """Write a job's record, whole or not at all."""
        held_out = {} if job.group is None else {"group": job.group}
        whole = {"case": job.case, "seed": job.seed, **held_out, "digest": job.digest, **record}
        path = self._path(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(whole, indent=1))
        return whole

    def _path(self, job: Job) -> Path:
        case = re.sub(r"[^A-Za-z0-9.]+", "-", job.case).strip("-").lower()
        group = "" if job.group is None else f"-without-{job.group}"
        return self.records / f"{case}-{job.seed}{group}.json"


def write_results(path: Path, name: str, scale: str, records: Iterable[Record]) -> None:
    """All records of an experiment in one file, numbers to six digits: what tables and figures are made from."""
    lines = [json.dumps(_rounded(record), separators=(",", ":")) for record in records]
    head = json.dumps({"format": FORMAT, "experiment": name, "scale": scale})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, head[:-1] + ', "records": [\n' + ",\n".join(lines) + "\n]}\n")


def read_results(path: Path) -> tuple[str, list[Record]]:
    """Return the scale and the records of a results file."""
    if not path.is_file():
        raise AxonnxError(f"{path}: no stored results; run the experiment first")
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise AxonnxError(f"{path}: not a results file: {fault}") from None
    if not isinstance(tree, dict) or tree.get("format") != FORMAT or not {"scale", "records"} <= set(tree):
        raise AxonnxError(f"{path}: not a results file of format {FORMAT}; run the experiment again")
    return tree["scale"], tree["records"]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation over seeds (n − 1; nan for one)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


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
    with claimed(store.runs / f".{settings_digest(job.settings)}.lock", wait) as ours:
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
