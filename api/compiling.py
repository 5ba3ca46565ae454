"""``compile_to``: a file as a folder of source code that needs neither Python nor us to run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, get_args

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of, write_folder
from axonnx.model import Target
from axonnx.runtime.deploy.fpga import up5k_files, verilog_files
from axonnx.runtime.deploy.native import browser_files, cortex_m_files, desktop_files
from axonnx.runtime.deploy.origin import RECORD, Origin
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.measure.compiled import selftest_sum
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.report.panel import try_page


def _with_page(program: Program, origin: Origin) -> dict[str, str]:
    page = {} if program.contract.units is not None else {"index.html": try_page(program)}  # which draws probabilities
    return {**page, **browser_files(program, origin)}


TARGETS: dict[Target, Callable[[Program, Origin], dict[str, str]]] = {
    "c": desktop_files,
    "js": _with_page,
    "cortex-m": cortex_m_files,
    "verilog": verilog_files,
    "up5k": up5k_files,
}
assert set(get_args(Target)) == set(TARGETS)


class Compiled(NamedTuple):
    """A folder, and the bytes of its files by name."""

    folder: Path
    files: dict[str, int]


def compile_to(model: str | os.PathLike[str], output: str | os.PathLike[str], target: Target = "c") -> Compiled:
    """Write a file's network as source code into the folder ``output``, whole or not at all.

    ``c`` is C99 for any compiler, ``js`` a module for browsers and node, ``cortex-m`` firmware that qemu runs,
    ``verilog`` a design for FPGAs, ``up5k`` the same for an iCE40 UP5K. An earlier folder of this function is replaced,
    any other refused.
    """
    if target not in TARGETS:
        raise AxonnxError(f"target {target!r}; expected one of {', '.join(TARGETS)}")
    program = compile_program(read_model_file(model))
    files = TARGETS[target](program, Origin(sha256_of(Path(model)), target, selftest_sum(program)))
    folder = write_folder(output, files, mark=RECORD)
    return Compiled(folder, {name: (folder / name).stat().st_size for name in files})
