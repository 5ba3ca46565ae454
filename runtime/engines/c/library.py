"""The compiled loop: our C in one text, with the columns of the table as constants, compiled once for all networks.

Networks are data to it (a table that ``table.bounds`` has checked), so a new one asks nothing of the compiler, and no
name or number of a file is ever compiled.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from axonnx.base.c_compiler import load_library
from axonnx.runtime.code.c.source import library as generated
from axonnx.runtime.code.c.text import doubles
from axonnx.runtime.engines.c.order import CHAIN
from axonnx.runtime.engines.reference.normal_table import coefficients
from axonnx.runtime.engines.table import rows as kinds

PARTS = ("lists.c", "synapses.c", "neurons.c", "layers.c", "plain.c", "conv.c", "run.c")
CODES = {code: name for name, code in vars(kinds).items() if name in kinds.CODES}
POINTERS = ("table", "order", "memory", "constants", "events", "bits", "tables", "groups")
NUMBERS = ("rows", "turns", "parts", "at_start", "kept", "entering", "traced", "scale", "largest")


class CProgram(ctypes.Structure):
    """``program`` of run.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in NUMBERS),
    ]


@cache
def compiled(flags: Sequence[str] = ()) -> ctypes.CDLL:
    """The library, compiled now or found compiled. ``flags`` take something away from what the processor can do."""
    library = load_library(source(), flags)
    library.axonnx_run.restype = library.axonnx_widest.restype = ctypes.c_int64
    library.axonnx_run.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 6
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
    noise = [doubles("NORMAL", coefficients()), generated("noise.c"), here.joinpath("normals.c").read_text("utf-8")]
    return "\n".join([texts[0], constants(), *texts[1:], *noise])


def constants() -> str:
    """Codes of rows and the columns of each kind: LINEAR, LINEAR_weights, …"""
    codes = ", ".join(f"{name} = {code}" for code, name in sorted(CODES.items()))
    lines = [f"enum {{ {codes}, COLUMNS = {kinds.COLUMNS}, CHAIN = {CHAIN} }};"]
    for kind in sorted(set(kinds.KINDS.values()), key=lambda kind: kind.__name__):
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper()
        lines.append(f"enum {{ {', '.join(f'{prefix}_{name} = {n}' for n, name in enumerate(kind._fields))} }};")
    return "\n".join(lines)
