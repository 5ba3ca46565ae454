"""Prophesee EVT 2.0 (`.raw`): text header, then little-endian 32-bit words with their kind in bits 31…28.

    0, 1  event OFF, ON: bits 27…22 low bits of the time, 21…11 x, 10…0 y
    8     high 28 bits of the time, in units of 64 µs; it starts again after 4.8 hours, which is undone
    10    external trigger; 14, 15 vendor's extensions

Only events are decoded; all other words are counted in `skipped`, and so are events before the first time word, whose
time nobody can know.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers.binary import read_bytes, whole_records
from axonnx.runtime.readers.clock import unwrap
from axonnx.runtime.readers.prophesee import evt_version, read_header, sensor_of
from axonnx.runtime.readers.recording import Recording, events_from

TIME_HIGH = 8
HIGH_BITS = 28
KINDS = {10: "external trigger", 14: "extension", 15: "extension"}


def read(path: Path) -> Recording:
    """Events of an EVT 2.0 file."""
    data = read_bytes(path)
    header, start = read_header(data)
    if evt_version(header) != "2.0":
        raise AxonnxError(
            f"{path}: the header states {_stated(header)}; expected '% evt 2.0' or '% format EVT2'."
            " Leave `format` out to let the header decide."
        )
    if header.get("endianness", "little") != "little":
        raise AxonnxError(f"{path}: the header states endianness {header['endianness']!r}; expected little.")
    words: NDArray[np.uint32] = whole_records(path, data, start, "<u4")
    kind = words >> np.uint32(28)
    base, known = _time_base(words, kind == TIME_HIGH)
    cd = kind <= 1
    taken = words[cd & known].astype(np.int64)
    t = base[cd & known] << 6 | taken >> 22 & 0x3F
    events = events_from(path, t, taken >> 11 & 0x7FF, taken & 0x7FF, taken >> 28)
    return Recording(events, "evt2", sensor_of(header), _skipped(kind, int(np.count_nonzero(cd & ~known))))


def _stated(header: dict[str, str]) -> str:
    version = evt_version(header)
    return f"EVT {version}" if version else "no EVT version"


def _time_base(words: NDArray[np.uint32], is_time: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The last time word at each word, and whether there was one."""
    high = unwrap((words[is_time] & 0x0FFF_FFFF).astype(np.int64), HIGH_BITS)
    seen = np.cumsum(is_time)
    return np.concatenate([[0], high])[seen], seen > 0


def _skipped(kind: NDArray[np.uint32], before: int) -> dict[str, int]:
    counts = {"event before the first time word": before} if before else {}
    for value, count in zip(*np.unique(kind[(kind > 1) & (kind != TIME_HIGH)], return_counts=True), strict=True):
        name = KINDS.get(int(value), f"reserved word {int(value)}")
        counts[name] = counts.get(name, 0) + int(count)
    return counts
