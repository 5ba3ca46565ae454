"""Read Prophesee EVT 2.0 (`.raw`): a text header, then little-endian 32-bit words with their kind in bits 31…28.

    0, 1  event OFF, ON: bits 27…22 low bits of the time, 21…11 x, 10…0 y
    8     high 28 bits of the time, in units of 64 µs; they restart after 4.8 hours, and the reader corrects this
    10    external trigger; 14, 15 extensions of the vendor

Only events are decoded. All other words are counted in `skipped`. Events before the first time word are counted there
too, because their time is unknown.
"""

from collections.abc import Iterator
from ctypes import byref, c_int64, c_void_p
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.events.arrays import EVENT, Events
from axonnx.runtime.readers.blocks import OpenRecording, gathered, record_blocks, whole_head
from axonnx.runtime.readers.clock import Clock
from axonnx.runtime.readers.prophesee import evt_version, read_header, sensor_of
from axonnx.runtime.readers.recording import Recording

TIME_HIGH = 8
HIGH_BITS = 28
BEFORE = 16  # the index after the counts of sixteen kinds
NAMES = {BEFORE: "event before the first time word", 10: "external trigger", 14: "extension", 15: "extension"}


def read(path: Path) -> Recording:
    """Read the events of an EVT 2.0 file."""
    return gathered(open_blocks(path))


def open_blocks(path: Path) -> OpenRecording:
    """Open an EVT 2.0 file for reading in blocks."""
    header, start = read_header(whole_head(path, b"% ", b"% end"))
    if evt_version(header) != "2.0":
        raise AxonnxError(
            f"{path}: the header states {_stated(header)}; expected '% evt 2.0' or '% format EVT2'."
            " Leave `format` out to detect it from the header."
        )
    if header.get("endianness", "little") != "little":
        raise AxonnxError(f"{path}: the header states endianness {header['endianness']!r}; expected little.")
    skipped: dict[str, int] = {}
    events = _decoded(record_blocks(path, start, "<u4"), skipped)
    return OpenRecording("evt2", sensor_of(header), events, skipped, most=path.stat().st_size // 4)


def _decoded(words: Iterator[NDArray], skipped: dict[str, int]) -> Iterator[Events]:
    decoder = Decoder()
    for block in words:
        events = decoder(block)
        skipped.update(decoder.skipped())
        yield events


class Decoder:
    """Convert words to events, block after block."""

    def __init__(self) -> None:
        self.clock = Clock(HIGH_BITS)
        self._native = find_function("evt2", c_int64, c_void_p, c_int64, c_void_p, c_void_p, c_void_p)
        self.counts = np.zeros(BEFORE + 1, np.int64)  # words that are neither events nor times, by kind

    def __call__(self, words: NDArray[np.uint32]) -> Events:
        """Return the events of the next words."""
        if self._native is None:
            return self._plain(words)
        events, counts = np.empty(len(words), EVENT), address_of(self.counts)
        found = self._native(address_of(words), len(words), byref(self.clock), counts, address_of(events))
        return events[:found]

    def skipped(self) -> dict[str, int]:
        """Count the words so far that were not events, by name."""
        found: dict[str, int] = {}
        for kind in (BEFORE, *range(BEFORE)):
            if count := int(self.counts[kind]):
                name = NAMES.get(kind, f"reserved word {kind}")
                found[name] = found.get(name, 0) + count
        return found

    def _plain(self, words: NDArray[np.uint32]) -> Events:
        kind = words >> np.uint32(28)
        base, known = self._time_base(words, kind == TIME_HIGH)
        cd = kind <= 1
        taken, base = words[cd & known], base[cd & known]
        events = np.empty(len(taken), EVENT)
        events["t"] = base << 6 | (taken >> np.uint32(22) & np.uint32(0x3F)).astype(np.int64)
        events["x"] = taken >> np.uint32(11) & np.uint32(0x7FF)
        events["y"] = taken & np.uint32(0x7FF)
        events["p"] = taken >> np.uint32(28)
        others = kind[~cd & (kind != TIME_HIGH)]
        self.counts[:BEFORE] += np.bincount(others, minlength=BEFORE)
        self.counts[BEFORE] += np.count_nonzero(cd & ~known)
        return events

    def _time_base(
        self, words: NDArray[np.uint32], is_time: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the last time word before each word, and whether there was one."""
        before = self.clock.now
        high = self.clock.unwrap((words[is_time] & np.uint32(0x0FFF_FFFF)).astype(np.int64))
        seen = np.cumsum(is_time)
        return np.append(np.int64(before or 0), high)[seen], (seen > 0) | (before is not None)


def _stated(header: dict[str, str]) -> str:
    version = evt_version(header)
    return f"EVT {version}" if version else "no EVT version"
