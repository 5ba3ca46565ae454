"""Recordings read block by block: memory stays that of a block, however large the file is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, RAW, Events
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.readers.binary import HEAD_BYTES, header_lines, read_head
from axonnx.runtime.readers.recording import Recording

BLOCK = 2**16  # records that are in memory at a time
TEXT = 2**20  # bytes of text


@dataclass
class Opened:
    """A recording that is open: its blocks can be gone through once, and `skipped` grows while they are."""

    format: str
    sensor: Sensor | None
    blocks: Iterator[Events]
    skipped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    most: int = 0  # events, where the file's size says how many there can be


def gathered(opened: Opened) -> Recording:
    """All of it in memory: the events once, and a block."""
    events, count = np.empty(opened.most, EVENT), 0
    for block in opened.blocks:
        if count + len(block) > len(events):
            events.resize(max(count + len(block), len(events) + len(events) // 2), refcheck=False)
        events.view(RAW)[count : count + len(block)] = block.view(RAW)
        count += len(block)
    events.resize(count, refcheck=False)
    return Recording(events, opened.format, opened.sensor, opened.skipped, opened.notes)


def whole_head(path: Path, mark: bytes, last: bytes | None = None) -> bytes:
    """The first bytes of a file, with its whole text header; `mark` and `last` as in `header_lines`."""
    size = HEAD_BYTES
    while True:
        head = read_head(path, size)
        lines, at = header_lines(head, mark, last)
        ended = last is not None and bool(lines) and lines[-1].encode().startswith(last)
        if ended or len(head) < size or (at + len(mark) <= size and not _goes_on(head, mark, at)):
            return head
        size *= 4


def _goes_on(head: bytes, mark: bytes, at: int) -> bool:
    """Whether a header line begins that these bytes do not hold to its end."""
    return head.startswith(mark, at) and head.find(b"\n", at) < 0


def record_blocks(path: Path, start: int, record: DTypeLike) -> Iterator[NDArray]:
    """Records from offset `start` to the end of the file, block by block, the last one whole."""
    dtype, size = np.dtype(record), path.stat().st_size
    over = (size - start) % dtype.itemsize
    if over:
        raise AxonnxError(
            f"{path}: byte {size - over}: the last record has {over} of its {dtype.itemsize} bytes, the file was cut "
            f"off (or is another format). Copy it again, or cut it to {size - over} bytes to do without that record."
        )
    return _records(path, start, dtype, (size - start) // dtype.itemsize)


def _records(path: Path, start: int, dtype: np.dtype, count: int) -> Iterator[NDArray]:
    with path.open("rb") as file:
        file.seek(start)
        for first in range(0, count, BLOCK):
            yield _filled(path, file, np.empty(min(BLOCK, count - first), dtype))


def _filled(path: Path, file: BufferedReader, records: NDArray) -> NDArray:
    """The records, filled with the next bytes of the file."""
    wanted = records.view(np.uint8).data
    while wanted:
        got = file.readinto(wanted)
        if not got:
            raise AxonnxError(f"{path}: became shorter while it was read; copy it again.")
        wanted = wanted[got:]
    return records


def text_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, each block with its offset; what follows the last line feed is a block of its own."""
    at, rest = 0, b""
    with path.open("rb") as file:
        while data := file.read(TEXT):
            rest += data
            end = rest.rfind(b"\n") + 1
            if end:
                yield at, rest[:end]
                at, rest = at + end, rest[end:]
    if rest:
        yield at, rest
