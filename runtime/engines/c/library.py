"""The compiled loop: our C in one text, with the columns of the table as constants.

Networks are data to it (a table that ``table.bounds`` has checked): no name or number of a file is ever compiled. Three
switches leave out what a network has no use for (convolutions, integer weights), so that the first decision on a new
machine waits for less; a second network of the same kind asks nothing of the compiler.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from axonnx.base.c_compiler import load_library
from axonnx.runtime.code.c.source import library as generated
from axonnx.runtime.code.c.text import doubles
from axonnx.runtime.engines.c.order import CHAIN
from axonnx.runtime.engines.reference.normal_table import coefficients
from axonnx.runtime.engines.table import rows as kinds
from axonnx.runtime.engines.table.narrow import BYTES, SHORTS, Narrow
from axonnx.runtime.program.instructions import Conv, Program

PARTS = ("lists.c", "synapses.c", "neurons.c", "layers.c", "plain.c", "conv.c", "run.c")
CODES = {code: name for name, code in vars(kinds).items() if name in kinds.CODES}
POINTERS = ("table", "order", "memory", "constants", "events", "bits", "shorts", "bytes", "tables", "groups")
NUMBERS = ("rows", "turns", "parts", "at_start", "kept", "entering", "traced", "scale", "largest", "layered")


class CProgram(ctypes.Structure):
    """``program`` of run.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in NUMBERS),
    ]


class Needs(NamedTuple):
    """What a network has; the rest is not compiled."""

    convolutions: bool
    shorts: bool
    bytes: bool

    @classmethod
    def of(cls, program: Program, weights: Mapping[str, Narrow]) -> Needs:
        """Of a network with these integer weights."""
        stored = {narrow.stored for narrow in weights.values()}
        return cls(any(isinstance(i, Conv) for i in program.instructions), SHORTS in stored, BYTES in stored)

    def flags(self) -> tuple[str, ...]:
        """For the compiler."""
        return tuple(f"-DUSES_{name.upper()}={int(value)}" for name, value in self._asdict().items())


@cache
def compiled(needs: Needs, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """The library, compiled now or found compiled. ``flags`` take something away from what the processor can do."""
    library = load_library(source(), (*needs.flags(), *flags))
    library.axonnx_run.restype = library.axonnx_widest.restype = ctypes.c_int64
    library.axonnx_run.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 6
    return library


@cache
def compiled_noise() -> ctypes.CDLL:
    """The noise of stochastic networks, by itself."""
    here = resources.files("axonnx.runtime.engines.c")
    parts = [doubles("NORMAL", coefficients()), generated("noise.c"), here.joinpath("normals.c").read_text("utf-8")]
    library = load_library("\n".join(["#include <stdint.h>", *parts]))
    sizes = [ctypes.c_int64] * 3
    library.axonnx_normals.restype = None
    library.axonnx_normals.argtypes = [
        ctypes.c_void_p, *sizes, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
    ]  # fmt: skip
    return library


def source() -> str:
    """All of it as one text."""
    here = resources.files("axonnx.runtime.engines.c")
    texts = [here.joinpath(name).read_text("utf-8") for name in ("vectors.h", *PARTS)]
    return "\n".join([texts[0], constants(), *texts[1:]])


def constants() -> str:
    """Codes of rows and the columns of each kind: LINEAR, LINEAR_weights, …"""
    codes = ", ".join(f"{name} = {code}" for code, name in sorted(CODES.items()))
    lines = [f"enum {{ {codes}, COLUMNS = {kinds.COLUMNS}, CHAIN = {CHAIN} }};"]
    for kind in sorted(set(kinds.KINDS.values()), key=lambda kind: kind.__name__):
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper()
        lines.append(f"enum {{ {', '.join(f'{prefix}_{name} = {n}' for n, name in enumerate(kind._fields))} }};")
    return "\n".join(lines)
