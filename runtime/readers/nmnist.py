"""Read N-MNIST `.bin` and DVS gesture `.bs2` files: five bytes per event, without a header.

    byte 0  x
    byte 1  y
    byte 2  polarity in bit 7, then bits 22…16 of the time
    byte 3  bits 15…8
    byte 4  bits 7…0, in microseconds

The format has two traps. The 23 bits of time restart at zero after 8.39 s: a step back by more than half of that is
treated as a wrap and corrected (see `clock.unwrap`). ATIS recordings mark an overflow of the camera's own 13-bit clock
by a record with y = 240, one row below the sensor: it is not an event, and all later times move up by 8,192 µs. Such
records are counted in `skipped`.
"""

from pathlib import Path

import numpy as np

from axonnx.runtime.events.arrays import pick_events
from axonnx.runtime.readers.binary import read_bytes, unwrap, whole_records
from axonnx.runtime.readers.recording import Recording, events_from

TIME_BITS = 23
OVERFLOW_ROW = 240
OVERFLOW_US = 1 << 13


def read(path: Path) -> Recording:
    """Read the events of a `.bin` or `.bs2` file; the file does not state the sensor."""
    bytes_ = whole_records(path, read_bytes(path), 0, np.dtype(("u1", 5))).astype(np.int64)
    x, y, third = bytes_[:, 0], bytes_[:, 1], bytes_[:, 2]
    overflow = y == OVERFLOW_ROW
    t = unwrap((third & 0x7F) << 16 | bytes_[:, 3] << 8 | bytes_[:, 4], TIME_BITS)
    t += OVERFLOW_US * np.cumsum(overflow)
    events = pick_events(events_from(path, t, x, y, third >> 7), ~overflow)
    skipped = {"clock overflow": int(overflow.sum())} if overflow.any() else {}
    return Recording(events, "nmnist", skipped=skipped)
