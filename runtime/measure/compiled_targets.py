"""Build and run compiled code as its folder has it: on this machine, in node, and in emulators of other processors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.layout import LANES
from axonnx.runtime.deploy.origin import RECORD

SECONDS = 240  # after which a build or a run counts as hung
ALL_WINDOWS = "-" * 2 + "windows"  # an option of compiled programs, not of axonnx
KEEP = "AXONNX_KEEP_LAYERS"  # with it a program prints its spikes, and goes on after a failed self-test
BUILT = ("network", "network.exe", "firmware.elf", "*.o")
AT_ONCE = 8  # recordings in one emulator, whose command line is short
PACKAGES = {
    "make": "apt-get install make",
    "cc": "apt-get install gcc",
    "node": "apt-get install nodejs",
    "arm-none-eabi-gcc": "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "qemu-system-arm": "apt-get install qemu-system-arm",
    "g++": "apt-get install g++",
}


class BrokenCodeError(Exception):
    """A compiled program cannot be built, or does not run; the text says how."""


@dataclass(frozen=True)
class Runner:
    """A way to build and to run the code of a folder.

    Attributes:
        name: For people.
        make: Arguments of make; none if nothing is built.
        run: The command, in front of the names of recordings.
        at_once: Recordings that one process takes.
        padding: What layers are padded to in memory; None if they are not C.
        tools: Programs that it needs.
        trace_flag: Argument of make that keeps the layers; {} stands for the macro.
        ships: Whether the program as it ships runs too; elsewhere the spikes say enough.
        firmware: Whether make also runs the program, with all recordings in one argument.
    """

    name: str
    make: tuple[str, ...]
    run: tuple[str, ...]
    at_once: int
    padding: int | None
    tools: tuple[str, ...]
    trace_flag: str = ""
    ships: bool = True
    firmware: bool = False


def runners_of(target: str) -> list[Runner]:
    """Return all ways to run a target's code; those after the first are left out where their tools are missing."""
    if target == "js":
        return [Runner("node", (), ("node", "run.mjs"), 1, None, ("node",))]
    if target == "cortex-m":
        tools = ("make", "arm-none-eabi-gcc", "qemu-system-arm")
        return [Runner("Cortex-M4 in qemu", (), (), AT_ONCE, 1, tools, "GCC=arm-none-eabi-gcc -D{}", firmware=True)]
    if target in ("verilog", "up5k"):
        return [
            Runner(
                "Verilator", (), ("./network",), 64, None, ("make", "verilator", "g++"), "CFLAGS=-O2 -D{}", ships=False
            )
        ]
    compiler = os.environ.get("CC", "cc").split()
    flag = "CFLAGS=-O2 -D{}"
    here = Runner("this machine", (f"CC={' '.join(compiler)}",), ("./network",), 64, LANES, ("make", compiler[0]), flag)
    return [here, *(_emulated(name, compiler) for name, compiler in _OTHERS.items())]


_OTHERS = {"aarch64": "aarch64-linux-gnu", "s390x": "s390x-linux-gnu"}


def _emulated(processor: str, triple: str) -> Runner:
    emulator = (f"qemu-{processor}", "-L", f"/usr/{triple}")
    make = (f"CC={triple}-gcc", f"EMULATOR={' '.join(emulator)}")
    tools = ("make", f"{triple}-gcc", emulator[0])
    return Runner(
        f"{processor} in qemu", make, (*emulator, "./network"), 64, LANES, tools, "CFLAGS=-O2 -D{}", ships=False
    )


def missing(runner: Runner) -> list[str]:
    """Return the tools that are not installed here."""
    return [tool for tool in runner.tools if shutil.which(tool) is None]


def refuse_missing(runner: Runner, target: str) -> None:
    """Name the tools that a target needs and that are not installed."""
    absent = missing(runner)
    if absent:
        hints = ", ".join(dict.fromkeys(PACKAGES.get(tool, f"apt-get install {tool}") for tool in absent))
        raise AxonnxError(f"{', '.join(absent)}: not installed here, and code for {target!r} is run with it; {hints}")


def read_record(folder: Path) -> dict[str, str]:
    """Return what a folder of compiled code says of its origin."""
    try:
        found = json.loads((folder / RECORD).read_text("utf-8"))
        return {key: str(found[key]) for key in ("file", "sha256", "target")}
    except (OSError, ValueError, KeyError, TypeError):
        raise AxonnxError(
            f"{folder}: is not a folder of compiled code; expected {RECORD} in it, as axonnx compile writes it"
        ) from None


class BuiltCode:
    """A copy of a folder's code, built; ``traced`` says whether it prints spikes."""

    def __init__(self, runner: Runner, folder: Path, place: Path, traced: bool) -> None:
        self.runner, self.place, self.traced = runner, place, traced
        shutil.copytree(folder, place, ignore=shutil.ignore_patterns(*BUILT))
        if "make" in runner.tools:
            self._called(self._make(), "cannot be built")

    def run(self, texts: Sequence[str], all_windows: bool) -> list[str]:
        """Return what the program prints on some recordings, in one text for each process."""
        names = [f"{number}.csv" for number in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            (self.place / name).write_text(text, "utf-8")
        words = [ALL_WINDOWS] if all_windows else []
        step = self.runner.at_once
        return [self._run([*words, *names[at : at + step]]) for at in range(0, len(names), step)]

    def _run(self, words: list[str]) -> str:
        if self.runner.firmware:
            return self._called([*self._make(), "run", f"RECORDINGS={' '.join(words)}"], "fails")
        return self._called([*self.runner.run, *words], "fails")

    def _make(self) -> list[str]:
        flags = [self.runner.trace_flag.format(KEEP)] if self.traced else []
        return ["make", "-s", *self.runner.make, *flags]

    def _called(self, command: list[str], what: str) -> str:
        kept = {KEEP: "1"} if self.traced else {}
        env = {key: value for key, value in os.environ.items() if key not in (KEEP, "MAKEFLAGS", "CFLAGS")} | kept
        try:
            done = subprocess.run(
                command, cwd=self.place, env=env, capture_output=True, timeout=SECONDS, check=False, errors="replace"
            )
        except subprocess.TimeoutExpired:
            raise BrokenCodeError(f"{what}: it does not end within {SECONDS} s") from None
        if done.returncode != 0:
            said = [line for line in (done.stderr or done.stdout).splitlines() if not line.startswith("make")]
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
            raise BrokenCodeError(f"{what} ({how}): {said[0] if said else 'it says nothing'}")
        return done.stdout
