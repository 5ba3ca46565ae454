"""Lines of whole numbers to events in one pass: the twin of `axonnx.runtime.readers.csv_text.parse_rows`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from axonnx.runtime.events.arrays import Events
from axonnx.runtime.kernels.jit import RECORD, compiled, given, inlined, kept

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
U = np.uint64  # indices without a sign: numba looks for negative ones otherwise
ONE = U(1)
SPACE, TAB, COMMA, PLUS, MINUS, ZERO, NINE, LINE_FEED, RETURN = (np.uint8(ord(c)) for c in " \t,+-09\n\r")
DIGITS = 18  # any number of so many digits fits 64 bits


@inlined
def after_blanks(text: Bytes, at: Any) -> Any:
    """The first byte from ``at`` on that is neither a space nor a tab; a line feed ends the text."""
    while text[at] == SPACE or text[at] == TAB:
        at += ONE
    return at


@compiled(types.int64, given(types.uint8), given(types.int64), kept(RECORD), kept(types.int64))
def rows(text: Bytes, fields: Longs, events: Events, stopped: Longs) -> Any:
    """Events of whole lines; how many, and in ``stopped`` where the first line begins that is not plain.

    ``fields`` says which field each column is: 0 t, 1 x, 2 y, 3 p. A line is plain where every cell is a number that
    its field can hold: all others are for the twin, which knows what is wrong with them. ``text`` ends in a line feed.
    """
    size, columns, line, found = U(len(text)), U(len(fields)), U(0), U(0)
    while line < size:
        at, column = line, U(0)
        t, x, y, p = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        while column < columns:
            at = after_blanks(text, at)
            negative = text[at] == MINUS
            if negative or text[at] == PLUS:
                at += ONE
            first, number = at, np.int64(0)
            while ZERO <= text[at] <= NINE:
                number = number * 10 + np.int64(text[at]) - np.int64(ZERO)
                at += ONE
                if at - first > U(DIGITS):
                    break
            digits = at - first
            if digits == U(0) or digits > U(DIGITS):
                break
            number = -number if negative else number
            field = fields[column]
            if field == 0:
                t = number
            elif number < 0 or number > (255 if field == 3 else 65535):
                break
            elif field == 1:
                x = number
            elif field == 2:
                y = number
            else:
                p = number
            at = after_blanks(text, at)
            column += ONE
            if column < columns:
                if text[at] != COMMA:
                    break
                at += ONE
        if column < columns:
            break
        if text[at] == RETURN:
            at += ONE
        if text[at] != LINE_FEED:
            break
        event = events[found]
        event.t, event.x, event.y, event.p = t, np.uint16(x), np.uint16(y), np.uint8(p)
        found += ONE
        line = at + ONE
    stopped[0] = np.int64(line)
    return np.int64(found)
