"""Faults of compiled code: of the programs that ``axonnx compile`` writes for other machines.

To add one, write a function that takes the bench, plants one thing, and returns how its last command ended; mark it
with ``ends(code, text)``, where ``text`` names the place. ``compiled(bench, "js", plant=…)`` compiles the bench's file
in a child process in which ``plant`` is in effect, and returns the folder. ``verified(bench, "js", ("network.js", old,
new))`` compiles it, edits the folder, and returns how ``axonnx verify --compiled`` ends. Mark it ``quick`` where it
takes two seconds at most, and write a control (``ends(0, …)``) for each new kind of command.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from axonnx import compiling
from axonnx.runtime.codegen.c import literals
from tests.faults.bench import Bench, Ended, Plant, ends

# A file, a pattern of what stands in it, and what is written there instead.
Edit = tuple[str, str, str | Callable[[re.Match[str]], str]]


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


def verified(bench: Bench, target: str, *edits: Edit, plant: Plant | None = None) -> Ended:
    """How a verification of compiled code ends, after it was compiled with a fault or edited."""
    folder, made = compiled(bench, target, plant=plant)
    if made.code:
        raise RuntimeError(made.text)
    for name, old, new in edits:
        text, count = re.subn(old, new, (folder / name).read_text("utf-8"), count=1)
        if not count:
            raise RuntimeError(f"{name} does not hold {old!r}")
        (folder / name).write_text(text, "utf-8")
    return bench.axonnx("verify", str(bench.file), "--compiled", str(folder), "--quiet")


@ends(0, "compiled code is equal", quick=True)
def javascript_without_a_fault(bench: Bench) -> Ended:
    """The control of the faults in JavaScript."""
    return verified(bench, "js")


@ends(0, "compiled code is equal")
def c_without_a_fault(bench: Bench) -> Ended:
    """The control of the faults in C."""
    return verified(bench, "c")


@ends(0, "compiled code is equal")
def firmware_without_a_fault(bench: Bench) -> Ended:
    """The control of the faults in firmware."""
    return verified(bench, "cortex-m")


@ends(1, "js, node, every spike: layer 'hidden.", quick=True)
def javascript_weights_one_per_cent_larger(bench: Bench) -> Ended:
    """Every constant is multiplied when the module is loaded."""
    return verified(bench, "js", ("network.js", r"value \* unit\)", "value * unit * 1.01)"))


@ends(1, "the membrane is 0 from its threshold", quick=True)
def a_javascript_neuron_that_stays_silent_on_a_tie(bench: Bench) -> Ended:
    """The self-test never meets a tie; crafted input does."""
    return verified(bench, "js", ("network.js", "next_membrane >= threshold", "next_membrane > threshold"))


@ends(1, "window 1 of generated input 'many, ", quick=True)
def a_javascript_stream_that_never_resets(bench: Bench) -> Ended:
    """The second window begins with the state of the first."""
    return verified(bench, "js", ("network.js", "if \\(bin % bins === 0\\)", "if (bin === 0)"))


@ends(1, "js, node, as it ships: the program fails (exit 1): the self-test failed", quick=True)
def another_self_test_vector(bench: Bench) -> Ended:
    """All bits are right, but the device would refuse to work."""
    return verified(bench, "js", ("network.js", "SELFTEST_SUM = ", "SELFTEST_SUM = 1 + "))


@ends(1, "layer 'hidden.", quick=True)
def another_network_with_a_self_test_of_its_own(bench: Bench) -> Ended:
    """Code and self-test agree with each other, not with the file."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = compiling.compile_program

        def halved(file):
            program = original(file)
            decays = {name: values / 2 for name, values in program.constants.items() if name.endswith("decay")}
            return replace(program, constants={**program.constants, **decays})

        patch.setattr(compiling, "compile_program", halved)

    return verified(bench, "js", plant=plant)


@ends(1, "c, this machine, every spike: layer '")
def constants_in_half_precision(bench: Bench) -> Ended:
    """Decays and biases are rounded to float16 on their way into the source."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        number = literals.number
        patch.setattr(literals, "number", lambda value: number(float(np.clip(np.float16(value), -6e4, 6e4))))

    return verified(bench, "c", plant=plant)


@ends(1, "it says '")
def a_reversed_list_of_labels(bench: Bench) -> Ended:
    """Every logit is right and every name is wrong."""
    names = [f'    "{digit}",\n' for digit in range(10)]
    return verified(bench, "c", ("network.c", "".join(names), "".join(reversed(names))))


@ends(1, "layer 'hidden.")
def bins_700_microseconds_short(bench: Bench) -> Ended:
    """Events at the end of a bin come into the next one."""

    def shorter(found: re.Match[str]) -> str:
        return f"BIN_US INT64_C({int(found[1]) - 700})"

    return verified(bench, "c", ("network.h", r"BIN_US INT64_C\((\d+)\)", shorter))


@ends(1, "its membranes have other bits, although every spike is equal")
def one_weight_one_unit_larger(bench: Bench) -> Ended:
    """No spike and no logit depends on it; the sum of the membranes' bits does."""
    pattern = r"(WEIGHTS ALIGNED = \{\s*\{\s*)(-?\d+)"
    return verified(bench, "c", ("network_weights.h", pattern, lambda found: f"{found[1]}{int(found[2]) + 1}"))


@ends(1, "the membrane is 0 from its threshold")
def a_neuron_in_c_that_stays_silent_on_a_tie(bench: Bench) -> Ended:
    """In every instruction set."""
    return verified(bench, "c", ("network_core.c", "a, >=, b, _CMP_GE_OQ", "a, >, b, _CMP_GT_OQ"))


@ends(1, "window 1 of generated input 'many, ")
def a_stream_in_firmware_that_never_resets(bench: Bench) -> Ended:
    """The second window begins with the state of the first."""
    return verified(bench, "cortex-m", ("network.c", r"if \(s->bin % NETWORK_STEPS == 0\)", "if (s->bin == 0)"))


@ends(1, "layer 'hidden.")
def firmware_that_crops_one_column_too_far_left(bench: Bench) -> Ended:
    """The region of the sensor begins at another column."""
    return verified(bench, "cortex-m", ("network.h", "REGION_LEFT 0", "REGION_LEFT 1"))


@ends(1, "cortex-m, Cortex-M4 in qemu, as it ships: the program cannot be built")
def firmware_that_no_compiler_takes(bench: Bench) -> Ended:
    """The program around the network ends in the middle of a line."""
    return verified(bench, "cortex-m", ("main.c", "return worst;", "return wor"))


@ends(1, "compiled from a file with the sha256", quick=True)
def the_folder_of_another_file(bench: Bench) -> Ended:
    """It is refused even if its code does the same."""
    return verified(bench, "js", ("compiled.json", '"sha256": "[0-9a-f]{8}', '"sha256": "00000000'))


@ends(2, "compiled.json", quick=True)
def a_folder_of_something_else(bench: Bench) -> Ended:
    """A run folder is not a folder of compiled code."""
    return bench.axonnx("verify", str(bench.file), "--compiled", str(bench.run))
