"""Accuracy and calibration of a file on labelled data, in this process or as jobs."""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, cast

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of
from axonnx.loading import samples_for
from axonnx.model import Model, load
from axonnx.runtime.engines.choose import EngineName
from axonnx.runtime.jobs.running import Watch, all_results
from axonnx.runtime.jobs.work import FileTask, Job, Pool
from axonnx.runtime.measure.evaluation import Answers, Evaluation, answers, evaluate, figures_of
from axonnx.runtime.measure.samples import Samples
from axonnx.runtime.streams.fit import Fit

PIECES = 64  # of a job; a multiple of samples.BATCH, so that batches are those of one process


def evaluate_model(
    loaded: Model,
    path: Path,
    data: Any,
    part: str | None = None,
    fit: Fit | None = None,
    seed: int = 0,
    pool: Pool | None = None,
    watch: Watch | None = None,
) -> Evaluation:
    """Run a loaded file on all of ``data``; with a ``pool``, some samples at a time are jobs, with the same figures."""
    sha256 = sha256_of(path)
    samples = samples_for(data, loaded.contract, part, fit)
    if pool is None:
        found = evaluate(loaded, samples, seed)
    else:
        engine, threads = loaded.asked
        task = FileTask(str(path.resolve()), sha256, place_of(data), part, fit, engine, threads, seed)
        found = figures_of(loaded, samples, _by_jobs(task, loaded, samples.count, pool, watch), seed)
    return found.model_copy(update={"model": str(path), "file_sha256": sha256})


def place_of(data: Any) -> str:
    """Where workers, which may stand elsewhere, find the data."""
    if not isinstance(data, str | os.PathLike):
        raise AxonnxError(f"data of type {type(data).__name__} with several jobs; workers need a path or a name")
    return str(Path(data).resolve()) if Path(data).exists() else os.fspath(data)


def _by_jobs(task: FileTask, model: Model, count: int, pool: Pool, watch: Watch | None) -> list[Answers]:
    """Return the answers to all pieces, some at a time."""
    edges = [*range(0, count, PIECES), count]
    numbers = edges  # of first samples
    if model.engine.program.noises:  # a sample's noise follows from its number, and files may hold several
        sizes = all_results([Job(f"count {a}", samples_of, (task, a, b)) for a, b in pairwise(edges)], pool)
        numbers = [0, *accumulate(sizes)]
    jobs = [
        Job(f"pieces {first + 1} to {last} of {count}", answers_of, (task, first, last, number))
        for (first, last), number in zip(pairwise(edges), numbers, strict=False)
    ]
    return [Answers.model_validate(each) for each in all_results(jobs, pool, watch)]


def answers_of(task: FileTask, first: int, last: int, number: int) -> dict[str, Any]:
    """Answer, as a job, for some pieces of the data."""
    model, data = _opened(task)
    return answers(model, data, first, last, number, task.seed).model_dump()


def samples_of(task: FileTask, first: int, last: int) -> int:
    """Count, as a job, the samples in some pieces of the data."""
    return len(_opened(task)[1].labels(first, last))


@lru_cache(maxsize=1)
def _opened(task: FileTask) -> tuple[Model, Samples]:
    """Open the network and the data once in each process."""
    task.check()
    model = load(task.model, cast(EngineName, task.engine), task.threads)
    return model, samples_for(task.data, model.contract, task.part, task.fit)
