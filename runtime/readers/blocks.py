"""Read recordings block by block, in constant memory for files of any size."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, RAW, Events, Sensor
from axonnx.runtime.readers.binary import HEAD_BYTES, header_lines, read_head
from axonnx.runtime.readers.recording import Recording

BLOCK = 2**16  # records in memory at a time
TEXT = 2**20  # bytes of text
LONGEST_LINE = 2**20


@dataclass
class OpenRecording:
    """An open recording. Its blocks can be consumed once; `skipped` grows meanwhile."""

    format: str
    sensor: Sensor | None
    blocks: Iterator[Events]
    skipped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    most: int = 0  # upper bound of the number of events, if the file's size gives one


def gathered(opened: OpenRecording) -> Recording:
    """Read all blocks into memory: the events once, and one block."""
    events, count = np.empty(opened.most, EVENT), 0
    for block in opened.blocks:
        if count + len(block) > len(events):
            events.resize(max(count + len(block), len(events) + len(events) // 2), refcheck=False)
        events.view(RAW)[count : count + len(block)] = block.view(RAW)
        count += len(block)
    events.resize(count, refcheck=False)
    return Recording(events, opened.format, opened.sensor, opened.skipped, opened.notes)


def whole_head(path: Path, mark: bytes, last: bytes | None = None) -> bytes:
    """Return the first bytes of a file up to the end of its text header; see `header_lines` for `mark` and `last`."""
    size = HEAD_BYTES
    while True:
        head = read_head(path, size)
        lines, at = header_lines(head, mark, last)
        ended = last is not None and bool(lines) and lines[-1].encode().startswith(last)
        if ended or len(head) < size or (at + len(mark) <= size and not _goes_on(head, mark, at)):
            return head
        size *= 4


def _goes_on(head: bytes, mark: bytes, at: int) -> bool:
    """Return whether a header line begins that does not end within these bytes."""
    return head.startswith(mark, at) and head.find(b"\n", at) < 0


def record_blocks(path: Path, start: int, record: DTypeLike) -> Iterator[NDArray]:
    """Yield the records from offset `start` to the end of the file in blocks; refuse a truncated last record."""
    dtype, size = np.dtype(record), path.stat().st_size
    over = (size - start) % dtype.itemsize
    if over:
        raise AxonnxError(
            f"{path}: byte {size - over}: the last record has {over} of its {dtype.itemsize} bytes; the file was cut "
            f"off (or has another format). Copy it again, or cut it to {size - over} bytes to drop that record."
        )
    return _records(path, start, dtype, (size - start) // dtype.itemsize)


def _records(path: Path, start: int, dtype: np.dtype, count: int) -> Iterator[NDArray]:
    with path.open("rb") as file:
        file.seek(start)
        for first in range(0, count, BLOCK):
            yield _filled(path, file, np.empty(min(BLOCK, count - first), dtype))


def _filled(path: Path, file: BufferedReader, records: NDArray) -> NDArray:
    """Fill the records with the next bytes of the file."""
    wanted = records.view(np.uint8).data
    while wanted:
        got = file.readinto(wanted)
        if not got:
            raise AxonnxError(f"{path}: became shorter while it was read; copy it again.")
        wanted = wanted[got:]
    return records


def text_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines of a file in blocks, each with its offset; an unfinished last line is its own block.

    Longer lines than ``LONGEST_LINE`` are refused: what is no text would be gathered in memory to its end.
    """
    at, rest = 0, b""
    with path.open("rb") as file:
        while data := file.read(TEXT):
            if len(rest) > LONGEST_LINE:
                raise AxonnxError(
                    f"{path}: byte {at}: found no end of line within {LONGEST_LINE:,} bytes; expected lines of text."
                    f" Is it another format?"
                )
            rest += data
            end = rest.rfind(b"\n") + 1
            if end:
                yield at, rest[:end]
                at, rest = at + end, rest[end:]
    if rest:
        yield at, rest
