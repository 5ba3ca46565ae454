"""Read Prophesee DAT: a text header, one byte event type, one byte event size (8), then little-endian records.

A record is a 32-bit time in microseconds and a word. The time restarts after 71.6 minutes, and the reader corrects
this. Version 2: bits 13…0 x, 27…14 y, 28 polarity; version 1: bits 8…0 x, 16…9 y, 17 polarity.
"""

from ctypes import byref, c_int64, c_void_p
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.events.arrays import EVENT, Events
from axonnx.runtime.readers.binary import require_magic
from axonnx.runtime.readers.blocks import OpenRecording, gathered, record_blocks, whole_head
from axonnx.runtime.readers.clock import Clock
from axonnx.runtime.readers.prophesee import read_header, sensor_of
from axonnx.runtime.readers.recording import Recording

RECORD = np.dtype([("t", "<u4"), ("data", "<u4")])
EVENT_TYPES = (0, 12)  # generic 2D events and contrast detection events, which have the same layout
BITS = {1: (9, 8), 2: (14, 14)}  # of x and of y, by version
TIME_BITS = 32


def read(path: Path) -> Recording:
    """Read the events of a DAT file."""
    return gathered(open_blocks(path))


def open_blocks(path: Path) -> OpenRecording:
    """Open a DAT file for reading in blocks."""
    data = whole_head(path, b"% ", b"% end")
    require_magic(path, data, b"% ", "a DAT header")
    header, start = read_header(data)
    version = header.get("version", "")
    if version not in map(str, BITS):
        raise AxonnxError(f"{path}: the header states version {version or 'none'}; expected '% Version 1' or 2.")
    _check_layout(path, data, start)
    events = map(Decoder(int(version)), record_blocks(path, start + 2, RECORD))
    return OpenRecording("dat", sensor_of(header), events, most=path.stat().st_size // RECORD.itemsize)


class Decoder:
    """Convert records to events, block after block."""

    def __init__(self, version: int) -> None:
        self.bits, self.clock = BITS[version], Clock(TIME_BITS)
        self._native = find_function("dat", None, c_void_p, c_int64, c_void_p, c_int64, c_int64, c_void_p)

    def __call__(self, records: NDArray) -> Events:
        """Return one event for each record."""
        events, words, (x_bits, y_bits) = np.empty(len(records), EVENT), records["data"], self.bits
        if self._native is not None:
            self._native(address_of(records), len(records), byref(self.clock), x_bits, y_bits, address_of(events))
            return events
        events["t"] = self.clock.unwrap(records["t"].astype(np.int64))
        events["x"] = words & (1 << x_bits) - 1
        events["y"] = words >> x_bits & (1 << y_bits) - 1
        events["p"] = words >> x_bits + y_bits & 1
        return events


def _check_layout(path: Path, data: bytes, start: int) -> None:
    """Check that the two bytes after the header state records of 8 bytes that hold events."""
    found = tuple(data[start : start + 2])
    if len(found) < 2 or found[0] not in EVENT_TYPES or found[1] != RECORD.itemsize:
        raise AxonnxError(
            f"{path}: byte {start}: found event type and size {found}; expected type 0 (2D) or 12 (contrast detection)"
            f" of {RECORD.itemsize} bytes. Trigger files hold no events. Any other file was cut off or is damaged."
        )
