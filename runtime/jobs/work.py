"""The types of jobs and outcomes: a job has a name, and its result is JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.runtime.streams.adapt import Fit

_ONE_AT_A_TIME = threading.Lock()


class Job(NamedTuple):
    """One independent piece of work. ``function`` is a function of a module, ``arguments`` are plain values."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class FileTask:
    """What a worker does with a file: on which data, with which engine. Workers may stand on another machine.

    Attributes:
        model: The file.
        sha256: Its digest when the task was submitted.
        data: A path, the name of a data set, or a run folder.
        part: The part of the data.
        fit: How recordings come onto the network's sensor.
        engine: The engine that runs the file.
        threads: The engine's threads.
        seed: The seed of noise.
    """

    model: str
    sha256: str
    data: str = ""
    part: str | None = None
    fit: Fit | None = None
    engine: str = "auto"
    threads: int = 1
    seed: int = 0

    def check(self) -> None:
        """Refuse another file than the one that the task was submitted with."""
        check_submitted(self.model, self.sha256)


@dataclass(frozen=True)
class Outcome:
    """A job's result as JSON, or the reason for its failure."""

    name: str
    text: str | None = None
    fault: str | None = None

    @property
    def value(self) -> Any:
        """The result; the text gives the same value on every machine."""
        assert self.text is not None, f"{self.name} has no result: {self.fault}"
        return json.loads(self.text)


class Pool(Protocol):
    """Runs jobs. A job that fails, or whose process dies, has an outcome with a fault."""

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Yield one outcome for each job as it arrives."""
        ...


class SerialPool:
    """Runs one job after the other in this process."""

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Yield the outcomes in the order of the jobs."""
        return map(attempt, jobs)


def named_fault(name: str, fault: str) -> str:
    """Put the name of the job before its fault, unless the fault begins with the name."""
    return fault if fault.startswith(name) else f"{name}: {fault}"


def check_submitted(path: str, sha256: str) -> None:
    """Refuse a file that differs from the submitted one, because a worker may be on another machine."""
    if sha256_of(path) != sha256:
        raise AxonnxError(f"{path}: sha256 differs from the submitted file; copy that file to this worker")


def attempt(job: Job) -> Outcome:
    """Run a job and turn its exceptions into an outcome, so that no exception has to cross process boundaries."""
    try:
        return Outcome(job.name, json.dumps(job.function(*job.arguments)))
    except AxonnxError as fault:
        return Outcome(job.name, fault=str(fault))
    except Exception as fault:
        return Outcome(job.name, fault=f"{type(fault).__name__}: {fault}")


def attempt_alone(job: Job) -> Outcome:
    """Run a job alone in its process, because torch's random numbers and an engine's buffers are shared by threads."""
    with _ONE_AT_A_TIME:
        return attempt(job)
