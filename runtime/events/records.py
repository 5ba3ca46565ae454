"""Events as 16-byte records, for pipes and datagrams.

    bytes  0–7   t, microseconds, int64
    bytes  8–9   x, uint16
    bytes 10–11  y, uint16
    byte  12     p, uint8
    bytes 13–15  zero

All little-endian, one after the other, without any header. Bytes 13–15 that are not zero show that a reader is out of
step with its writer.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, Events, check_events

RECORD: Final = np.dtype({"names": ["t", "x", "y", "p", "zero"], "formats": ["<i8", "<u2", "<u2", "u1", ("u1", 3)]})
FIELDS = ("t", "x", "y", "p")


def to_records(events: Events) -> bytes:
    """The events as bytes."""
    records = np.zeros(len(check_events(events)), RECORD)
    for name in FIELDS:
        records[name] = events[name]
    return records.tobytes()


def from_records(data: bytes, where: str, first: int = 0) -> Events:
    """The events of whole records; ``first`` is the number of the first of them, for faults."""
    assert len(data) % RECORD.itemsize == 0, "whole records"
    records = np.frombuffer(data, RECORD)
    wrong = records["zero"].any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        raise AxonnxError(
            f"{where}: record {first + number}: bytes 13 to 15 are {records['zero'][number].tolist()}; expected zeros. "
            f"Records are {RECORD.itemsize} bytes: t int64, x uint16, y uint16, p uint8, three zeros, little-endian"
        )
    events = np.empty(len(records), EVENT)
    for name in FIELDS:
        events[name] = records[name]
    return events
