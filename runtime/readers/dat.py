"""Prophesee DAT: text header, one byte event type, one byte event size (8), then little-endian records.

A record is a 32-bit time in microseconds (it starts again after 71.6 minutes, which is undone) and a word. Version 2:
bits 13…0 x, 27…14 y, 28 polarity; version 1: bits 8…0 x, 16…9 y, 17 polarity.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, Events
from axonnx.runtime.readers.binary import require_magic
from axonnx.runtime.readers.blocks import Opened, compiled_for, gathered, record_blocks, whole_head
from axonnx.runtime.readers.clock import Clock
from axonnx.runtime.readers.prophesee import read_header, sensor_of
from axonnx.runtime.readers.recording import Recording

RECORD = np.dtype([("t", "<u4"), ("data", "<u4")])
EVENT_TYPES = (0, 12)  # generic 2D events and contrast detection events, laid out alike
BITS = {1: (9, 8), 2: (14, 14)}  # of x and of y, by version
TIME_BITS = 32


def read(path: Path) -> Recording:
    """Events of a DAT file."""
    return gathered(open_blocks(path))


def open_blocks(path: Path) -> Opened:
    """The same block by block."""
    data = whole_head(path, b"% ", b"% end")
    require_magic(path, data, b"% ", "a DAT header")
    header, start = read_header(data)
    version = header.get("version", "")
    if version not in map(str, BITS):
        raise AxonnxError(f"{path}: the header states version {version or 'none'}; expected '% Version 1' or 2.")
    _check_layout(path, data, start)
    records, compiled = record_blocks(path, start + 2, RECORD), compiled_for(path, "words")
    events, most = _decoded(records, BITS[int(version)], compiled), path.stat().st_size // RECORD.itemsize
    return Opened("dat", sensor_of(header), events, most=most)


def _decoded(records: Iterator[NDArray], bits: tuple[int, int], compiled: ModuleType | None) -> Iterator[Events]:
    clock = Clock(TIME_BITS)
    for block in records:
        yield decode(block, bits, clock, compiled)


def decode(records: NDArray, bits: tuple[int, int], clock: Clock, compiled: ModuleType | None = None) -> Events:
    """An event for each record."""
    events = np.empty(len(records), EVENT)
    if compiled is not None:
        compiled.dat(records.view(np.uint32), clock.bits, *bits, clock.numbers, events)
        return events
    (x_bits, y_bits), words = bits, records["data"]
    events["t"] = clock.unwrap(records["t"].astype(np.int64))
    events["x"] = words & (1 << x_bits) - 1
    events["y"] = words >> x_bits & (1 << y_bits) - 1
    events["p"] = words >> x_bits + y_bits & 1
    return events


def _check_layout(path: Path, data: bytes, start: int) -> None:
    """The two bytes after the header must say that records of 8 bytes hold events."""
    found = tuple(data[start : start + 2])
    if len(found) < 2 or found[0] not in EVENT_TYPES or found[1] != RECORD.itemsize:
        raise AxonnxError(
            f"{path}: byte {start}: found event type and size {found}; expected type 0 (2D) or 12 (contrast detection)"
            f" of {RECORD.itemsize} bytes. Trigger files hold no events; otherwise the file was cut off or damaged."
        )
