"""Where faults are planted: a small run, its file, and commands in child processes that carry a fault or none.

A part of the audit is a module of this folder whose functions are marked with ``ends``. Each takes a ``Bench``, plants
one thing, and returns how its last command ended:

    @ends(1, "label of sample")
    def labels_shifted_by_one_class(bench: Bench) -> Ended:
        run = bench.train(plant=shift_labels)     # the fault is there while it trains, and nowhere else
        return bench.verify(bench.export(run), run)

The command must end with that code and print that text, which names the place. A function marked ``ends(0, …)`` plants
nothing: it shows that the same command passes where all is well, so that a command that always fails catches nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import torch

from axonnx.cli import main

Plant = Callable[[pytest.MonkeyPatch], None]
SECONDS = 300  # after which a command counts as hung
CRASHED = 70
SMALL = ("--model.hidden", "[24, 16]", "--optimiser.epochs", "1", "--data.bins", "15")
IMAGES = ("--model.hidden", "[24, 16]", "--optimiser.epochs", "1")  # as SMALL, of images
FEW = ("--limit", "40")


class Ended(NamedTuple):
    """How a command ended, and all that it printed."""

    code: int
    text: str


@dataclass(frozen=True)
class Fault:
    """One planted fault: the function that plants it, and what the command must say."""

    part: str
    plant: Callable[[Bench], Ended]
    code: int
    names: str
    quick: bool

    @property
    def name(self) -> str:
        """The fault in words."""
        return self.plant.__name__.replace("_", " ")


@dataclass(frozen=True)
class Found:
    """What became of a fault; ``where`` is the line that names it, or how the command ended instead."""

    fault: Fault
    caught: bool
    where: str


def ends(code: int, names: str, quick: bool = False) -> Callable[[Callable[[Bench], Ended]], Callable[[Bench], Ended]]:
    """Mark a function as a fault whose command ends with ``code`` and prints ``names``.

    Those that are ``quick`` run with every run of the tests.
    """

    def mark(plant: Callable[[Bench], Ended]) -> Callable[[Bench], Ended]:
        vars(plant)["fault"] = Fault(plant.__module__.rpartition(".")[2], plant, code, names, quick)
        return plant

    return mark


def faults_of(part: ModuleType) -> Iterator[Fault]:
    """Yield the faults of a module in the order in which they are written."""
    return (value.fault for value in vars(part).values() if isinstance(getattr(value, "fault", None), Fault))


@dataclass
class Bench:
    """A folder in which one audit works. This process never computes with torch, so that its children may."""

    folder: Path
    _made: dict[str, Path] = field(default_factory=dict)
    _count: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    @cached_property
    def run(self) -> Path:
        """A small run, trained without a fault; every fault works on a copy of it."""
        return self.train()

    @cached_property
    def file(self) -> Path:
        """The file of that run."""
        return self.export(self.run)

    def once(self, name: str, make: Callable[[], Path]) -> Path:
        """What ``make`` returns, made at the first call with this name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def new(self, name: str) -> Path:
        """A path that nobody else uses."""
        return self.folder / f"{next(self._count)}-{name}"

    def copy(self) -> Path:
        """A copy of the run, to be spoiled."""
        return Path(shutil.copytree(self.run, self.new("run")))

    def train(
        self,
        *words: str,
        plant: Plant | None = None,
        configuration: str = "digits-saccade",
        size: tuple[str, ...] = SMALL,
    ) -> Path:
        """Train a small network while ``plant`` is in effect."""
        out = self.new("run")
        self._must("train", configuration, "--out", str(out), "--quiet", *size, *words, plant=plant)
        return out

    def export(self, run: Path, *words: str, plant: Plant | None = None) -> Path:
        """Export a run while ``plant`` is in effect."""
        out = self.new("model.onnx")
        self._must("export", str(run), "-o", str(out), *FEW, "--passes", "2", "--quiet", *words, plant=plant)
        return out

    def verify(self, file: Path, run: Path, *words: str, plant: Plant | None = None) -> Ended:
        """How ``axonnx verify`` of a file against a run ends."""
        return self.axonnx("verify", str(file), "--run", str(run), *FEW, "--quiet", *words, plant=plant)

    def axonnx(self, *words: str, plant: Plant | None = None) -> Ended:
        """How a command ends in a child process in which ``plant`` is in effect."""
        return self.child(lambda: main(list(words)), plant)

    def child(self, act: Callable[[], int], plant: Plant | None = None) -> Ended:
        """How a function ends in a child process; what it returns is the code."""
        output = self.new("output.txt")
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            _in_child(act, plant, output)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return Ended(code, output.read_text("utf-8", "replace"))

    def _must(self, *words: str, plant: Plant | None) -> None:
        done = self.axonnx(*words, plant=plant)
        if done.code != 0:
            raise RuntimeError(f"axonnx {' '.join(words)} ended with {done.code}:\n{done.text}")


def _in_child(act: Callable[[], int], plant: Plant | None, output: Path) -> None:
    code = CRASHED
    try:
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(target, number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")  # pytest's own lead elsewhere
        signal.alarm(SECONDS)
        torch.set_num_threads(1)
        with pytest.MonkeyPatch.context() as patch:
            # What a fault leaves in a cache must not reach another command.
            patch.setenv("XDG_CACHE_HOME", str(output.parent if plant is None else output.with_suffix(".cache")))
            if plant is not None:
                plant(patch)
            with suppress(SystemExit):  # argparse
                code = act()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def tried(fault: Fault, bench: Bench) -> Found:
    """Plant a fault and look how its command ends."""
    try:
        ended = fault.plant(bench)
    except RuntimeError as refused:
        return Found(fault, False, f"could not be planted: {refused}")
    line = next((line.strip() for line in ended.text.splitlines() if fault.names in line), None)
    if ended.code == fault.code and line is not None:
        return Found(fault, True, line)
    last = (ended.text.strip().splitlines() or [""])[-1]
    return Found(fault, False, f"exit {ended.code}, expected {fault.code} and {fault.names!r}; last line: {last}")
