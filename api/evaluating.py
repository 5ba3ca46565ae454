"""Accuracy, calibration and costs of a file on labelled data, in this process or as jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.loading import samples_for
from axonnx.model import Model, load
from axonnx.runtime.engines.choose import EngineName, measuring_engine
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.jobs.running import Watch, all_results
from axonnx.runtime.jobs.work import FileTask, Job, Pool
from axonnx.runtime.measure.energy import Hardware, read_hardware
from axonnx.runtime.measure.evaluation import (
    Answers,
    Evaluation,
    ValueEvaluation,
    answers,
    evaluate,
    evaluate_certainty,
    figures_of,
    made_unknown,
)
from axonnx.runtime.measure.profile import Counts, count
from axonnx.runtime.measure.profile import figures_of as costs_of
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.samples import Samples, choose_samples
from axonnx.runtime.measure.uncertainty import MADE
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.streams.adapt import Fit

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
    uncertainty: Sequence[str] | None = None,
    passes: int | None = None,
) -> Evaluation | ValueEvaluation:
    """Run a loaded file on all of ``data``; with a ``pool``, some samples at a time are jobs, with the same figures."""
    sha256 = sha256_of(path)
    _check_passes(loaded, uncertainty, passes, pool)
    samples = samples_for(data, loaded.contract, part, fit)
    found: Evaluation | ValueEvaluation
    if uncertainty is not None:
        # The same parts and the same fit are taken of unknown data, which need not have the classes of the network.
        unknown = {
            name: made_unknown(samples, name, seed)
            if name in MADE
            else samples_for(name, loaded.contract, None, fit, labelled=False)
            for name in uncertainty
        }
        found = evaluate_certainty(loaded, samples, unknown, seed, passes or 1)
    elif pool is None:
        found = evaluate(loaded, samples, seed)
    else:
        engine, threads = loaded.asked
        task = FileTask(str(path.resolve()), sha256, place_of(data), part, fit, engine, threads, seed)
        found = figures_of(loaded, samples, _by_jobs(task, loaded, samples, pool, watch), seed)
    return found.model_copy(update={"model": str(path), "file_sha256": sha256})


def _check_passes(loaded: Model, uncertainty: Sequence[str] | None, passes: int | None, pool: Pool | None) -> None:
    if uncertainty is None:
        if passes is not None:
            raise AxonnxError(
                "passes of a file are averaged to measure its uncertainty: give uncertainty, too, e.g. noise"
            )
        return
    loaded.contract.needs_classes(loaded.program.name, "uncertainty")
    if pool is not None:
        raise AxonnxError("uncertainty is measured in one process: leave jobs out")
    if (passes or 1) > 1 and not loaded.program.noises:
        raise AxonnxError(
            f"{loaded.program.name}: {passes} passes of a file without noise are all the same; export with collapse "
            f"stochastic, or leave passes out"
        )


def place_of(data: Any) -> str:
    """Where workers, which may stand elsewhere, find the data."""
    if not isinstance(data, str | os.PathLike):
        raise AxonnxError(f"data of type {type(data).__name__} with several jobs; workers need a path or a name")
    return str(Path(data).resolve()) if Path(data).exists() else os.fspath(data)


def _by_jobs(task: FileTask, model: Model, samples: Samples, pool: Pool, watch: Watch | None) -> list[Answers]:
    """Return the answers to all pieces, some at a time."""
    edges = [*range(0, samples.count, PIECES), samples.count]
    numbers = edges  # of first samples
    if model.engine.program.noises:  # a sample's noise follows from its number, and files may hold several
        numbers = [0, *accumulate(map(len, _labels(task, samples, edges, pool)))]
    jobs = [
        Job(f"pieces {first + 1} to {last} of {samples.count}", answers_of, (task, first, last, number))
        for (first, last), number in zip(pairwise(edges), numbers, strict=False)
    ]
    return [Answers.model_validate(each) for each in all_results(jobs, pool, watch)]


def answers_of(task: FileTask, first: int, last: int, number: int) -> dict[str, Any]:
    """Answer, as a job, for some pieces of the data."""
    model, data = _opened(task)
    return answers(model, data, first, last, number, task.seed).model_dump()


@lru_cache(maxsize=1)
def _opened(task: FileTask) -> tuple[Model, Samples]:
    """Open the network and the data once in each process."""
    task.check()
    model = load(task.model, cast(EngineName, task.engine), task.threads)
    return model, samples_for(task.data, model.contract, task.part, task.fit)


def profile_model(
    model: Path,
    data: Any,
    part: str | None = None,
    fit: Fit | None = None,
    limit: int | None = 256,
    engine: str = "auto",
    hardware: Hardware | str | Path | None = None,
    seed: int = 0,
    pool: Pool | None = None,
    watch: Watch | None = None,
) -> ProfileResult:
    """Count on ``limit`` samples of all classes (None: every sample), with a ``pool`` some of them at a time."""
    table = hardware if isinstance(hardware, Hardware) else read_hardware(hardware)
    sha256, program = sha256_of(model), compile_file(model)
    measuring, samples = measuring_engine(program, engine), samples_for(data, program.contract, part, fit)
    task = None
    if pool is not None:
        task = FileTask(str(model.resolve()), sha256, place_of(data), part, fit, engine, seed=seed)
    edges = [*range(0, samples.count, PIECES), samples.count]
    labels = _labels(task, samples, edges, pool)
    chosen = choose_samples(np.concatenate(labels), limit)
    counts, first, number = Counts(), 0, 0
    jobs: list[Job] = []
    for (low, high), own in zip(pairwise(edges), labels, strict=True):
        inside = chosen[(chosen >= first) & (chosen < first + len(own))] - first
        if len(inside):
            jobs.append(Job(f"pieces {low + 1} to {high}", counted, (task, low, high, inside.tolist(), number)))
        first, number = first + len(own), number + len(inside)
    if pool is None:
        for job in jobs:
            counts.add(_counted(measuring, samples, seed, *job.arguments[1:]))
    else:
        for found in all_results(jobs, pool, watch):
            counts.add(Counts(**found))
    return costs_of(program, measuring.name, counts, table, samples.values).model_copy(
        update={
            "model": str(model),
            "file_sha256": sha256,
            "checkpoint_sha256": samples.checkpoint,
            "data_sha256": samples.sha256,
        }
    )


def counted(task: FileTask, low: int, high: int, chosen: list[int], number: int) -> dict[str, Any]:
    """Return, as a job, what some chosen samples of some pieces cost; ``number`` is that of the first of them."""
    model, samples = _opened(task)
    engine = measuring_engine(model.program, task.engine)
    return dict(vars(_counted(engine, samples, task.seed, low, high, chosen, number)))


def labels_of(task: FileTask, low: int, high: int) -> list[int]:
    """Return, as a job, the labels of some pieces of the data."""
    found: list[int] = _opened(task)[1].labels(low, high).tolist()
    return found


def _counted(
    engine: Engine, samples: Samples, seed: int, low: int, high: int, chosen: list[int], number: int
) -> Counts:
    return count(engine, _inputs(engine, samples, low, high, np.array(chosen)), seed, number)


def _inputs(
    engine: Engine, samples: Samples, low: int, high: int, chosen: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Chosen samples of some pieces, as the network's input."""
    contract = engine.program.contract
    frames, labels = samples.chosen(low, high, chosen)
    x = to_input(frames.swapaxes(0, 1), contract.input)
    yield (x if contract.kind == "spiking" else x[0]), labels


def _labels(task: FileTask | None, samples: Samples, edges: list[int], pool: Pool | None) -> list[NDArray[np.int64]]:
    """Return the labels of every stretch of pieces; those of files are known only once the files are read."""
    if pool is None or samples.known is not None:
        return [samples.labels(low, high) for low, high in pairwise(edges)]
    jobs = [Job(f"labels {low}", labels_of, (task, low, high)) for low, high in pairwise(edges)]
    return [np.array(found, np.int64) for found in all_results(jobs, pool)]
