"""Read text: csv with a header that names the columns, and lines ``t x y p`` with t in seconds.

The columns of csv are t, x, y and p in any order, all integers; other common names are known too. ``x@346`` and
``y@260``, as faery writes them, state the size of the sensor. A polarity of −1 is taken as 0.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from ctypes import byref, c_int64, c_void_p
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.events.arrays import EVENT, Events, Sensor
from axonnx.runtime.readers.binary import read_head
from axonnx.runtime.readers.blocks import OpenRecording, gathered, text_blocks
from axonnx.runtime.readers.recording import Recording

FIELDS = ("t", "x", "y", "p")
ALIASES = {"timestamp": "t", "time": "t", "ts": "t", "polarity": "p", "pol": "p", "on": "p"}
SIZE = re.compile(r"[1-9][0-9]{0,4}")
REQUIRED = ("t", "x")
PLAIN = str.maketrans("", "", "0123456789+-, \t")
LONG_NUMBER = re.compile("[0-9]{19}")  # may not fit 64 bits
NO_EVENTS = np.empty(0, EVENT)
WHOLE_NUMBER = re.compile(r"[ \t]*[+-]?[0-9]{1,99}[ \t]*")


def read(path: Path) -> Recording:
    """Read the events of a csv file; y and p are 0 if there is no such column."""
    return gathered(open_blocks(path))


def open_blocks(path: Path) -> OpenRecording:
    """Open a csv file for reading in blocks."""
    read_head(path)  # refuses a missing or empty file
    blocks = text_blocks(path)
    at, text = next(blocks)
    first, feed, text = text.partition(b"\n")
    header = _decoded(path, at, first, "utf-8-sig").removesuffix("\r")
    columns = parse_header(path, header)
    missing = [name for name in FIELDS if name not in columns]
    notes = (f"no column {' and '.join(missing)}: taken as 0",) if missing else ()
    rest = chain([(at + len(first) + len(feed), text)], blocks)
    return OpenRecording("csv", _sensor(header), _rows(path, rest, columns), notes=notes)


def _sensor(header: str) -> Sensor | None:
    """Return the size that a header such as ``t,x@346,y@260,on`` states; None if it states none."""
    sizes = {
        name.strip().lower(): size.strip() for name, _, size in (each.partition("@") for each in header.split(","))
    }
    width, height = sizes.get("x", ""), sizes.get("y", "")
    if SIZE.fullmatch(width) is None or SIZE.fullmatch(height) is None:
        return None
    return Sensor(width=int(width), height=int(height))


def _rows(path: Path, blocks: Iterator[tuple[int, bytes]], columns: list[str]) -> Iterator[Events]:
    line, blank = 2, 0  # empty lines are allowed at the very end only, so they wait for the next line
    for at, text in blocks:
        plain, stop = (NO_EVENTS, 0) if blank else plain_rows(text, columns)
        line += len(plain)
        lines = [""] * blank + _lines(path, at + stop, text[stop:])
        blank = 0
        while lines and not lines[-1].strip():
            lines.pop()
            blank += 1
        if len(plain):
            yield plain
        if lines:
            yield parse_rows(path, lines, columns, line)
            line += len(lines)


def _lines(path: Path, at: int, text: bytes) -> list[str]:
    """Return the lines of a block that begins at byte `at`, without line ends."""
    lines = re.split(r"\r?\n", _decoded(path, at, text, "utf-8"))
    return lines if lines[-1] else lines[:-1]


def _decoded(path: Path, at: int, text: bytes, encoding: str) -> str:
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        raise AxonnxError(
            f"{path}: byte {at + error.start}: is not UTF-8 text; expected csv with columns t,x,y,p."
        ) from None


def plain_rows(text: bytes, columns: list[str]) -> tuple[Events, int]:
    """Return the events of the lines up to the first that is not plain whole numbers, and the position of that line.

    Without the native core no line is parsed here; `parse_rows` parses them all.
    """
    native = find_function("rows", c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p)
    if native is None:
        return NO_EVENTS, 0
    fields, stop = np.array([FIELDS.index(name) for name in columns], np.int64), c_int64()
    events, end = np.empty(text.count(b"\n"), EVENT), text.rfind(b"\n") + 1
    found = native(text, end, address_of(fields), len(fields), address_of(events), byref(stop))
    return events[:found], stop.value


def parse_header(path: Path, line: str) -> list[str]:
    """Return the column names: t, x and perhaps y and p, each once."""
    names = [name.partition("@")[0].strip().strip('"').lower() for name in line.split(",")]
    columns = [ALIASES.get(name, name) for name in names]
    unknown = [name for name in columns if name not in FIELDS]
    missing = [name for name in REQUIRED if name not in columns]
    if all(WHOLE_NUMBER.fullmatch(name) for name in columns):
        raise AxonnxError(
            f"{path}: line 1: found numbers, {line.strip()!r}; expected the column names t,x,y,p in any order"
            " (t in microseconds). Add such a line at the top, in the order of your columns: sed -i '1i x,y,p,t' FILE."
        )
    if unknown or missing or len(set(columns)) < len(columns):
        raise AxonnxError(
            f"{path}: line 1: found the columns {line.strip()!r}; expected t,x,y,p in any order (t in microseconds;"
            " t and x are required), each once. Rename the columns, and remove all others."
        )
    return columns


def parse_rows(path: Path, lines: list[str], columns: list[str], first_line: int) -> Events:
    """Return the events of lines whose columns have the given order; errors count lines from `first_line`."""
    numbers = _whole_numbers(lines, len(columns))
    if numbers is None:
        numbers = _checked_numbers(path, lines, columns, first_line)
    events = np.zeros(len(lines), EVENT)
    for name, values in zip(columns, numbers.T, strict=True):
        values = np.where(values == -1, 0, values) if name == "p" else values
        limits = np.iinfo(EVENT[name])
        wrong = (values < limits.min) | (values > limits.max)
        if wrong.any():
            row = int(wrong.argmax())
            raise AxonnxError(
                f"{path}: line {first_line + row}, column {name}: found {values[row]}; expected {limits.min} to"
                f" {limits.max}."
            )
        events[name] = values
    return events


def _whole_numbers(lines: list[str], width: int) -> NDArray[np.int64] | None:
    """Parse the numbers [rows, width] with numpy's fast parser; return None if it might not parse them exactly."""
    text = "".join(lines)
    if not lines or text.translate(PLAIN) or LONG_NUMBER.search(text):
        return None  # numpy would round through a float, or skip what it does not know (older versions more so)
    try:
        numbers = np.loadtxt(lines, np.int64, comments=None, delimiter=",", ndmin=2)
    except ValueError:
        return None
    return numbers if numbers.shape == (len(lines), width) else None


