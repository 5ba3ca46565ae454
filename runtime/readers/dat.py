"""Prophesee DAT: text header, one byte event type, one byte event size (8), then little-endian records.

A record is a 32-bit time in microseconds (it starts again after 71.6 minutes, which is undone) and a word. Version 2:
bits 13…0 x, 27…14 y, 28 polarity; version 1: bits 8…0 x, 16…9 y, 17 polarity.
"""

from pathlib import Path

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers.binary import read_bytes, require_magic, whole_records
from axonnx.runtime.readers.clock import unwrap
from axonnx.runtime.readers.prophesee import read_header, sensor_of
from axonnx.runtime.readers.recording import Recording, events_from

RECORD = np.dtype([("t", "<u4"), ("data", "<u4")])
EVENT_TYPES = (0, 12)  # generic 2D events and contrast detection events, laid out alike
BITS = {1: (9, 8), 2: (14, 14)}  # of x and of y, by version


def read(path: Path) -> Recording:
    """Events of a DAT file."""
    data = read_bytes(path)
    require_magic(path, data, b"% ", "a DAT header")
    header, start = read_header(data)
    version = header.get("version", "")
    if version not in map(str, BITS):
        raise AxonnxError(f"{path}: the header states version {version or 'none'}; expected '% Version 1' or 2.")
    _check_layout(path, data, start)
    records = whole_records(path, data, start + 2, RECORD)
    x_bits, y_bits = BITS[int(version)]
    words = records["data"].astype(np.int64)
    x, y = words & (1 << x_bits) - 1, words >> x_bits & (1 << y_bits) - 1
    t = unwrap(records["t"].astype(np.int64), 32)
    return Recording(events_from(path, t, x, y, words >> x_bits + y_bits & 1), "dat", sensor_of(header))


def _check_layout(path: Path, data: bytes, start: int) -> None:
    """The two bytes after the header must say that records of 8 bytes hold events."""
    found = tuple(data[start : start + 2])
    if len(found) < 2 or found[0] not in EVENT_TYPES or found[1] != RECORD.itemsize:
        raise AxonnxError(
            f"{path}: byte {start}: found event type and size {found}; expected type 0 (2D) or 12 (contrast detection)"
            f" of {RECORD.itemsize} bytes. Trigger files hold no events; otherwise the file was cut off or damaged."
        )
