"""``profile_file``: what a file costs on the test data of its run, or on one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of
from axonnx.jobs.running import Watch, all_results
from axonnx.jobs.work import Job, Pool, check_submitted
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.energy import Hardware, read_hardware
from axonnx.runtime.measure.labelled_data import LabelledData, open_labelled
from axonnx.runtime.measure.profile import Counts, count, figures_of
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.program.compilation import compile_file

if TYPE_CHECKING:
    from axonnx.train.trained import Trained

Batches = Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]
PIECES = 64  # samples, or files of recordings, of a job


@dataclass(frozen=True)
class ProfileTask:
    """Which file on which data, and how: what a worker is told."""

    model: str
    sha256: str
    run: str | None
    data: str | None
    engine: str
    seed: int


def profile_file(
    model: str | Path,
    *,
    run: str | Path | None = None,
    data: str | Path | None = None,
    limit: int | None = 256,
    engine: str = "auto",
    hardware: Hardware | str | Path | None = None,
    seed: int = 0,
    pool: Pool | None = None,
    watch: Watch | None = None,
) -> ProfileResult:
    """Spikes, operations, memory, time and energy of a file, for one inference.

    It runs ``limit`` samples of all classes (None: every sample): test data of the run folder ``run``, or those in
    ``data``, an npz of frames and labels or class folders of recordings. ``hardware`` has the energies of operations,
    as a TOML file or a value (default: 45 nm); ``seed`` is that of a stochastic file's noise. With a ``pool`` some
    samples at a time are jobs, with the same figures but for times. Without a run no torch is needed.

    Examples:
        >>> profile = axonnx.profile_file("digits.onnx", run="digits", limit=20)
        >>> profile.samples, [layer.name for layer in profile.layers]
        (20, ['hidden.0.neuron', 'hidden.1.neuron'])
    """
    if (run is None) == (data is None):
        raise AxonnxError(f"{model}: which data? A run, whose test data is taken, or data of your own: one of the two")
    table = hardware if isinstance(hardware, Hardware) else read_hardware(hardware)
    task = ProfileTask(str(Path(model).resolve()), sha256_of(model), _absolute(run), _absolute(data), engine, seed)
    program = compile_file(model)
    measuring = measuring_engine(program, engine)
    source = _source(task, program.contract)
    edges = [*range(0, source.count, PIECES), source.count]
    labels = _labels(task, source, edges, pool)
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
            counts.add(_counted(measuring, source, seed, *job.arguments[1:]))
    else:
        for found in all_results(jobs, pool, watch):
            counts.add(Counts(**found))
    return figures_of(program, measuring.name, counts, table).model_copy(
        update={
            "model": str(model),
            "file_sha256": task.sha256,
            "checkpoint_sha256": source.checkpoint_sha256,
            "data_sha256": source.sha256,
        }
    )


def _absolute(place: str | Path | None) -> str | None:
    """Workers may stand elsewhere."""
    return None if place is None else str(Path(place).resolve())


def counted(task: ProfileTask, low: int, high: int, chosen: list[int], number: int) -> dict[str, Any]:
    """A job: what some chosen samples of some pieces cost; ``number`` is that of the first of them."""
    engine, source = _opened(task)
    return dict(vars(_counted(engine, source, task.seed, low, high, chosen, number)))


def labels_of(task: ProfileTask, low: int, high: int) -> list[int]:
    """A job: the labels of some pieces of the data."""
    found: list[int] = _opened(task)[1].labels(low, high).tolist()
    return found


@lru_cache(maxsize=1)
def _opened(task: ProfileTask) -> tuple[Engine, _OfRun | _OfFiles]:
    """The engine and the data, once in each process."""
    check_submitted(task.model, task.sha256)
    program = compile_file(task.model)
    return measuring_engine(program, task.engine), _source(task, program.contract)


def _counted(
    engine: Engine, source: _OfRun | _OfFiles, seed: int, low: int, high: int, chosen: list[int], number: int
) -> Counts:
    return count(engine, source.batches(low, high, np.array(chosen)), seed, number)


def _labels(
    task: ProfileTask, source: _OfRun | _OfFiles, edges: list[int], pool: Pool | None
) -> list[NDArray[np.int64]]:
    """Of every stretch of pieces; to know those of files means to read them."""
    if pool is None or isinstance(source, _OfRun):
        return [source.labels(low, high) for low, high in pairwise(edges)]
    jobs = [Job(f"labels {low}", labels_of, (task, low, high)) for low, high in pairwise(edges)]
    return [np.array(found, np.int64) for found in all_results(jobs, pool)]


def _source(task: ProfileTask, contract: Contract) -> _OfRun | _OfFiles:
    if task.data is not None:
        return _OfFiles(open_labelled(Path(task.data), contract), contract)
    from axonnx.train.trained import open_run  # needs torch, which a device without a run does not have

    return _OfRun(open_run(str(task.run)))


@dataclass(frozen=True)
class _OfRun:
    """The test data of a run; a piece is a sample."""

    trained: Trained

    @property
    def count(self) -> int:
        return len(self.trained.prepared.splits.test)

    @property
    def sha256(self) -> str:
        return self.trained.prepared.splits.test.digest

    @property
    def checkpoint_sha256(self) -> str | None:
        return self.trained.provenance().checkpoint

    def labels(self, low: int, high: int) -> NDArray[np.int64]:
        return self.trained.prepared.splits.test.labels[low:high]

    def batches(self, low: int, high: int, chosen: NDArray[np.int64]) -> Batches:
        for x, labels in self.trained.samples("test", low + chosen):
            yield x.numpy(), labels.numpy()


@dataclass(frozen=True)
class _OfFiles:
    """An npz of frames, or class folders, of which a piece is a file."""

    data: LabelledData
    contract: Contract
    checkpoint_sha256: str | None = None

    @property
    def count(self) -> int:
        return self.data.count

    @property
    def sha256(self) -> str:
        return self.data.sha256

    def labels(self, low: int, high: int) -> NDArray[np.int64]:
        return np.concatenate([labels for _, labels in self.data.some(low, high)])

    def batches(self, low: int, high: int, chosen: NDArray[np.int64]) -> Batches:
        parts = list(self.data.some(low, high))
        frames, labels = (np.concatenate([part[side] for part in parts])[chosen] for side in (0, 1))
        x = to_input(frames.swapaxes(0, 1), self.contract.input)
        yield (x if self.contract.kind == "spiking" else x[0]), labels
