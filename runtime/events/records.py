"""Convert events to 16-byte records for pipes and datagrams, and back.

    bytes  0–7   t, microseconds, int64
    bytes  8–9   x, uint16
    bytes 10–11  y, uint16
    byte  12     p, uint8
    bytes 13–15  zero

All fields are little-endian; records follow each other without a header. A value other than zero in bytes 13–15 shows
that the reader has lost the beginning of the records.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, Events, check_events

RECORD: Final = np.dtype({"names": ["t", "x", "y", "p", "zero"], "formats": ["<i8", "<u2", "<u2", "u1", ("u1", 3)]})
FIELDS = ("t", "x", "y", "p")


def to_records(events: Events) -> bytes:
    """Convert events to bytes."""
    records = np.zeros(len(check_events(events)), RECORD)
    for name in FIELDS:
        records[name] = events[name]
    return records.tobytes()


def from_records(data: bytes, where: str, first: int = 0) -> Events:
    """Convert whole records to events; errors count the records from ``first``."""
    assert len(data) % RECORD.itemsize == 0, "whole records"
    records = np.frombuffer(data, RECORD)
    wrong = records["zero"].any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        raise AxonnxError(
            f"{where}: record {first + number}: bytes 13 to 15 are {records['zero'][number].tolist()}; expected zeros. "
            f"A record has {RECORD.itemsize} bytes: t int64, x uint16, y uint16, p uint8, three zeros, little-endian"
        )
    events = np.empty(len(records), EVENT)
    for name in FIELDS:
        events[name] = records[name]
    return events
