"""Read AEDAT 3.1: a text header up to `#!END-HEADER`, then little-endian packets of one event type each.

A packet has a header of 28 bytes (type, source, event size, offset of the time, overflow count of the time, capacity,
number, valid) and `capacity` events, of which `number` are used. A polarity event (type 1) has a word with bit 0 valid,
bit 1 ON, bits 16…2 y and bits 31…17 x, and a 31-bit time that the overflow count extends. Events of other types, events
that are marked as not valid, and events of any source but the first are counted in `skipped`. The sensor is that of the
device that the header names for the source, if the device is known.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Sensor, pick_events
from axonnx.runtime.readers.binary import header_lines, read_bytes, require_magic
from axonnx.runtime.readers.recording import Recording, events_from

MAGIC = b"#!AER-DAT3.1"
END = b"#!END-HEADER"
PACKET = np.dtype(
    [("type", "<i2"), ("source", "<i2")]
    + [(name, "<i4") for name in ("size", "time_offset", "overflow", "capacity", "number", "valid")]
)
POLARITY = 1
EVENT_RECORD = np.dtype([("data", "<u4"), ("t", "<i4")])
KINDS = {0: "special", 1: "polarity", 2: "frame", 3: "inertial", 4: "inertial", 12: "spike"}
SIZES = {"DVS128": (128, 128), "DAVIS128": (128, 128), "DAVIS208": (208, 192)} | {
    "DAVIS240": (240, 180),
    "DAVIS346": (346, 260),
    "DAVIS640": (640, 480),
}


class Packet(NamedTuple):
    """The header of one packet, and the position of its events."""

    at: int  # byte offset of the packet
    type: int
    source: int
    size: int
    overflow: int
    number: int
    stop: int  # byte offset of the next packet


def read(path: Path) -> Recording:
    """Read the polarity events of the first source in an AEDAT 3.1 file."""
    data = read_bytes(path)
    require_magic(path, data, MAGIC, "AEDAT 3.1")
    lines, start = header_lines(data, b"#", END)
    if not lines[-1:] or not lines[-1].startswith(END.decode()):
        raise AxonnxError(
            f"{path}: byte {start}: the header ends without {END.decode()}; the file was cut off. Copy it again."
        )
    packets = _packets(path, data, start)
    source = next((packet.source for packet in packets if packet.type == POLARITY), None)
    taken = [packet for packet in packets if (packet.type, packet.source) == (POLARITY, source)]
    t, words = _polarity(path, data, taken)
    valid = (words & 1).astype(bool)
    skipped = _skipped(packets, source) | ({"not valid": n} if (n := int(np.count_nonzero(~valid))) else {})
    events = pick_events(events_from(path, t, words >> 17, words >> 2 & 0x7FFF, words >> 1 & 1), valid)
    return Recording(events, "aedat3.1", _sensor(lines, source), skipped)


def _packets(path: Path, data: bytes, start: int) -> list[Packet]:
    packets = []
    while start < len(data):
        packets.append(_packet(path, data, start))
        start = packets[-1].stop
    return packets


def _packet(path: Path, data: bytes, at: int) -> Packet:
    """Return the packet at byte `at`, and check that it is complete."""
    if len(data) - at < PACKET.itemsize:
        raise _cut_off(path, at, PACKET.itemsize, len(data) - at)
    head = np.frombuffer(data, PACKET, 1, at)[0]
    size, capacity, number = int(head["size"]), int(head["capacity"]), int(head["number"])
    layout = (size, int(head["time_offset"])) == (8, 4) or int(head["type"]) != POLARITY
    if size <= 0 or not 0 <= number <= capacity or not layout or int(head["overflow"]) < 0:
        raise AxonnxError(
            f"{path}: byte {at}: found a packet header {dict(zip(PACKET.names or (), head.tolist(), strict=True))};"
            " expected 0 ≤ number ≤ capacity, and for polarity events (type 1) size 8 and time_offset 4."
            " The file is damaged at this position."
        )
    stop = at + PACKET.itemsize + size * capacity
    if stop > len(data):
        raise _cut_off(path, at, stop - at, len(data) - at)
    return Packet(at, int(head["type"]), int(head["source"]), size, int(head["overflow"]), number, stop)


def _cut_off(path: Path, at: int, expected: int, found: int) -> AxonnxError:
    return AxonnxError(
        f"{path}: byte {at}: a packet of {expected} bytes begins, but only {found} bytes follow; the file was cut off."
        f" Copy it again, or cut it to {at} bytes to drop that packet."
    )


def _polarity(path: Path, data: bytes, packets: list[Packet]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the time and the data word of every polarity event."""
    times, words = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for packet in packets:
        records = np.frombuffer(data, EVENT_RECORD, packet.number, packet.at + PACKET.itemsize)
        if len(records) and int(records["t"].min()) < 0:
            raise AxonnxError(f"{path}: byte {packet.at}: an event's time is negative; the packet is damaged.")
        times.append(records["t"].astype(np.int64) | packet.overflow << 31)
        words.append(records["data"].astype(np.int64))
    return np.concatenate(times), np.concatenate(words)


def _skipped(packets: list[Packet], source: int | None) -> dict[str, int]:
    """Count the events of other types and other sources by kind."""
    counts: dict[str, int] = {}
    for packet in packets:
        if (packet.type, packet.source) != (POLARITY, source) and packet.number:
            kind = KINDS.get(packet.type, f"type {packet.type}")
            kind = f"polarity of source {packet.source}" if packet.type == POLARITY else kind
            counts[kind] = counts.get(kind, 0) + packet.number
    return counts


def _sensor(lines: list[str], source: int | None) -> Sensor | None:
    """Return the size of the device that the header names for the source; None if it is unknown."""
    for line in lines:
        named = re.match(r"#\s*Source\s+(\d+)\s*:\s*([A-Za-z]+\d+)", line)
        if named and int(named[1]) == source and named[2].upper() in SIZES:
            width, height = SIZES[named[2].upper()]
            return Sensor(width=width, height=height)
    return None