def _checked_numbers(path: Path, lines: list[str], columns: list[str], first_line: int) -> NDArray[np.int64]:
    """Parse the numbers cell by cell; an error states line and column of the first cell that is not a number."""
    rows = []
    for number, line in enumerate(lines, first_line):
        row = line.split(",")
        if len(row) != len(columns):
            found = f"{len(row)} values" if line.strip() else "an empty line"
            raise AxonnxError(
                f"{path}: line {number}: found {found}; expected {len(columns)} values: {','.join(columns)}."
            )
        for name, cell in zip(columns, row, strict=True):
            if not WHOLE_NUMBER.fullmatch(cell) or not -(2**63) <= int(cell) < 2**63:
                raise AxonnxError(
                    f"{path}: line {number}, column {name}: found {cell.strip()!r}; expected a whole number"
                    " of 64 bits (t in microseconds)."
                )
        rows.append([int(cell) for cell in row])
    return np.array(rows, np.int64).reshape(len(rows), len(columns))


# Read text as the Robotics and Perception Group publishes it: lines ``t x y p`` with t in seconds, without a header.
#
#     346 260                  width and height, if the first line has two whole numbers
#     0.003811000 96 133 0     p is 0 or 1, or −1 or 1: −1 is taken as 0
#
# Times are rounded to the nearest microsecond. Columns are separated by spaces or tabs.

SENSOR_LINE = re.compile(rb"[ \t]*([1-9][0-9]{0,4})[ \t]+([1-9][0-9]{0,4})[ \t]*\r?")
LINE = re.compile(
    rb"[ \t]*[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,2})?([ \t]+[0-9]{1,5}){2}[ \t]+(-?1|0)[ \t]*\r?"
)
LATEST = 2**53 / 1e6  # seconds: double precision holds microseconds up to there


def read_seconds(path: Path) -> Recording:
    """Read the events of a text file."""
    return gathered(open_seconds(path))


def open_seconds(path: Path) -> OpenRecording:
    """Open a text file for reading in blocks."""
    read_head(path)  # refuses a missing or empty file
    blocks = text_blocks(path)
    _, text = next(blocks)
    first, feed, rest = text.partition(b"\n")
    size = SENSOR_LINE.fullmatch(first)
    sensor = None if size is None else Sensor(width=int(size[1]), height=int(size[2]))
    begin = (2, rest) if size is not None else (1, first + feed + rest)
    notes = ("t taken as seconds, and p = -1 as 0",)
    return OpenRecording("txt", sensor, _events(path, begin, blocks), notes=notes)


def begins_like_events(path: Path) -> bool:
    """Return whether the first line is an event or the size of a sensor."""
    with suppress(AxonnxError):
        first = read_head(path).partition(b"\n")[0]
        return bool(SENSOR_LINE.fullmatch(first) or LINE.fullmatch(first))
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
