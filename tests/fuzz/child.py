"""A child process that takes one case after the other, and is replaced when it dies, hangs or has a finding."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.fuzz.working import work

FOLDER = "AXONNX_FUZZ_FOLDER"
ROOT = Path(__file__).parents[2]
START_SECONDS = 600  # a first start may compile kernels and export networks
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Limits:
    """Of one case: seconds of work or of waiting, and bytes beyond what the child has after its setup."""

    seconds: float = 30.0
    memory: int = 2 << 30


@dataclass(frozen=True)
class Report:
    """What became of a case: accepted, refused, or a kind of finding with what was seen."""

    module: str
    seed: int
    kind: str
    text: str = ""


def _answers(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether an answer comes before so many seconds of processor time, or of waiting for nothing, are over.

    The clock alone says little: where others keep the machine busy, a healthy case takes as long as they like.
    """
    began = before = None
    waited = 0.0
    while not select.select([process.stdout], [], [], POLL_SECONDS)[0]:
        now = work(process.pid)
        began = began or now
        waited = waited + POLL_SECONDS if now.asleep and now == before else 0.0
        if now.seconds - began.seconds > seconds or waited > seconds:
            return False
        before = now
    return True


class Child:
    """The process behind a campaign, started when it is needed."""

    def __init__(self, module: str, folder: str, limits: Limits) -> None:
        self.module, self.folder, self.limits = module, folder, limits
        self._process: subprocess.Popen[bytes] | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._said.close()

    def case(self, seed: int) -> Report:
        """Run one case to its end, whatever that is."""
        answer = self._ask(f"case {seed}", self.limits.seconds)
        if answer is None:
            return self._lost(seed)
        report = Report(self.module, seed, *answer)
        if report.kind not in ("accepted", "refused"):
            self._stop()  # memory that was asked for, or a state left behind, must not touch the next case
        return report

    def material(self, seed: int) -> bytes | None:
        """The damaged input of a case; None where the campaign has none to show."""
        answer = self._ask(f"material {seed}", self.limits.seconds)
        path = Path(self.folder) / "material"
        if answer is None or answer[0] != "material":
            self._stop()
            return None
        return path.read_bytes()

    def _ask(self, line: str, seconds: float) -> tuple[str, str] | None:
        process = self._process or self._start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        return self._answer(process, seconds)

    def _answer(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[str, str] | None:
        assert process.stdout is not None
        line = process.stdout.readline() if _answers(process, seconds) else b""
        if not line.endswith(b"\n"):
            return None
        kind, text = json.loads(line)
        return kind, text

    def _lost(self, seed: int) -> Report:
        """A child without an answer hangs, or is dead."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler shows where it was
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            kind = f"no answer after {self.limits.seconds:g} s"
            self._stop()
            return Report(self.module, seed, "hang", f"{kind}\n{self._errors()}")
        self._stop()
        ended = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return Report(self.module, seed, "crash", f"{ended}\n{self._errors()}")

    def _errors(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")[-4000:]

    def _start(self) -> subprocess.Popen[bytes]:
        self._said.seek(0)
        self._said.truncate()
        command = [sys.executable, "-m", "tests.fuzz.serve", self.module, str(self.limits.memory)]
        environment = {**os.environ, FOLDER: self.folder, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
        )
        if self._answer(self._process, START_SECONDS) != ("ready", ""):
            self._stop()
            raise RuntimeError(f"campaign {self.module} does not start:\n{self._errors()}")
        return self._process

    def _stop(self) -> None:
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.kill()
        self._process.wait()
        self._process = None
