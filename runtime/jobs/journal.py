"""Keep results on disk while jobs run, so that an interrupted run can continue.

A journal is a file of lines. The first line describes the work, every other line is the result of a job. One process
writes it. A line that a killed process left incomplete is dropped. Failures are not kept, so they are tried again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from axonnx.base.errors import AxonnxError
from axonnx.base.files import try_lock
from axonnx.runtime.jobs.work import Outcome


class Journal:
    """The journal of a run of jobs.

    Args:
        path: File of the journal.
        about: Description of the work; a journal of other work is refused.

    Attributes:
        done: Results of earlier processes, by the name of the job.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        self.path, self.about = Path(path), json.dumps({"journal": 1, **about}, sort_keys=True)
        self.done: dict[str, Outcome] = {}

    def __enter__(self) -> Self:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not try_lock(self._descriptor):
                raise AxonnxError(f"{self.path}: another process is doing this work; wait until it ends, or stop it")
            self._take_up()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def add(self, outcome: Outcome) -> None:
        """Keep a result; failures are not kept."""
        if outcome.text is not None:
            _write(self._descriptor, f'{{"job": {json.dumps(outcome.name)}, "result": {outcome.text}}}\n')

    def remove(self) -> None:
        """Delete the journal after the results were saved elsewhere."""
        self.path.unlink(missing_ok=True)

    def _take_up(self) -> None:
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = whole.decode("utf-8", "replace").splitlines() or [""]
        if whole and head != self.about:
            raise AxonnxError(
                f"{self.path}: holds results of other work (another model, other data or options); continue with "
                f"those, "
                f"give another file, or delete this one"
            )
        self.done = {outcome.name: outcome for outcome in (_outcome(self.path, line) for line in lines)}
        os.ftruncate(self._descriptor, len(whole))
        os.lseek(self._descriptor, 0, os.SEEK_END)
        if not whole:
            _write(self._descriptor, f"{self.about}\n")


def _outcome(path: Path, line: str) -> Outcome:
    try:
        entry = json.loads(line)
        return Outcome(str(entry["job"]), json.dumps(entry["result"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise AxonnxError(
            f"{path}: {line[:60]!r} is not a line of a journal; delete the file and start again"
        ) from None


def _write(descriptor: int, line: str) -> None:
    data = line.encode()
    while data:
        data = data[os.write(descriptor, data) :]
