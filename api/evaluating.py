"""``evaluate_file``: accuracy and calibration of a file on labelled data, one's own or a data set by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of
from axonnx.jobs.running import Watch, all_results
from axonnx.jobs.work import Job, Pool, check_submitted
from axonnx.runtime.engines.choose import EngineName
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.evaluation import Answers, Evaluation, answers, evaluate, figures_of
from axonnx.runtime.measure.labelled_data import Batch, FirstWindows, LabelledData, batched, open_labelled
from axonnx.runtime.model import Model, load
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.frame_files import as_steps

if TYPE_CHECKING:
    from axonnx.train.data.splits import Data

PIECES = 64  # of a job; a multiple of labelled_data.BATCH, so that batches are those of one process


def evaluate_file(
    model: str | Path,
    data: str | Path,
    *,
    part: str | None = None,
    data_root: str | None = None,
    fit: Fit | None = None,
    engine: EngineName = "auto",
    threads: int = 1,
    seed: int = 0,
    pool: Pool | None = None,
    watch: Watch | None = None,
) -> Evaluation:
    """Accuracy, NLL, Brier score and calibration of a file on all of ``data``, with intervals and confusion.

    ``data`` is a folder of class folders, an npz of frames and labels, or a data set by its name, whose files are below
    ``data_root``; ``part`` is that of data that has parts (default: test). ``fit`` brings recordings of another sensor
    onto the network's. With a ``pool`` some samples at a time are jobs, with the same figures. Only a data set by its
    name needs torch.
    """
    sha256 = sha256_of(model)
    loaded = load(model, engine, threads)
    labelled = labelled_data(str(data), loaded.contract, part, data_root, fit)
    if pool is None:
        found = evaluate(loaded, labelled, seed)
    else:
        place = str(Path(data).resolve()) if Path(data).exists() else str(data)  # workers may stand elsewhere
        task = EvaluationTask(str(Path(model).resolve()), sha256, place, part, data_root, fit, engine, threads, seed)
        found = figures_of(loaded, labelled, _by_jobs(task, loaded, labelled.count, pool, watch), seed)
    return found.model_copy(update={"model": str(model), "file_sha256": sha256})


@dataclass(frozen=True)
class EvaluationTask:
    """Which file on which data, and how: what a worker is told."""

    model: str
    sha256: str
    data: str
    part: str | None = None
    data_root: str | None = None
    fit: Fit | None = None
    engine: EngineName = "auto"
    threads: int = 1
    seed: int = 0


def _by_jobs(task: EvaluationTask, model: Model, count: int, pool: Pool, watch: Watch | None) -> list[Answers]:
    """The answers to all pieces, some at a time."""
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


def answers_of(task: EvaluationTask, first: int, last: int, number: int) -> dict[str, Any]:
    """A job: the answers to some pieces of the data."""
    model, data = _opened(task)
    return answers(model, data, first, last, number, task.seed).model_dump()


def samples_of(task: EvaluationTask, first: int, last: int) -> int:
    """A job: how many samples are in some pieces of the data."""
    return sum(len(labels) for _, labels in _opened(task)[1].some(first, last))


@lru_cache(maxsize=1)
def _opened(task: EvaluationTask) -> tuple[Model, LabelledData]:
    """The network and the data, once in each process."""
    check_submitted(task.model, task.sha256)
    model = load(task.model, task.engine, task.threads)
    return model, labelled_data(task.data, model.contract, task.part, task.data_root, task.fit)


def labelled_data(
    data: str, contract: Contract, part: str | None, data_root: str | None, fit: Fit | None
) -> LabelledData:
    """One's own data by its path, or a data set by its name."""
    if Path(data).exists():
        return _own(Path(data), contract, part, fit)
    return data_set(data, contract, part or "test", data_root)


def _own(place: Path, contract: Contract, part: str | None, fit: Fit | None) -> LabelledData:
    found = open_labelled(place, contract, part, fit)
    trained = _training_data(contract).get("name")
    if part in (None, "train") and trained and Path(trained).resolve() == Path(found.source).resolve():
        return replace(found, notes=(*found.notes, "the network was trained on most of this data"))
    return found


def _training_data(contract: Contract) -> dict[str, Any]:
    """The data section of the configuration that the network was trained with, as far as the file tells."""
    data: dict[str, Any] = tomllib.loads(contract.provenance.config or "").get("data", {})
    return data


def data_set(name: str, contract: Contract, part: str, root: str | None) -> LabelledData:
    """A part of a data set by name, loaded as in the file's own training where that was on it."""
    from axonnx.train.data.sets.registry import load_data_set

    trained = _training_data(contract)
    own = trained if trained.get("name") == name else {}
    splits = load_data_set(name, root=root or own.get("root"), **own.get("options", {}))
    if part not in splits.parts:
        raise AxonnxError(f"{name}: has no part {part!r}; it has {', '.join(splits.parts)}")
    strangers = [each for each in contract.classes if each not in splits.classes]
    if strangers:
        raise AxonnxError(
            f"{name}: has no class {strangers[0]!r}, which is one of the network's; its classes are "
            f"{', '.join(splits.classes)}"
        )
    data = splits.with_classes([splits.classes.index(each) for each in contract.classes]).parts[part]
    others = len(splits.parts[part]) - len(data)
    notes = (f"{others} samples of classes that the network does not have are left out",) if others else ()
    windows = None if contract.input.binning is None else FirstWindows(contract)

    def some(first: int, last: int) -> Iterator[Batch]:
        return batched(_samples(name, data, contract, windows, range(first, last)))

    return LabelledData(f"{name}, {part} part", lambda: data.digest, len(data), some, windows, notes)


def _samples(
    name: str, data: Data, contract: Contract, windows: FirstWindows | None, numbers: range
) -> Iterator[tuple[NDArray[np.integer], int]]:
    """These samples as the network takes them [T, …], with their labels."""
    from axonnx.train.data.frames import Frames

    for number in numbers:
        label = int(data.labels[number])
        if isinstance(data, Frames) and windows is None:
            yield as_steps(data.frames[number : number + 1], contract.input, name)[0], label
        elif not isinstance(data, Frames) and windows is not None:
            yield windows.frames(Recording(data[number], name, data.sensor), name), label
        else:
            takes = describe_input(contract.input) if windows is None else "events"
            holds = "frames or images" if isinstance(data, Frames) else "events"
            raise AxonnxError(f"{name}: holds {holds}; the network takes {takes}")
