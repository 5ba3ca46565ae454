"""Write numbers, arrays and names as C."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {"i1": "int8_t", "i2": "int16_t", "i4": "int32_t", "f4": "float"}
A_LINE = 110


def number(value: float) -> str:
    """Return a float32 with the fewest digits that are exact."""
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    digits = str(np.float32(value))
    return f"{digits}f" if re.search(r"[.e]", digits) else f"{digits}.0f"


def c_type(values: NDArray[Any]) -> str:
    """Return the C type of an array's elements."""
    return TYPES[values.dtype.str[1:]]


def elements(values: NDArray[Any]) -> str:
    """Return an array's elements between braces, on lines of about 110 characters."""
    flat = values.reshape(-1).tolist()
    words = [number(value) for value in flat] if values.dtype == np.float32 else [str(item) for item in flat]
    return f"{{\n{_lines(words)}}}"


def array(name: str, values: NDArray[Any]) -> str:
    """Return the definition of a constant array; an empty one gets one element, because C has no empty arrays."""
    values = values if values.size else np.zeros(1, values.dtype)
    return f"static const {c_type(values)} {name}[{values.size}] ALIGNED = {elements(values)};\n"


def doubles(name: str, table: NDArray[np.float64]) -> str:
    """Return the definition of a table of float64, with exact hexadecimal digits."""
    rows = [f"    {{{', '.join(value.hex() for value in row)}}},\n" for row in table.tolist()]
    return f"static const double {name}[{table.shape[0]}][{table.shape[1]}] = {{\n{''.join(rows)}}};\n"


def comment(text: str) -> str:
    """Return text that cannot end a comment."""
    return json.dumps(text)[1:-1].replace("*", "x").replace("\\", "/").replace("//", "/")


def string(text: str) -> str:
    """Return a string constant."""
    plain = [chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()]
    return f'"{"".join(plain)}"'


def _lines(words: list[str]) -> str:
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) > A_LINE:
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, line]) + "\n"
