"""Read text as the Robotics and Perception Group publishes it: lines ``t x y p`` with t in seconds, without a header.

    346 260                  width and height, if the first line has two whole numbers
    0.003811000 96 133 0     p is 0 or 1, or −1 or 1: −1 is taken as 0

Times are rounded to the nearest microsecond. Columns are separated by spaces or tabs.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, Events
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.readers.binary import read_head
from axonnx.runtime.readers.blocks import OpenRecording, gathered, text_blocks
from axonnx.runtime.readers.recording import Recording

SIZE = re.compile(rb"[ \t]*([1-9][0-9]{0,4})[ \t]+([1-9][0-9]{0,4})[ \t]*\r?")
LINE = re.compile(
    rb"[ \t]*[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,2})?([ \t]+[0-9]{1,5}){2}[ \t]+(-?1|0)[ \t]*\r?"
)
LATEST = 2**53 / 1e6  # seconds: double precision holds microseconds up to there


def read(path: Path) -> Recording:
    """Read the events of a text file."""
    return gathered(open_blocks(path))


def open_blocks(path: Path) -> OpenRecording:
    """Open a text file for reading in blocks."""
    read_head(path)  # refuses a missing or empty file
    blocks = text_blocks(path)
    _, text = next(blocks)
    first, feed, rest = text.partition(b"\n")
    size = SIZE.fullmatch(first)
    sensor = None if size is None else Sensor(width=int(size[1]), height=int(size[2]))
    begin = (2, rest) if size is not None else (1, first + feed + rest)
    notes = ("t taken as seconds, and p = -1 as 0",)
    return OpenRecording("txt", sensor, _events(path, begin, blocks), notes=notes)


def begins_like_events(path: Path) -> bool:
    """Return whether the first line is an event or the size of a sensor."""
    with suppress(AxonnxError):
        first = read_head(path).partition(b"\n")[0]
        return bool(SIZE.fullmatch(first) or LINE.fullmatch(first))
    return False


def _events(path: Path, begin: tuple[int, bytes], blocks: Iterator[tuple[int, bytes]]) -> Iterator[Events]:
    line = begin[0]
    for text in chain([begin[1]], (block for _, block in blocks)):
        lines = text.split(b"\n")
        lines = lines if lines[-1] else lines[:-1]
        if lines:
            yield _parsed(path, lines, line)
        line += len(lines)


def _parsed(path: Path, lines: list[bytes], first: int) -> Events:
    """Return the events of lines; errors count lines from ``first``."""
    for number, line in enumerate(lines, first):
        if LINE.fullmatch(line) is None:
            raise _fault(path, number, line, "seconds, x, y and p (0, 1 or -1), separated by spaces")
    numbers: NDArray[np.float64] = np.array(b" ".join(lines).split(), np.float64).reshape(-1, 4)
    wrong = (numbers[:, 0] > LATEST) | (numbers[:, 1:3] > np.iinfo(np.uint16).max).any(1)
    if wrong.any():
        at = int(wrong.argmax())
        raise _fault(path, first + at, lines[at], f"seconds up to {LATEST:.0f}, and x and y up to 65535")
    events = np.empty(len(numbers), EVENT)
    events["t"] = np.rint(numbers[:, 0] * 1e6)
    events["x"], events["y"], events["p"] = numbers[:, 1], numbers[:, 2], numbers[:, 3] > 0
    return events


def _fault(path: Path, number: int, line: bytes, expected: str) -> AxonnxError:
    shown = line[:60].decode("utf-8", "replace").strip()
    return AxonnxError(
        f"{path}: line {number}: found {shown!r}; expected {expected}. Text of another kind needs a csv header: t,x,y,p"
    )
