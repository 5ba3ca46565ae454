"""Classify the recordings of one file as a job, and summarise the answers of many jobs."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.choose import EngineName
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.frame_pipeline import FramePipeline
from axonnx.runtime.jobs.work import FileTask, Job, check_submitted
from axonnx.runtime.measure.metrics import value_metrics, wilson_interval
from axonnx.runtime.measure.samples import numbers_of, true_values
from axonnx.runtime.model import Model, load
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.runtime.readers.formats import SUFFIXES, is_meant_as_recording
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.frame_files import read_frames, read_labels
from axonnx.runtime.streams.opening import open_stream
from axonnx.runtime.streams.reorder import OnDisorder
from axonnx.runtime.streams.sources import FileSource

Row = dict[str, Any]


@dataclass(frozen=True)
class Question(FileTask):
    """Which network classifies, and how recordings are mapped to its input; ``data`` is the base of relative paths."""

    data: str = "."
    engine: EngineName = "auto"
    format: str | None = None
    fit: Fit = field(default_factory=Fit)
    tolerance_us: int = 0
    on_disorder: OnDisorder | Literal["sort"] | None = None
    stop_at: float | None = None
    origin: int | Literal["first"] | None = None
    max_events: int | None = None


@dataclass
class Summary:
    """Counts of answers, of correct ones if the truth is known, and of failures. The order does not matter.

    Of a network that gives real values, pairs of what was found and what is true take the place of labels.
    """

    recordings: int = 0
    events: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    labelled: int = 0
    right: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    pairs: list[tuple[list[float], list[float]]] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Add one answer."""
        self.recordings += 1
        self.events += row.get("events", 0)
        self.left_out.update(row.get("left_out", {}))
        if "values" in row:
            self.units = dict(zip(row["values"], row["units"], strict=True))
            if row["true"] is not None:
                self.pairs.append((list(row["values"].values()), list(row["true"].values())))
            return
        self.labels[row["label"]] += 1
        if row["true"] is not None:
            self.labelled += 1
            self.right += row["true"] == row["label"]

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for JSON; accuracy is None if no truth is known."""
        known = self.labelled > 0
        common = {
            "recordings": self.recordings,
            "failed": self.failed,
            "events": self.events,
            "left_out": dict(sorted(self.left_out.items())),
        }
        if self.units:
            pairs = np.array(sorted(self.pairs), np.float64)  # so that the bootstrap does not depend on the order
            errors = value_metrics(pairs[:, 0], pairs[:, 1]).as_dict() if len(pairs) else None
            return {**common, "units": self.units, "errors": errors}
        return {
            **common,
            "labels": dict(sorted(self.labels.items())),
            "labelled": self.labelled,
            "right": self.right,
            "accuracy": self.right / self.labelled if known else None,
            "accuracy_interval": list(wilson_interval(self.right, self.labelled)) if known else None,
        }


def jobs_for(question: Question, files: Sequence[Path]) -> list[Job]:
    """Return one job for each file."""
    return [Job(str(path), answer, (question, str(path))) for path in files]


def answer(question: Question, path: str) -> list[Row]:
    """Return one row for each recording (or sample of frames) in the file, with one answer as in training."""
    place = str(Path(question.data, question.model))
    model = loaded(place, question.sha256, question.engine, question.threads)
    if model.contract.input.binning is None:
        return list(_frames(model, question, path))
    recordings = read_recordings(Path(question.data, path), format=question.format)
    if not recordings:
        raise AxonnxError(f"{path}: holds no recording; expected at least one")
    return [_row(model, question, path, number, recordings) for number in range(len(recordings))]


@lru_cache(maxsize=2)
def loaded(model: str, sha256: str, engine: EngineName, threads: int) -> Model:
    """Load the network once in each process; on another machine the file must have the same contents."""
    check_submitted(model, sha256)
    return load(model, engine, threads)


def _row(model: Model, question: Question, path: str, number: int, recordings: Sequence[Recording]) -> Row:
    recording = recordings[number]
    run = open_stream(
        model.engine,
        FileSource(path, recording),
        fit=question.fit,
        tolerance_us=question.tolerance_us,
        on_disorder=question.on_disorder,
        stop_at=question.stop_at,
        origin=question.origin,
        max_events=question.max_events,
        seed=question.seed,
    )
    *_, decision = run.decisions()
    return {
        **_named(path, number, len(recordings)),
        "true": _true(str(Path(question.data, path)), recording.label, model.contract),
        **decision.as_dict(),
        "events": run.read,
        "left_out": run.dropped(),
    }


def _frames(model: Model, question: Question, path: str) -> Iterator[Row]:
    place = str(Path(question.data, path))
    samples = read_frames(place, model.contract.input)
    contract = model.contract
    if contract.units is not None:
        truth = true_values(place, len(samples), contract) if path.endswith(".npz") else None
        for number, decision in enumerate(FramePipeline(model.engine, samples, seed=question.seed).decisions()):
            true = _true(place, None, contract) if truth is None else _named_values(truth[number], contract)
            yield {**_named(path, number, len(samples)), "true": true, **decision.as_dict()}
        return
    labels = read_labels(place, len(samples), len(contract.classes)) if path.endswith(".npz") else None
    for number, decision in enumerate(FramePipeline(model.engine, samples, seed=question.seed).decisions()):
        true = _true(place, None if labels is None else int(labels[number]), contract)
        yield {**_named(path, number, len(samples)), "true": true, **decision.as_dict()}


def _named(path: str, number: int, count: int) -> Row:
    return {"recording": path} if count == 1 else {"recording": path, "index": number}


def _true(path: str, label: int | None, contract: Contract) -> str | dict[str, float] | None:
    """Return the class, or the real values, that the file states or its folder is named after; None if unknown."""
    classes = contract.classes
    if contract.units is not None:
        numbers = numbers_of(Path(path).absolute().parent.name)
        return _named_values(numbers, contract) if len(numbers) == len(classes) else None
    if label is not None and 0 <= label < len(classes):
        return classes[label]
    folder = Path(path).absolute().parent.name
    return folder if folder in classes else None


def _named_values(values: Iterable[float], contract: Contract) -> dict[str, float]:
    return dict(zip(contract.classes, map(float, values), strict=True))


def names_many(sources: Sequence[str]) -> bool:
    """Return whether the sources may be several files: a folder, a glob, ``@`` and a list's name, or several names."""
    return len(sources) > 1 or any(_is_list(text) or _is_glob(text) or Path(text).is_dir() for text in sources)


def find_recordings(sources: Iterable[str]) -> list[Path]:
    """Return the files of all sources, each once; the files of a folder or glob are sorted by name.

    Raises:
        AxonnxError: If a source holds or matches no recording.
    """
    return list(dict.fromkeys(path for text in sources for path in _files(text)))


def _files(text: str) -> Iterator[Path]:
    if _is_list(text):
        for line in _lines(Path(text[1:])):
            yield from _files(line)
        return
    path = Path(text)
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if _is_recording(each, path))
    elif _is_glob(text):
        found = sorted(Path(each) for each in glob.glob(text, recursive=True) if Path(each).is_file())
    else:
        found = [path]  # the reader reports a missing file by name
    if not found:
        what = "matches no file" if _is_glob(text) else f"holds no recording ({' '.join(sorted(SUFFIXES))})"
        raise AxonnxError(
            f"{text}: {what}; expected a folder of recordings, a glob such as 'data/**/*.npz', or @list.txt"
        )
    yield from found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read as a list of recordings: {fault}") from None
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _is_list(text: str) -> bool:
    return text.startswith("@") and not Path(text).exists()


def _is_glob(text: str) -> bool:
    return glob.has_magic(text) and not Path(text).exists()


def _is_recording(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and is_meant_as_recording(path)
