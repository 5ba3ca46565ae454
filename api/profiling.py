"""What a file costs to run on labelled data, in this process or as jobs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.fingerprints import sha256_of
from axonnx.evaluating import place_of
from axonnx.loading import samples_for
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.jobs.running import Watch, all_results
from axonnx.runtime.jobs.work import FileTask, Job, Pool
from axonnx.runtime.measure.energy import Hardware, read_hardware
from axonnx.runtime.measure.profile import Counts, count, figures_of
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.measure.samples import Samples
from axonnx.runtime.program.compilation import compile_file
from axonnx.runtime.streams.fit import Fit

PIECES = 64  # samples, or files of recordings, of a job


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
    return figures_of(program, measuring.name, counts, table).model_copy(
        update={
            "model": str(model),
            "file_sha256": sha256,
            "checkpoint_sha256": samples.checkpoint,
            "data_sha256": samples.sha256,
        }
    )


def counted(task: FileTask, low: int, high: int, chosen: list[int], number: int) -> dict[str, Any]:
    """Return, as a job, what some chosen samples of some pieces cost; ``number`` is that of the first of them."""
    engine, samples = _opened(task)
    return dict(vars(_counted(engine, samples, task.seed, low, high, chosen, number)))


def labels_of(task: FileTask, low: int, high: int) -> list[int]:
    """Return, as a job, the labels of some pieces of the data."""
    found: list[int] = _opened(task)[1].labels(low, high).tolist()
    return found


@lru_cache(maxsize=1)
def _opened(task: FileTask) -> tuple[Engine, Samples]:
    """Open the engine and the data once in each process."""
    task.check()
    program = compile_file(task.model)
    return measuring_engine(program, task.engine), samples_for(task.data, program.contract, task.part, task.fit)


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
