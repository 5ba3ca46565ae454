"""Read Prophesee's formats DAT and EVT 2.0 (`.raw`), whose text headers consist of `% keyword value` lines."""

import re
from collections.abc import Iterator
from ctypes import byref, c_int64, c_void_p
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.events.arrays import EVENT, Events, Sensor
from axonnx.runtime.readers.binary import Clock, header_lines, require_magic
from axonnx.runtime.readers.blocks import OpenRecording, gathered, record_blocks, whole_head
from axonnx.runtime.readers.recording import Recording


def read_header(data: bytes) -> tuple[dict[str, str], int]:
    """Return the values by keyword in lower case, and the offset of the first byte after the header."""
    lines, start = header_lines(data, b"% ", b"% end")
    pairs = (line[1:].strip().partition(" ") for line in lines)
    return {keyword.lower(): value.strip() for keyword, _, value in pairs}, start


def sensor_of(header: dict[str, str]) -> Sensor | None:
    """Return the sensor that the header states in any of the three forms in use; None if it states none."""
    geometry = re.fullmatch(r"(\d+)x(\d+)", header.get("geometry", ""))
    stated: dict[str, str] = dict(re.findall(r"(width|height)=(\d+)", header.get("format", "").lower()))
    width, height = (header.get(side, stated.get(side, "")) for side in ("width", "height"))
    if geometry:
        width, height = geometry[1], geometry[2]
    if not (width.isdecimal() and height.isdecimal() and 0 < int(width) <= 65536 and 0 < int(height) <= 65536):
        return None
    return Sensor(width=int(width), height=int(height))


def evt_version(header: dict[str, str]) -> str | None:
    """Return the version that the header of a `.raw` file states: 2.0, 2.1 or 3.0."""
    version = header.get("evt") or header.get("format", "").split(";")[0].upper().removeprefix("EVT")
    names = {"2": "2.0", "21": "2.1", "3": "3.0"}
    return names.get(version, version) or None


RECORD = np.dtype([("t", "<u4"), ("data", "<u4")])
EVENT_TYPES = (0, 12)  # generic 2D events and contrast detection events, which have the same layout
BITS = {1: (9, 8), 2: (14, 14)}  # of x and of y, by version
TIME_BITS = 32


def read_dat(path: Path) -> Recording:
    """Read the events of a DAT file."""
    return gathered(open_dat(path))


def open_dat(path: Path) -> OpenRecording:
    """Open a DAT file for reading in blocks.

    A record is a 32-bit time in microseconds and a word. The time restarts after 71.6 minutes, and the reader corrects
    this. Version 2: bits 13…0 x, 27…14 y, 28 polarity; version 1: bits 8…0 x, 16…9 y, 17 polarity.
    """
    data = whole_head(path, b"% ", b"% end")
    require_magic(path, data, b"% ", "a DAT header")
    header, start = read_header(data)
    version = header.get("version", "")
    if version not in map(str, BITS):
        raise AxonnxError(f"{path}: the header states version {version or 'none'}; expected '% Version 1' or 2.")
    _check_layout(path, data, start)
    events = map(DatDecoder(int(version)), record_blocks(path, start + 2, RECORD))
    return OpenRecording("dat", sensor_of(header), events, most=path.stat().st_size // RECORD.itemsize)


class DatDecoder:
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


# Read Prophesee EVT 2.0 (`.raw`): a text header, then little-endian 32-bit words with their kind in bits 31…28.
#
#     0, 1  event OFF, ON: bits 27…22 low bits of the time, 21…11 x, 10…0 y
#     8     high 28 bits of the time, in units of 64 µs; they restart after 4.8 hours, and the reader corrects this
#     10    external trigger; 14, 15 extensions of the vendor
#
# Only events are decoded. All other words are counted in `skipped`. Events before the first time word are counted there
# too, because their time is unknown.

TIME_HIGH = 8
HIGH_BITS = 28
BEFORE = 16  # the index after the counts of sixteen kinds
EVT2_WORDS = {BEFORE: "event before the first time word", 10: "external trigger", 14: "extension", 15: "extension"}


def read_evt2(path: Path) -> Recording:
    """Read the events of an EVT 2.0 file."""
    return gathered(open_evt2(path))


def open_evt2(path: Path) -> OpenRecording:
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
    decoder = Evt2Decoder()
    for block in words:
        events = decoder(block)
        skipped.update(decoder.skipped())
        yield events


class Evt2Decoder:
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
                name = EVT2_WORDS.get(kind, f"reserved word {kind}")
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
