"""Faults of compiled code: of the programs that ``axonnx compile`` writes for other machines.

To add one, write a function that takes the bench, plants one thing, and returns how its last command ended; mark it
with ``ends(code, text)``, where ``text`` names the place. ``compiled(bench, "js", plant=…)`` compiles the bench's file
in a child process in which ``plant`` is in effect, and returns the folder; a fault may edit a file of that folder too.
Then ``bench.axonnx("verify", …)`` must end with 1. Mark it ``quick`` where it takes two seconds at most, and write
a control (``ends(0, …)``) for each new kind of command.
"""

from __future__ import annotations

from pathlib import Path

from tests.faults.bench import Bench, Ended, Plant, ends


def compiled(bench: Bench, target: str, file: Path | None = None, plant: Plant | None = None) -> tuple[Path, Ended]:
    """The folder with the code of a file for ``target``, and how the command ended."""
    folder = bench.new(target)
    words = ("compile", str(file or bench.file), "-o", str(folder), "--target", target)
    return folder, bench.axonnx(*words, plant=plant)


@ends(0, "wrote", quick=True)
def a_file_compiled_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault of compiled code."""
    return compiled(bench, "js")[1]


@ends(2, "damaged.onnx", quick=True)
def half_a_file_compiled(bench: Bench) -> Ended:
    """A file that was cut off is refused before any code is written."""
    damaged = bench.new("damaged.onnx")
    damaged.write_bytes(bench.file.read_bytes()[:5000])
    return compiled(bench, "js", damaged)[1]
