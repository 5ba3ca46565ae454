"""Numbers, arrays and names as C."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {1: "int8_t", 2: "int16_t", 4: "float"}  # by the bytes of an element
A_LINE = 110


def number(value: float) -> str:
    """A float32 in the fewest digits that are exact."""
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    digits = str(np.float32(value))
    return f"{digits}f" if re.search(r"[.e]", digits) else f"{digits}.0f"


def array(kind: str, name: str, values: NDArray[Any], about: str) -> str:
    """The definition of a constant array."""
    flat = values.reshape(-1)
    words = [number(value) for value in flat.tolist()] if kind == "float" else [str(item) for item in flat.tolist()]
    return f"/* {comment(about)} */\nstatic const {kind} {name}[{len(words)}] = {{\n{_lines(words)}}};\n"


def doubles(name: str, table: NDArray[np.float64]) -> str:
    """The definition of a table of float64, digit by digit in base 16."""
    rows = [f"    {{{', '.join(value.hex() for value in row)}}},\n" for row in table.tolist()]
    return f"static const double {name}[{table.shape[0]}][{table.shape[1]}] = {{\n{''.join(rows)}}};\n"


def comment(text: str) -> str:
    """Text that cannot leave a comment."""
    return json.dumps(text)[1:-1].replace("*", "x").replace("\\", "/").replace("//", "/")


def string(text: str) -> str:
    """A string constant."""
    plain = [chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()]
    return f'"{"".join(plain)}"'


def identifier(text: str, longest: int = 40) -> str:
    """The letters and digits of a name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text)[:longest].strip("_")


def _lines(words: list[str]) -> str:
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) > A_LINE:
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, line]) + "\n"
